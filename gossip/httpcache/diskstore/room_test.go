package diskstore

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// TestShrink: a store whose room is cut to an eighth, while it runs or at a start, keeps the
// objects that fit, though its segments are those of a large store.
func TestShrink(t *testing.T) {
	const before, after = 16 << 20, 2 << 20
	one := body(1, 1000)
	for _, how := range []string{"running", "at a start"} {
		t.Run(how, func(t *testing.T) {
			s := open(t, Options{MaxBytes: before})
			for i := range before / 1200 {
				put(t, s, fmt.Sprint(i), one, bodies.Meta{})
			}
			s.index.CleanUp()
			if how == "running" {
				check(t, s.Resize(after))
			} else {
				s.Close()
				s = open(t, Options{Dir: s.opt.Dir, MaxBytes: after})
			}
			s.index.CleanUp()
			s.segments.collect()
			for i := range 3 { // later objects must fit, too
				put(t, s, fmt.Sprint("new", i), one, bodies.Meta{})
			}
			s.flush()
			if st := s.Stats(); st.Bytes < after/2 || used(t, s.opt.Dir) > after {
				t.Errorf("%d bytes in files, %+v", used(t, s.opt.Dir), st)
			}
			for key := range s.Keys() {
				if _, b, err := read(s, key); err != nil || string(b) != string(one) {
					t.Errorf("%q: %d bytes, %v", key, len(b), err)
				}
			}
		})
	}
}

// TestRoomForFiles: a store full of small objects stays within its bound when bodies with files of
// their own are added, even while they are being written.
func TestRoomForFiles(t *testing.T) {
	const limit = 8 << 20
	s := open(t, Options{MaxBytes: limit})
	n, rounds := 0, 12
	if testing.Short() { // with the race detector
		rounds = 3
	}
	for round := range rounds {
		for range limit / 1200 / (1 + round%3) {
			put(t, s, fmt.Sprint(n), body(uint64(n), 1000), bodies.Meta{})
			n++
		}
		size := []int64{100 << 10, 1 << 20, 2 << 20}[round%3]
		for _, announced := range []int64{size, -1} {
			n++
			w, err := s.Create(fmt.Sprint(n), announced)
			check(t, err)
			for left := size; left > 0; left -= 50 << 10 {
				check(t, w.Write(t.Context(), body(uint64(n), int(min(left, 50<<10)))))
				s.flush()
				if got := used(t, s.opt.Dir); got > limit {
					t.Fatalf("round %d, %d bytes of %d written: files have %d, of %d", round, size-left, size, got, limit)
				}
			}
			_, err = w.Commit(bodies.Meta{})
			check(t, err)
		}
	}
	s.index.CleanUp()
	if st := s.Stats(); st.Bytes < limit/2 || st.WriteErrors != 0 {
		t.Errorf("%+v", st)
	}
}
