//go:build linux

package diskstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// breakage are ways in which a disk keeps a store from storing; each returns a function that
// repairs the disk.
var breakage = map[string]func(t *testing.T, dir string) (undo func()){
	"no files of bodies": func(t *testing.T, dir string) func() { return inTheWay(t, filepath.Join(dir, "objects", "bodies")) },
	"no files":           func(t *testing.T, dir string) func() { return inTheWay(t, filepath.Join(dir, "objects")) },
	"everything removed": func(t *testing.T, dir string) func() {
		check(t, os.RemoveAll(dir))
		return func() {}
	},
	"out of descriptors": func(t *testing.T, _ string) func() {
		var limit syscall.Rlimit
		check(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
		none := limit
		none.Cur = 0
		check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
		return func() { check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) }
	},
}

// inTheWay puts a file in place of a directory.
func inTheWay(t *testing.T, dir string) (undo func()) {
	check(t, os.Rename(dir, dir+".away"))
	check(t, os.WriteFile(dir, nil, 0o600))
	return func() { check(t, os.Remove(dir)); check(t, os.Rename(dir+".away", dir)) }
}

// follow reads a whole body, n bytes at a time with a pause after each.
func follow(f *bodies.Follower, n int, pause time.Duration) ([]byte, error) {
	defer f.Close()
	var got []byte
	buf := make([]byte, n)
	for {
		k, err := f.Read(buf)
		got = append(got, buf[:k]...)
		if err == io.EOF {
			return got, nil
		} else if err != nil {
			return got, err
		}
		time.Sleep(pause)
	}
}

// TestPassThrough: however and whenever the disk fails, every
// follower gets the whole body, Write succeeds, and Commit returns an error. No file is left
// behind, and the store works again afterwards.
func TestPassThrough(t *testing.T) {
	for name, spoil := range breakage {
		for _, n := range []int{0, 1, memoryBody, memoryBody + 1, maxWindow, maxWindow + 1, 3 << 20} {
			for _, after := range []int{0, 100, memoryBody + 1, 1 << 20} { // bytes before the disk fails
				if after > n {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					s := open(t, Options{})
					b := body(uint64(n), n)
					w, err := s.create("k", int64(n))
					check(t, err)
					results := make(chan error, 10)
					started := 0
					start := func(size int, pause time.Duration) {
						started++
						f, ok := w.Follow(t.Context())
						if !ok {
							t.Fatalf("%s: n=%d after=%d: too late to follow", name, n, after)
						}
						go func() {
							got, err := follow(f, size, pause)
							if err == nil && !bytes.Equal(got, b) {
								err = errors.New("other bytes")
							}
							results <- err
						}()
					}
					start(32<<10, 0)
					start(5<<10, time.Millisecond)
					check(t, w.Write(t.Context(), b[:after]))
					undo := spoil(t, s.opt.Dir)
					start(1<<20, 0)
					check(t, w.Write(t.Context(), b[after:]))
					if n <= maxWindow {
						start(100<<10, time.Second)
					}
					_, err = w.Commit(bodies.Meta{})
					for range started {
						if err := <-results; err != nil {
							t.Errorf("%s: n=%d after=%d: %v", name, n, after, err)
						}
					}
					undo()
					spilled := after > memoryBody && name == "no files of bodies" // and open before its name went away
					shared := n <= memoryBody && name == "no files of bodies"
					if err == nil && !shared && !spilled && name != "everything removed" { // it is made anew
						t.Errorf("%s: n=%d after=%d: Commit() = nil", name, n, after)
					}
					put(t, s, "next", b[:min(n, 70_000)], bodies.Meta{})
					s.flush()
					if left := len(files(t, s.opt.Dir)); left > large(s) {
						t.Errorf("%s: n=%d after=%d: %d files are left", name, n, after, left)
					}
					if st := s.Stats(); st.WritingBytes != 0 || err != nil && st.WriteErrors == 0 || w.f != nil {
						t.Errorf("%s: n=%d after=%d: %+v", name, n, after, st)
					}
				})
			}
		}
	}
}

// TestPassThroughTooLarge: a body of unknown length is larger than the store takes.
func TestPassThroughTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{MaxBytes: 4 << 20})
		b := body(1, 6<<20)
		w, err := s.create("k", -1)
		check(t, err)
		f, _ := w.Follow(t.Context())
		slow, _ := w.Follow(t.Context())
		results := make(chan error, 2)
		for i, f := range []*bodies.Follower{f, slow} {
			go func() {
				got, err := follow(f, 40_000, time.Millisecond*time.Duration(1+i))
				if err == nil && !bytes.Equal(got, b) {
					err = errors.New("other bytes")
				}
				results <- err
			}()
		}
		for rest := b; len(rest) > 0; {
			k := min(len(rest), 30_001)
			check(t, w.Write(t.Context(), rest[:k]))
			if w.InMemory() > maxWindow {
				t.Fatalf("%d bytes in memory", w.InMemory())
			}
			rest = rest[k:]
		}
		if _, ok := w.Follow(t.Context()); ok {
			t.Error("a body whose beginning is gone could be followed")
		}
		if _, err := w.Commit(bodies.Meta{}); !errors.Is(err, bodies.ErrTooLarge) {
			t.Errorf("Commit() = %v, want bodies.ErrTooLarge", err)
		}
		for range 2 {
			check(t, <-results)
		}
		if st := s.Stats(); st.WriteErrors != 0 || st.WritingBytes != 0 || st.Objects != 0 {
			t.Errorf("Stats() = %+v", st)
		}
	})
}

// TestPassThroughWaits: a body that passes through waits for a follower that stops reading, until
// the follower goes on or is closed, or its context or the writer's ends. If
// another follower has read everything, the body waits for one second at most.
func TestPassThroughWaits(t *testing.T) {
	gone, bound := errors.New("client gone"), errors.New("waited long enough")
	tests := []struct {
		name string
		do   func(f *bodies.Follower, cancel context.CancelCauseFunc)
		want error // of the Write, unless another follows
	}{
		{"reads on", func(f *bodies.Follower, _ context.CancelCauseFunc) { follow(f, 10_000, 0) }, nil},
		{"closes", func(f *bodies.Follower, _ context.CancelCauseFunc) { f.Close() }, bodies.ErrNoFollower},
		{"context ends", func(_ *bodies.Follower, cancel context.CancelCauseFunc) { cancel(gone) }, bodies.ErrNoFollower},
		{"nothing", func(*bodies.Follower, context.CancelCauseFunc) {}, bound},
	}
	for _, tt := range tests {
		for _, early := range []bool{true, false} { // followed before the disk failed
			for _, another := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, Options{})
					w, err := s.create("k", -1)
					check(t, err)
					defer w.Abort()
					inTheWay(t, filepath.Join(s.opt.Dir, "objects"))
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					if !early {
						check(t, w.Write(t.Context(), make([]byte, memoryBody+1)))
					}
					stopped, _ := w.Follow(ctx)
					defer stopped.Close()
					if another {
						lively, _ := w.Follow(t.Context())
						go follow(lively, 10_000, 0)
					}
					go func() {
						time.Sleep(lagTime / 2)
						tt.do(stopped, cancel)
					}()
					bounded, stop := context.WithTimeoutCause(t.Context(), 10*time.Second, bound)
					defer stop()
					start := time.Now()
					err = w.Write(bounded, make([]byte, 4*maxWindow))
					took := time.Since(start)
					want, after := tt.want, lagTime/2
					switch {
					case another && tt.want == bound:
						want, after = nil, lagTime
					case another:
						want = nil
					case tt.want == bound:
						after = 10 * time.Second
					}
					if tt.name == "context ends" { // which is noticed then
						after = lagTime
					}
					if err != want || took != after {
						t.Errorf("%s, another=%v: Write() = %v after %v, want %v after %v", tt.name, another, err, took, want, after)
					}
					read := map[string]error{"context ends": gone, "nothing": bodies.ErrBehind}[tt.name]
					if another && read != nil {
						if _, err := stopped.Read(make([]byte, 1)); err != read {
							t.Errorf("%s: Read() = %v, want %v", tt.name, err, read)
						}
					}
					w.Abort()
				})
			}
		}
	}
}

// TestPassThroughAlone: without followers, writing a body that can't be stored fails once the
// window is full, unless the body is held for later followers.
func TestPassThroughAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		inTheWay(t, filepath.Join(s.opt.Dir, "objects"))
		b := body(1, 3*maxWindow)
		w, _ := s.create("k", -1)
		check(t, w.Write(t.Context(), b[:maxWindow]))
		if err := w.Write(t.Context(), b[maxWindow:]); err != bodies.ErrNoFollower {
			t.Errorf("Write() to nobody = %v, want %v", err, bodies.ErrNoFollower)
		}
		w.Abort()

		w, _ = s.create("k", -1)
		w.Hold()
		go func() {
			time.Sleep(time.Second)
			f, ok := w.Follow(t.Context())
			if !ok {
				t.Error("too late to follow a body that is held")
				return
			}
			w.Release()
			if got, err := follow(f, 10_000, time.Millisecond); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}()
		check(t, w.Write(t.Context(), b))
		w.Commit(bodies.Meta{})
		time.Sleep(time.Minute)

		w, _ = s.create("k", -1)
		w.Hold()
		go func() { time.Sleep(time.Second); w.Release(); w.Release() }()
		if err := w.Write(t.Context(), b); err != bodies.ErrNoFollower {
			t.Errorf("Write() to nobody = %v, want %v", err, bodies.ErrNoFollower)
		}
		w.Abort()
	})
}

// pieces limits the bytes per Read.
type pieces struct {
	io.Reader
	most int
}

func (r pieces) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.most)]) }

// TestCompare: another source continues a body, and a source that sends other bytes
// is detected before any of them is passed on.
func TestCompare(t *testing.T) {
	const n = 3*blockSize + 1000
	b := body(1, n)
	for _, at := range []int{0, 1, 1000, blockSize - 1, blockSize, blockSize + 1, 2*blockSize + 77, n} {
		for _, piece := range []int{1000, 50_001, n} {
			for _, wrong := range []int{-1, 0, at - 1, at / 2} {
				s := open(t, Options{})
				if wrong >= at {
					continue
				}
				w, err := s.create("k", n)
				check(t, err)
				f, _ := w.Follow(t.Context())
				check(t, w.Write(t.Context(), b[:at]))
				if f.Sums().Size != int64(at) {
					t.Fatalf("Len() = %d, want %d", f.Sums().Size, at)
				}
				other := bytes.Clone(b)
				if wrong >= 0 {
					other[wrong] ^= 1
				}
				var r bodies.Received
				r.Add(b[:at])
				resume := func(from []byte) error {
					src := r.Sums().Check(pieces{bytes.NewReader(from), piece}, 0, math.MaxInt64)
					if _, err := io.CopyN(io.Discard, src, int64(at)); err != nil {
						return err
					}
					rest, err := io.ReadAll(src)
					check(t, err)
					return w.Write(t.Context(), rest)
				}
				err = resume(other)
				if wrong >= 0 {
					if !errors.Is(err, bodies.ErrDiffers) || f.Sums().Size != int64(at) {
						t.Errorf("at=%d piece=%d wrong=%d: %v, %d bytes received", at, piece, wrong, err, f.Sums().Size)
					}
					err = resume(b)
				}
				if err != nil {
					t.Errorf("at=%d piece=%d wrong=%d: %v", at, piece, wrong, err)
				}
				_, err = w.Commit(bodies.Meta{})
				check(t, err)
				if got, err := follow(f, 10_000, 0); err != nil || !bytes.Equal(got, b) {
					t.Errorf("at=%d piece=%d wrong=%d: followed %d bytes, %v", at, piece, wrong, len(got), err)
				}
				if _, got, err := read(s, "k"); err != nil || !bytes.Equal(got, b) {
					t.Errorf("at=%d piece=%d wrong=%d: stored %d bytes, %v", at, piece, wrong, len(got), err)
				}
				s.Close()
			}
		}
	}
}

func TestWriteTooLong(t *testing.T) {
	s := open(t, Options{})
	w, _ := s.create("k", 10)
	if err := w.Write(t.Context(), make([]byte, 11)); err != bodies.ErrTooLong {
		t.Errorf("Write() = %v, want %v", err, bodies.ErrTooLong)
	}
	w.Abort()
}
