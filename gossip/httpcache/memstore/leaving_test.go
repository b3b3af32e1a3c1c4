package memstore

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// counted opens a store whose objects' labels are the words of their descriptions, and counts the calls of its hooks:
// by key, those for what comes minus those for what goes. A description "bad" cannot be decoded.
func counted(maxBytes int64) (s *store, held, listed map[string]int) {
	held, listed = map[string]int{}, map[string]int{}
	count := func(of map[string]int, by int) func(string) {
		return func(key string) {
			if of[key] += by; of[key] == 0 {
				delete(of, key)
			}
		}
	}
	return open(maxBytes, bodies.Hooks{
		Stored: count(held, 1), Evicted: count(held, -1), Listed: count(listed, 1), Unlisted: count(listed, -1),
		Labels: func(data []byte) []string { return strings.Fields(string(data)) },
		Decode: func(_ string, data []byte) (any, error) {
			if string(data) == "bad" {
				return nil, errors.New("bad")
			}
			return data, nil
		},
	}), held, listed
}

func write(t *testing.T, s *store, key string, b []byte) *bodies.Stream {
	t.Helper()
	w, err := s.Create(key, int64(len(b)))
	if err == nil {
		err = w.Write(t.Context(), b)
	}
	if err != nil {
		t.Fatalf("storing %d bytes: %v", len(b), err)
	}
	return w
}

// store stores a body of 1,000 bytes.
func (s *store) store(t *testing.T, key, labels string, until time.Time) bodies.Object {
	t.Helper()
	o, err := write(t, s, key, make([]byte, 1000)).Commit(bodies.Meta{Data: []byte(labels), ListUntil: until})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func keysOf(objects func(func(bodies.Object) bool)) string {
	var keys []string
	for o := range objects {
		keys = append(keys, o.Key())
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// TestNothingStays: whichever way an object leaves, nothing of it stays: no label, no byte, no place in an order.
func TestNothingStays(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, s *store, o bodies.Object){
		"deleted by its key": func(_ *testing.T, s *store, o bodies.Object) { s.Delete(o.Key()) },
		"deleted itself":     func(_ *testing.T, s *store, o bodies.Object) { s.DeleteObject(o) },
		"replaced": func(t *testing.T, s *store, o bodies.Object) {
			s.DeleteObject(s.store(t, o.Key(), "d", time.Time{}))
		},
		"described anew": func(t *testing.T, s *store, o bodies.Object) {
			fresh, err := s.Update(o, bodies.Meta{Data: []byte("e")})
			if err != nil || fresh.Size() != o.Size() {
				t.Fatalf("Update() = %v, %v", fresh, err)
			}
			if _, err := s.Update(o, bodies.Meta{}); err != bodies.ErrGone || s.DeleteObject(o) {
				t.Errorf("the former object can still be changed: %v", err)
			}
			s.DeleteObject(fresh)
		},
		"described badly": func(t *testing.T, s *store, o bodies.Object) {
			if _, err := s.Update(o, bodies.Meta{Data: []byte("bad")}); !errors.Is(err, bodies.ErrCorrupt) {
				t.Errorf("Update() = %v, want ErrCorrupt", err)
			}
		},
		"evicted": func(t *testing.T, s *store, o bodies.Object) {
			s.Get("other")
			big := make([]byte, s.max/4)
			for i := range 4 {
				w := write(t, s, "big", big[:len(big)-i])
				s.Get("other") // used last
				w.Commit(bodies.Meta{})
			}
			if s.Delete(o.Key()) {
				t.Error("it was not evicted")
			}
			s.Delete("big")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, held, listed := counted(6000)
			until := time.Now().Add(time.Hour)
			o, other := s.store(t, "one", "a b", until), s.store(t, "other", "b c", until)
			if got := keysOf(s.Labelled("b")); got != "one other" {
				t.Fatalf("Labelled(b) = %q, want both", got)
			}
			if leave(t, s, o); keysOf(s.Labelled("a")) != "" || keysOf(s.Labelled("b")) != "other" || keysOf(s.Listed()) != "other" {
				t.Errorf("Labelled(a) = %q, Labelled(b) = %q, Listed() = %q, want only the other", keysOf(s.Labelled("a")), keysOf(s.Labelled("b")), keysOf(s.Listed()))
			}
			if o.(*object).expiry.Stop() {
				t.Error("the timer of its listing runs on")
			}
			if got := slices.Sorted(maps.Keys(s.labels)); !slices.Equal(got, []string{"b", "c"}) {
				t.Errorf("there are the labels %q, want those of the other", got)
			}
			if !s.DeleteObject(other) || s.Delete("other") {
				t.Error("an object is not deleted once")
			}
			if n := s.own.Len() + s.copies.Len(); len(s.labels)+len(s.objects)+len(held)+len(listed)+n != 0 || s.bytesLocked() != 0 {
				t.Errorf("at last there are the labels %v, the objects %v, %v held and %v listed, %d in order, %d bytes", s.labels, s.objects, held, listed, n, s.bytesLocked())
			}
		})
	}
}

// TestRefused: a body that is not stored leaves nothing, and no memory stays reserved for it.
func TestRefused(t *testing.T) {
	const room = 4 << 20
	for name, tc := range map[string]struct {
		size int
		m    bodies.Meta
		end  func(s *store, w *bodies.Stream) error
		want error
	}{
		"unwanted":               {1000, bodies.Meta{Wanted: func() bool { return false }}, nil, bodies.ErrUnwanted},
		"unwanted, and long":     {room / 4, bodies.Meta{Wanted: func() bool { return false }}, nil, bodies.ErrUnwanted},
		"a long description":     {1000, bodies.Meta{Data: make([]byte, maxData+1)}, nil, bodies.ErrTooLarge},
		"one that can't be read": {room / 4, bodies.Meta{Data: []byte("bad")}, nil, bodies.ErrCorrupt},
		"aborted":                {room / 4, bodies.Meta{}, func(_ *store, w *bodies.Stream) error { w.Abort(); return nil }, nil},
		"the store is closed":    {room / 4, bodies.Meta{}, func(s *store, w *bodies.Stream) error { s.Close(); _, err := w.Commit(bodies.Meta{}); return err }, bodies.ErrClosed},
	} {
		s, held, _ := counted(room)
		w := write(t, s, "k", make([]byte, tc.size))
		if tc.size == room/4 && s.writing == 0 {
			t.Errorf("%s: nothing is reserved for a long body that arrives", name)
		}
		var err error
		if tc.end != nil {
			err = tc.end(s, w)
		} else {
			_, err = w.Commit(tc.m)
		}
		if !errors.Is(err, tc.want) || s.bytesLocked() != 0 || len(held) != 0 || len(s.objects) != 0 {
			t.Errorf("%s: %v, %d bytes, %v held; want %v and nothing", name, err, s.bytesLocked(), held, tc.want)
		}
	}
}

// TestBounds: a body may take a quarter of the store, those that arrive half of it, and all together no more than all.
func TestBounds(t *testing.T) {
	const room = 4 << 20
	s, held, _ := counted(room)
	if _, err := s.Create("k", room/4+1); err != bodies.ErrTooLarge {
		t.Errorf("Create(a quarter and a byte) = %v, want ErrTooLarge", err)
	}
	w, _ := s.Create("k", -1)
	if err := w.Write(t.Context(), make([]byte, room/4)); err != nil || s.writing == 0 {
		t.Errorf("Write(a quarter) = %v, %d bytes reserved", err, s.writing)
	}
	if err := w.Write(t.Context(), []byte("x")); err != bodies.ErrNoFollower {
		t.Errorf("Write() of a byte too many = %v, want ErrNoFollower", err)
	}
	if _, err := w.Commit(bodies.Meta{}); !errors.Is(err, bodies.ErrTooLarge) || s.bytesLocked() != 0 {
		t.Errorf("Commit() of a quarter and a byte = %v, %d bytes taken", err, s.bytesLocked())
	}
	for i := range 10 {
		if _, err := write(t, s, string(rune('a'+i)), make([]byte, room/10)).Commit(bodies.Meta{}); err != nil {
			t.Fatal(err)
		}
	}
	full, stored := 0, 0
	var arriving []*bodies.Stream
	for i := range 5 {
		w, _ := s.Create(string(rune('A'+i)), room/4)
		switch err := w.Write(t.Context(), make([]byte, room/4)); err {
		case nil:
			arriving = append(arriving, w)
		case bodies.ErrNoFollower:
			full++
			w.Abort()
		default:
			t.Errorf("Write() = %v", err)
		}
		if s.bytesLocked() > room || s.writing > room/2 {
			t.Errorf("%d bytes are taken, %d by bodies that arrive", s.bytesLocked(), s.writing)
		}
	}
	for _, w := range arriving {
		if _, err := w.Commit(bodies.Meta{}); err != nil {
			t.Errorf("Commit() = %v", err)
		}
		stored++
	}
	if stored != 2 || full != 3 || s.writing != 0 || s.bytesLocked() > room || len(held) != len(s.objects) {
		t.Errorf("%d of five were stored, %d refused; %d bytes reserved, %d taken; %d held, %d there", stored, full, s.writing, s.bytesLocked(), len(held), len(s.objects))
	}
}

// TestListed: an object is listed until its time, and its successor longer.
func TestListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, listed := counted(1 << 20)
		now := time.Now()
		s.store(t, "past", "", now.Add(-time.Second))
		s.store(t, "now", "", now)
		s.store(t, "none", "", time.Time{})
		s.store(t, "hour", "", now.Add(time.Hour))
		s.store(t, "longer", "", now.Add(time.Hour))
		s.store(t, "longer", "", now.Add(2*time.Hour))
		s.store(t, "ever", "", now.AddDate(10000, 0, 0))
		for _, want := range []string{"ever hour longer", "ever longer", "ever"} {
			if got := strings.Join(slices.Sorted(maps.Keys(listed)), " "); got != want || keysOf(s.Listed()) != want {
				t.Errorf("after %v Listed() = %q, the hooks say %q; want %q", time.Since(now), keysOf(s.Listed()), got, want)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
		}
		ever, _ := s.Get("ever")
		if s.Close(); ever.(*object).expiry.Stop() {
			t.Error("a timer of a closed store runs on")
		}
		if _, ok := s.Get("ever"); ok || len(slices.Collect(s.Keys())) > 0 || s.Close() != bodies.ErrClosed {
			t.Error("a closed store has objects, or can be closed again")
		}
	})
}

// TestUpdateOfACopy: a copy that is described anew is a copy still.
func TestUpdateOfACopy(t *testing.T) {
	s, _, _ := counted(1 << 20)
	for copied, in := range map[bool]*order{false: &s.own, true: &s.copies} {
		o, err := write(t, s, "k", nil).Commit(bodies.Meta{Copied: copied})
		if err != nil {
			t.Fatal(err)
		}
		if o, err = s.Update(o, bodies.Meta{Copied: !copied}); err != nil || o.(*object).in != in {
			t.Errorf("Update() of one with copied %v: %v, in the other order %v", copied, err, o.(*object).in != in)
		}
	}
}

// TestViews: a view has the parts of a body, also when its object has left, and no other bytes.
func TestViews(t *testing.T) {
	s, _, _ := counted(1 << 20)
	b, data := []byte("0123456789"), []byte("described")
	o, err := write(t, s, "k", b).Commit(bodies.Meta{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	clear(data) // which is the caller's
	d, _ := s.Describe(o)
	v, err := s.Open(o, d)
	if err != nil || string(d.Value().([]byte)) != "described" {
		t.Fatalf("Open() = %v, described as %q", err, d.Value())
	}
	s.DeleteObject(o)
	for off := int64(-1); off <= 11; off++ {
		for n := int64(-1); n <= 11; n++ {
			r, err := v.Source(off, n)
			if ok := 0 <= off && 0 <= n && off+n <= 10; ok != (err == nil) {
				t.Errorf("Source(%d, %d) = %v", off, n, err)
			} else if ok {
				if got, _ := io.ReadAll(r); !bytes.Equal(got, b[off:off+n]) {
					t.Errorf("Source(%d, %d) has %q", off, n, got)
				}
			}
		}
	}
	if sums := v.Sums(); sums.Size != 10 || sums.Len() != 1 {
		t.Errorf("Sums() = %v", sums)
	}
}

// TestMemoryTaken: an object that is used stays before others, one that is larger than the store does not stay, and a
// body takes little more memory than its length.
func TestMemoryTaken(t *testing.T) {
	s, held, _ := counted(3 * (overhead + 1100))
	for _, key := range []string{"a", "b", "c"} {
		s.store(t, key, "", time.Time{})
	}
	s.Get("a")
	s.store(t, "d", "", time.Time{})
	if got := strings.Join(slices.Sorted(maps.Keys(held)), " "); got != "a c d" {
		t.Errorf("the store has %q, want all but b", got)
	}
	s, held, _ = counted(overhead + 200)
	for _, copied := range []bool{false, true} {
		if _, err := write(t, s, "k", make([]byte, 300)).Commit(bodies.Meta{Copied: copied}); err != nil || len(held) > 0 || s.bytesLocked() != 0 {
			t.Errorf("an object that is larger than the store, copied %v: %v, %v held, %d bytes", copied, err, held, s.bytesLocked())
		}
	}
	s, _, _ = counted(64 << 20)
	for n := 1000; n < 1<<20; n += n / 3 {
		w, _ := s.Create("k", -1)
		for off := 0; off < n; off += 700 {
			w.Write(t.Context(), make([]byte, min(700, n-off)))
		}
		o, err := w.Commit(bodies.Meta{})
		if most := int64(n+n/4) + overhead + 10; err != nil || o.Size() != int64(n) || o.(*object).bytes > most {
			t.Errorf("a body of %d bytes takes %d, %v; want at most %d", n, o.(*object).bytes, err, most)
		}
	}
}
