package diskstore

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// TestCopiesLeaveFirst fills stores with 128 objects, half of them copies, and then adds
// objects that are not copies, before and after a restart.
func TestCopiesLeaveFirst(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart=", restart), func(t *testing.T) {
			m := newMirror()
			const room = (128*(60<<10+128) + 8<<10) * 32 / 31 // with the descriptions, their garbage and two segments
			o := Options{Dir: t.TempDir(), MaxBytes: room, Hooks: m.hooks()}
			s := open(t, o)
			b := make([]byte, 60<<10)
			for i := range 60 {
				put(t, s, fmt.Sprint("copy ", i), b, bodies.Meta{Copied: true})
				put(t, s, fmt.Sprint("own ", i), b, bodies.Meta{})
			}
			held := func(name string, n int) (list []int) {
				for i := range n {
					if _, ok := s.peek(fmt.Sprint(name, i)); ok {
						list = append(list, i)
					}
				}
				return list
			}
			if n := len(held("copy ", 60)); n != 60 {
				t.Fatalf("a store with room keeps %d copies of 60", n)
			}
			if restart {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				o.Hooks = bodies.Hooks{}
				s = open(t, o)
			}
			if old, _ := s.peek("copy 1"); !old.Copied() {
				t.Error("a copy is none")
			} else if now, err := s.Update(old, bodies.Meta{}); err != nil || !now.(*object).Copied() {
				t.Errorf("a copy described anew = %+v, %v", now, err)
			}
			for i := range 64 { // 8 fit, and for 56 copies leave: all but their share, 4
				s.Get("copy 0") // which somebody wants
				put(t, s, fmt.Sprint("new ", i), b, bodies.Meta{})
			}
			s.index.CleanUp()
			if n := len(held("own ", 60)) + len(held("new ", 64)); n != 124 {
				t.Errorf("%d objects of 124 are left that are no copies", n)
			}
			if left := held("copy ", 60); len(left) != 4 || left[0] != 0 {
				t.Errorf("of the copies %v are left, want the one that was asked for, and 3 more", left)
			}
			if st := s.Stats(); st.Evictions != 56 || st.Bytes > o.MaxBytes {
				t.Errorf("Stats() = %+v", st)
			}
			put(t, s, "copy 60", b, bodies.Meta{Copied: true}) // takes the place of another
			if n := len(held("copy ", 61)); n != 4 {
				t.Errorf("%d copies are left beside a new one", n)
			}
			if err := s.Resize(room / 2); err != nil {
				t.Fatal(err)
			}
			s.index.CleanUp()
			if n := len(held("copy ", 61)); n > 2 {
				t.Errorf("%d copies are left in half of the store", n)
			}
			if !restart {
				m.check(t, s)
			}
		})
	}
}

// TestCopiesCount: after any sequence of stores and removals the counts are right.
func TestCopiesCount(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	most := 0
	for i := range 400 {
		key := fmt.Sprint(i % 37)
		o := put(t, s, key, make([]byte, (i*7919)%(100<<10)), bodies.Meta{Copied: i%3 == 0})
		switch i % 5 {
		case 0:
			s.Delete(key)
		case 1:
			s.Update(o, bodies.Meta{Data: make([]byte, 9000)})
		}

		most = max(most, len(s.copies.order))

	}
	s.index.CleanUp()
	var all, copied int64
	for o := range s.index.Values() {
		all += int64(o.grains)
		if o.Copied() {
			copied += int64(o.grains)
		}
	}
	if c := &s.copies; c.held != all || c.grains.Load() != copied || all*grain > 1<<20 || most == 0 {
		t.Errorf("%d grains, %d of them in %d copies; the index has %d and %d", c.held, c.grains.Load(), len(c.order), all, copied)
	}
	for key := range s.Keys() {
		s.Delete(key)
	}
	s.index.CleanUp()
	if c := &s.copies; c.held != 0 || c.grains.Load() != 0 || len(c.order)-c.left > 0 {
		t.Errorf("an empty store has %d grains, %d of them in %d copies", c.held, c.grains.Load(), len(c.order))
	}
}
