package bodies

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errDisk = errors.New("disk failed")

// A memorySink keeps what is saved, up to a length at which it fails.
type memorySink struct {
	mu      sync.Mutex
	most    int64
	fails   int64 // at this length; 0 = never
	saved   []byte
	stored  []byte
	dropped int
	closed  int
	spoilt  bool // what was saved
	s       *Stream
}

func (k *memorySink) Most() int64 { return k.most }

func (k *memorySink) Save(p []byte, off int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if off != int64(len(k.saved)) {
		return errors.New("saved out of order")
	}
	if k.fails > 0 && off+int64(len(p)) > k.fails {
		return errDisk
	}
	k.saved = append(k.saved, p...)
	return nil
}

func (k *memorySink) Load(p []byte, off, end int64, _ []uint64) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.spoilt {
		return 0, errDisk
	}
	return copy(p, k.saved[off:min(end, (off/BlockSize+1)*BlockSize)]), nil
}

func (k *memorySink) Put(Meta) (Object, error) {
	rest, off, _ := k.s.Complete()
	k.stored = append(bytes.Clone(k.saved[:off]), rest...)
	return nil, nil
}

func (k *memorySink) Drop()  { k.dropped++ }
func (k *memorySink) Close() { k.closed++ }

func (k *memorySink) begin(size int64) *Stream {
	if k.most == 0 {
		k.most = 1 << 40
	}
	k.s = new(Stream)
	k.s.Begin(k, size, &sync.Pool{New: func() any { return new([BlockSize]byte) }})
	return k.s
}

func randomBody(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// follow follows s and reads so many bytes.
func follow(t *testing.T, ctx context.Context, s *Stream, n int) *Follower {
	t.Helper()
	f, ok := s.Follow(ctx)
	if !ok {
		t.Fatal("Follow() = false")
	}
	if got, err := io.ReadFull(f, make([]byte, n)); err != nil {
		t.Fatalf("a follower reads %d of %d bytes, %v", got, n, err)
	}
	return f
}

// passing returns a body that passes through and whose window is full.
func passing(t *testing.T) *Stream {
	t.Helper()
	s := (&memorySink{most: 1}).begin(-1)
	s.Hold()
	if err := s.Write(t.Context(), make([]byte, maxWindow)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWriterIsWoken: a writer that waits for room goes on, or gives up, as soon as whoever it waited for reads,
// leaves or will not come. What is left of its wait is the time in the table.
func TestWriterIsWoken(t *testing.T) {
	read := func(f *Follower, n int) { io.ReadFull(f, make([]byte, n)) }
	for name, tc := range map[string]struct {
		held bool
		then func(s *Stream, slow, quick *Follower, cancel func()) // after a while
		want error
		wait time.Duration // until the end of Write
	}{
		"the slowest leaves":           {then: func(_ *Stream, slow, _ *Follower, _ func()) { slow.Close() }},
		"the slowest reads":            {then: func(_ *Stream, slow, _ *Follower, _ func()) { read(slow, maxWindow/4) }},
		"the slowest reads too little": {then: func(_ *Stream, slow, _ *Follower, _ func()) { read(slow, maxWindow/4-1) }, want: context.DeadlineExceeded, wait: time.Hour},
		"the slowest one's context ends": {then: func(_ *Stream, _, _ *Follower, cancel func()) { cancel() },
			wait: lagTime - lagTime/4},
		"the other has read all": {then: func(_ *Stream, _, quick *Follower, _ func()) { read(quick, maxWindow/2) }, wait: lagTime - lagTime/4},
		"both leave":             {then: func(_ *Stream, slow, quick *Follower, _ func()) { slow.Close(); quick.Close() }, want: ErrNoFollower},
		"both leave, but it is held": {held: true, then: func(_ *Stream, slow, quick *Follower, _ func()) { slow.Close(); quick.Close() },
			want: context.DeadlineExceeded, wait: time.Hour},
		"both leave, and then it is let go": {held: true, then: func(s *Stream, slow, quick *Follower, _ func()) {
			slow.Close()
			quick.Close()
			synctest.Wait()
			s.Release()
		}, want: ErrNoFollower},
		"nothing happens": {then: func(*Stream, *Follower, *Follower, func()) {}, want: context.DeadlineExceeded, wait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := passing(t)
				gone, cancel := context.WithCancel(t.Context())
				defer cancel()
				slow, quick := follow(t, gone, s, 0), follow(t, t.Context(), s, maxWindow/2)
				if !tc.held {
					s.Release()
				}
				const before = lagTime / 4
				ctx, end := context.WithTimeout(t.Context(), before+time.Hour)
				defer end()
				ended := make(chan error, 1)
				go func() { ended <- s.Write(ctx, []byte("x")) }()
				time.Sleep(before)
				select {
				case err := <-ended:
					t.Fatalf("Write() to a full window = %v at once", err)
				default:
				}
				begun := time.Now()
				tc.then(s, slow, quick, cancel)
				if err := <-ended; err != tc.want || time.Since(begun) != tc.wait {
					t.Errorf("Write() = %v after %v, want %v after %v", err, time.Since(begun), tc.want, tc.wait)
				}
			})
		})
	}
}

// TestLeftBehind: when others waited for a second, those that lag by most of the window are left behind, no others.
func TestLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := passing(t)
		all := follow(t, t.Context(), s, maxWindow)
		slow := follow(t, t.Context(), s, maxWindow/4-1)
		almost := follow(t, t.Context(), s, maxWindow/4)
		if err := s.Write(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
		for name, tc := range map[string]struct {
			f    *Follower
			want error
		}{"the quick one": {all, nil}, "the slow one": {slow, ErrBehind}, "one at the border": {almost, nil}} {
			if _, err := tc.f.Read(make([]byte, 1)); err != tc.want {
				t.Errorf("%s: Read() = %v, want %v", name, err, tc.want)
			}
		}
		if _, ok := s.Follow(t.Context()); ok {
			t.Error("Follow() succeeds though the beginning is gone")
		}
	})
}

// TestFollowersAreWoken: a follower that waits gets what arrives, and the end.
func TestFollowersAreWoken(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(s *Stream)
		want error
	}{
		"complete":   {func(s *Stream) { s.Commit(Meta{}) }, io.EOF},
		"broken off": {func(s *Stream) { s.Abort() }, ErrBrokenOff},
		"ended":      {func(s *Stream) { s.End(errDisk) }, errDisk},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := new(memorySink).begin(-1)
			ctx, cancel := context.WithCancelCause(t.Context())
			type answer struct {
				n   int
				err error
			}
			wait := func(f *Follower) chan answer {
				c := make(chan answer, 1)
				go func() {
					n, err := f.Read(make([]byte, 10))
					c <- answer{n, err}
				}()
				synctest.Wait()
				return c
			}
			f, gone := follow(t, t.Context(), s, 0), follow(t, ctx, s, 0)
			first := wait(f)
			if f.Ready() {
				t.Errorf("%s: Ready() = true with nothing to read", name)
			}
			s.Write(t.Context(), []byte("abc"))
			if got := <-first; got != (answer{3, nil}) {
				t.Errorf("%s: Read() = %v, want 3 bytes", name, got)
			}
			io.ReadFull(gone, make([]byte, 3))
			second, left := wait(f), wait(gone)
			cancel(errDisk)
			if got := <-left; got != (answer{0, errDisk}) {
				t.Errorf("%s: Read() after its context ended = %v", name, got)
			}
			tc.end(s)
			if got := <-second; got != (answer{0, tc.want}) || !f.Ready() {
				t.Errorf("%s: Read() at the end = %v, want %v", name, got, tc.want)
			}
		})
	}
}

// TestLetGo: the sink is closed once, when the body has ended and the last of those that may read it has gone, in
// whatever order they leave.
func TestLetGo(t *testing.T) {
	for _, size := range []int64{-1, BlockSize} { // the second has memory that is lent
		for _, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {1, 3, 0, 2, 4}, {2, 4, 1, 0, 3}} {
			k := new(memorySink)
			s := k.begin(size)
			b := randomBody(BlockSize)
			if err := s.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			s.Hold()
			var f [3]*Follower
			for i := range f {
				f[i] = follow(t, t.Context(), s, i)
			}
			for i, who := range order {
				if k.closed != 0 {
					t.Errorf("order %v: closed before step %d", order, i)
				}
				switch {
				case who < 3:
					rest, err := make([]byte, 1), error(nil)
					if _, err = f[who].Read(rest); err != nil || rest[0] != b[who] {
						t.Errorf("order %v: follower %d reads %x, %v, want %x", order, who, rest, err, b[who])
					}
					f[who].Close()
					f[who].Close()
					if _, err := f[who].Read(rest); err != io.ErrClosedPipe {
						t.Errorf("order %v: Read() after Close() = %v", order, err)
					}
				case who == 3:
					s.Release()
					s.Release()
				default:
					if _, err := s.Commit(Meta{}); err != nil {
						t.Fatal(err)
					}
					s.Abort()
				}
			}
			if k.closed < 1 || s.lent != nil || !bytes.Equal(k.stored, b) {
				t.Errorf("order %v: closed %d times, lent %v, %d bytes stored", order, k.closed, s.lent != nil, len(k.stored))
			}
			if _, ok := s.Follow(t.Context()); ok {
				t.Errorf("order %v: Follow() succeeds after the end", order)
			}
		}
	}
}

// TestLengths: bodies of all lengths around the borders are stored and followed whole, saved or not, and the bounds
// of a body are exact.
func TestLengths(t *testing.T) {
	for _, n := range []int{0, 1, BlockSize / 4, BlockSize/4 + 1, BlockSize - 1, BlockSize, BlockSize + 1, keptBody, keptBody + 1, maxWindow, maxWindow + 1, 5*BlockSize + 7} {
		b := randomBody(n)
		for name, tc := range map[string]struct {
			size, most, fails int64
			write, commit     error
		}{
			"announced":                {size: int64(n)},
			"not announced":            {size: -1},
			"as long as is taken":      {size: -1, most: int64(max(n, 1))},
			"longer than is taken":     {size: -1, most: int64(max(n, 1) - 1), commit: ErrTooLarge},
			"longer than announced":    {size: int64(n - 1), write: ErrTooLong},
			"shorter than announced":   {size: int64(n + 1), commit: ErrBrokenOff},
			"the disk fails at a time": {size: int64(n), fails: BlockSize, commit: errDisk},
		} {
			if n == 0 && (tc.write != nil || errors.Is(tc.commit, ErrTooLarge)) || tc.fails > 0 && n <= keptBody || n == 1 && tc.most == 0 && tc.commit == ErrTooLarge {
				continue // there is no such body, or it is not saved before it is stored
			}
			synctest.Test(t, func(t *testing.T) {
				k := &memorySink{most: tc.most, fails: tc.fails}
				s := k.begin(tc.size)
				f, _ := s.Follow(t.Context())
				followed := make(chan error, 1)
				var got bytes.Buffer
				go func() {
					_, err := io.Copy(&got, f)
					f.Close()
					followed <- err
				}()
				if err := s.Write(t.Context(), b); err != tc.write {
					t.Errorf("%d bytes, %s: Write() = %v, want %v", n, name, err, tc.write)
				}
				if passes := tc.commit != nil && tc.commit != ErrBrokenOff; passes != (k.dropped > 0) {
					t.Errorf("%d bytes, %s: before the end it is dropped %d times", n, name, k.dropped)
				}
				kept := map[bool]int{false: memoryBody, true: keptBody}[tc.size >= 0]
				if tc.write == nil && tc.commit == nil && (len(k.saved) > 0) != (n > kept) {
					t.Errorf("%d bytes, %s: %d are saved before the end, want some if there are more than %d", n, name, len(k.saved), kept)
				}
				late, _ := s.Follow(t.Context())
				if tc.write != nil {
					s.Abort()
				} else if _, err := s.Commit(Meta{}); !errors.Is(err, tc.commit) {
					t.Errorf("%d bytes, %s: Commit() = %v, want %v", n, name, err, tc.commit)
				}
				if late != nil {
					if w := late.Whole(); w != nil && !bytes.Equal(w, b) || w == nil && tc.write == nil && tc.commit == nil && 0 < n && n <= BlockSize {
						t.Errorf("%d bytes, %s: Whole() = %d bytes", n, name, len(w))
					}
					late.Close()
				}
				err, broken := <-followed, tc.write != nil || tc.commit == ErrBrokenOff
				if !broken && (err != nil || !bytes.Equal(got.Bytes(), b)) || broken && !errors.Is(err, ErrBrokenOff) {
					t.Errorf("%d bytes, %s: followed %d, %v", n, name, got.Len(), err)
				}
				if stored := tc.write == nil && tc.commit == nil; stored != (k.dropped == 0) || stored && !bytes.Equal(k.stored, b) || k.closed < 1 {
					t.Errorf("%d bytes, %s: stored %d, dropped %d times, closed %d times", n, name, len(k.stored), k.dropped, k.closed)
				}
			})
		}
	}
}

// TestSpoiltWhileFollowed: saved bytes that cannot be read back end their reader, and the body is known to be corrupt.
func TestSpoiltWhileFollowed(t *testing.T) {
	k := &memorySink{spoilt: true}
	s := k.begin(-1)
	f := follow(t, t.Context(), s, 0)
	if err := s.Write(t.Context(), randomBody(maxWindow)); err != nil || s.Corrupt() != nil {
		t.Fatalf("Write() = %v, Corrupt() = %v", err, s.Corrupt())
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, ErrCorrupt) || !errors.Is(err, errDisk) || s.Corrupt() != err {
		t.Errorf("Read() = %v, Corrupt() = %v, want the same", err, s.Corrupt())
	}
}

// TestSumsOfStored: the checksums that a follower gets are those of the body's blocks, before and after it is stored.
func TestSumsOfStored(t *testing.T) {
	for _, n := range []int{1, BlockSize, BlockSize + 1, 3*BlockSize - 1} {
		s, body := (&memorySink{}).begin(-1), randomBody(n)
		f := follow(t, t.Context(), s, 0)
		check := func(when string) {
			got, err := io.ReadAll(f.Sums().Check(bytes.NewReader(body), 0, int64(n)))
			if err != nil || !bytes.Equal(got, body) || int64(f.Sums().Len()) != BlockCount(int64(n)) {
				t.Errorf("%d bytes, %s: %d blocks; %d bytes, %v", n, when, f.Sums().Len(), len(got), err)
			}
		}
		if err := cmp.Or(s.Write(t.Context(), body), s.End(nil)); err != nil {
			t.Fatal(err)
		}
		check("complete")
		if _, err := s.Commit(Meta{}); err != nil {
			t.Fatal(err)
		}
		check("stored")
		f.Close()
	}
}
