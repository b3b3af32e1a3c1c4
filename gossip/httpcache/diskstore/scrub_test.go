//go:build linux

package diskstore

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

func openForScrub(t *testing.T, pass time.Duration) *store {
	s, err := openStore(Options{Dir: t.TempDir(), MaxBytes: 256 << 20, Scrub: pass})
	check(t, err)
	return s
}

// TestScrub: within the time of a pass every disk error is found, wherever in
// a file it is, though there are no requests, and good objects stay.
func TestScrub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pass = 7 * 24 * time.Hour
		s := openForScrub(t, pass)
		defer s.Close()
		bad := map[string]bool{}
		total := 0
		for i := range 60 {
			key := fmt.Sprint(i)
			n := []int{0, 1000, 70_000, 300_000}[i%4]
			o := put(t, s, key, body(uint64(i), n), bodies.Meta{Data: []byte("data")})
			s.lastID.Add(3) // so that they are spread over the directories
			if i%3 > 0 {
				total += n
				continue
			}
			bad[key] = true
			path := s.path(o.file.id)
			if o.is(objSmall) {
				path, at := bodyOf(s, o)
				switch i % 2 {
				case 0:
					flip(t, path, at-1) // the description
				case 1:
					flip(t, path, at-recordHead-int64(len("data"))+9) // the sum of the body
				}
				continue
			}
			st, err := os.Stat(path)
			check(t, err)
			switch i % 5 {
			case 0:
				flip(t, path, 0) // the body, or the tail if there is none
			case 1:
				flip(t, path, st.Size()-1)
			case 2:
				flip(t, path, st.Size()-footerSize-1)
			case 3:
				check(t, os.Truncate(path, st.Size()/2))
			case 4:
				flip(t, path, int64(n/2))
			}
		}
		held := s.Stats().Objects
		time.Sleep(pass / 2)
		synctest.Wait()
		if st := s.Stats(); st.ScrubPasses != 0 || st.ScrubbedBytes > uint64(3*total/4) {
			t.Errorf("a pass of %v after half of it: %+v", pass, st)
		}
		time.Sleep(pass/2 + time.Second)
		synctest.Wait()
		st := s.Stats()
		if int(st.Corrupt) != len(bad) || st.Objects != held-len(bad) || st.ScrubPasses != 1 {
			t.Errorf("%d of %d found after a pass: %+v", st.Corrupt, len(bad), st)
		}
		if int(st.ScrubbedBytes) < total {
			t.Errorf("%d bytes read, %d are there", st.ScrubbedBytes, total)
		}
		for i := range 60 {
			if _, ok := s.peek(fmt.Sprint(i)); ok == bad[fmt.Sprint(i)] {
				t.Errorf("object %d: bad %v, held %v", i, !ok, ok)
			}
		}
	})
}

// TestScrubChanges: the time of a pass can change, within a pause as well, and so can whether there is one.
func TestScrubChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openForScrub(t, 0)
		put(t, s, "x", make([]byte, 1<<20), bodies.Meta{})
		read := func(during time.Duration) uint64 {
			before := s.Stats().ScrubPasses
			time.Sleep(during)
			return s.Stats().ScrubPasses - before
		}
		if n := read(1000 * time.Hour); n != 0 {
			t.Errorf("%d passes without a time", n)
		}
		s.Scrub(1000 * time.Hour)
		time.Sleep(time.Hour)
		s.Scrub(time.Hour)
		if n := read(10*time.Hour + time.Minute); n < 9 || n > 10 {
			t.Errorf("%d passes in 10 hours, each of an hour", n)
		}
		s.Scrub(0)
		time.Sleep(time.Hour)
		if n := read(1000 * time.Hour); n != 0 {
			t.Errorf("%d passes after they ended", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestScrubChangesWithinAPart: whatever a part does when the time of a pass changes, it ends by the new time.
func TestScrubChangesWithinAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openForScrub(t, 0)
		defer s.Close()
		put(t, s, "x", make([]byte, 1<<20), bodies.Meta{})
		for part := range uint64(scrubParts) {
			c := &scrubber{store: s, stop: make(chan struct{}), other: make(chan struct{}, 1)}
			c.pass.Store(int64(1000 * time.Hour))
			c.done.Go(func() { c.part(part) })
			time.Sleep(time.Hour)
			c.pass.Store(int64(time.Hour))
			c.other <- struct{}{}
			begin := time.Now()
			c.done.Wait()
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("part %d took %v after the pass became an hour", part, took)
			}
		}
	})
}

// TestScrubIsSlow: a pass takes longer than its time if the limit of bytes per second demands it.
func TestScrubIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openForScrub(t, time.Second)
		defer s.Close()
		const total = 80 << 20
		for i := range total >> 20 {
			put(t, s, fmt.Sprint(i), make([]byte, 1<<20), bodies.Meta{})
		}
		begun := s.Stats().ScrubbedBytes
		for i := range 20 {
			time.Sleep(time.Second)
			synctest.Wait()
			if got := s.Stats().ScrubbedBytes - begun; got > uint64((i+1)*scrubRate+2*scrubStep) {
				t.Fatalf("%d bytes in %d s", got, i+1)
			}
		}
		if got := s.Stats().ScrubbedBytes; got < total {
			t.Errorf("%d of %d bytes in 20 s", got, total)
		}
	})
}

// TestScrubWhileUsed: objects that are stored, removed and updated meanwhile are never taken
// for corrupt.
func TestScrubWhileUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openForScrub(t, time.Second)
		defer s.Close()
		for i := range 1500 {
			key := fmt.Sprint(i * 7 % 40)
			switch o, ok := s.Get(key); {
			case i%11 == 0:
				s.Delete(key)
			case ok && i%2 == 0:
				s.Update(o, bodies.Meta{Data: body(uint64(i), i)})
			default:
				put(t, s, key, body(uint64(i), 100+i*97%150_000), bodies.Meta{})
			}
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		if st := s.Stats(); st.Corrupt != 0 || st.ScrubPasses == 0 {
			t.Errorf("%+v", st)
		}
	})
}
