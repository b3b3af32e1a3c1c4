package diskstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// TestHotTakesWhatComesAgain: while there is room, every loaded object is kept. A full set keeps
// an object that is loaded twice within a while, and one that is loaded once evicts no other.
func TestHotTakesWhatComesAgain(t *testing.T) {
	s := open(t, Options{MemoryBytes: 256 << 10})
	load := func(name string) *object {
		t.Helper()
		o, ok := s.peek(name)
		if !ok {
			o = put(t, s, name, body(1, 1000), bodies.Meta{})
		}
		v, err := s.Open(o, nil)
		if err != nil {
			t.Fatal(err)
		}
		v.Close()
		return o
	}
	kept := func(o *object) bool { _, ok := s.hot.get(o); return ok }

	if first := load("first"); !kept(first) {
		t.Fatal("not kept, with room for it")
	}
	n := 0
	for ; !s.hot.full.Load(); n++ {
		if n > 1000 {
			t.Fatal("never full")
		}
		load(fmt.Sprint(n))
		s.hot.cache.CleanUp()
	}
	if now := s.hot.bytes(); now > 256<<10 || now < 200<<10 {
		t.Errorf("full with %d bytes", now)
	}
	for i := range 10 {
		once := load(fmt.Sprint("once ", i))
		if kept(once) {
			t.Fatalf("%d: kept, though loaded once", i)
		}
		load(once.key)
		if !kept(once) {
			t.Fatalf("%d: not taken, though loaded again", i)
		}
	}
}

// TestViewAgain: the memory that was read for the description also serves the body.
func TestViewAgain(t *testing.T) {
	for _, memory := range []int64{0, 1 << 20} {
		s := open(t, Options{MemoryBytes: memory})
		for _, n := range []int{0, 1, 1000, blockSize, blockSize + 1} {
			o := put(t, s, fmt.Sprint(n), body(1, n), bodies.Meta{Data: []byte("about")})
			described, err := s.Describe(o)
			if err != nil {
				t.Fatal(err)
			}
			about := described.(*hotObject)
			v, err := s.Open(o, about)
			if err != nil {
				t.Fatal(err)
			}
			if want := o.file == nil || memory > 0 && n <= blockSize; want && v.(*view).hot != about {
				t.Fatalf("%d bytes: Open() read the body again", n)
			}
			var got bytes.Buffer
			if _, err := writeRange(v, &got, 0, int64(n)); err != nil || !bytes.Equal(got.Bytes(), body(1, n)) || string(v.(*view).Value().([]byte)) != "about" {
				t.Errorf("%d bytes: Open() gave %d, of %q, %v", n, got.Len(), v.(*view).Value(), err)
			}
			v.Close()
		}
	}
}

// TestLentMemory: a description that was opened once does not show what its memory has been lent to since.
func TestLentMemory(t *testing.T) {
	s := open(t, Options{})
	const n = 1000
	for i := range uint64(2) {
		put(t, s, fmt.Sprint(i), body(i, n), bodies.Meta{Data: []byte("about")})
	}
	o, _ := s.peek("0")
	about, err := s.Describe(o)
	check(t, err)
	first, err := s.Open(o, about)
	check(t, err)
	second, err := s.Open(o, about)
	check(t, err)
	check(t, first.Close())
	for range 100 { // one of them gets that memory
		other, _ := s.peek("1")
		v, err := s.Open(other, nil)
		check(t, err)
		defer v.Close()
	}
	third, err := s.Open(o, about)
	check(t, err)
	for _, v := range []bodies.View{second, third} {
		var got bytes.Buffer
		if _, err := writeRange(v, &got, 0, n); err != nil || !bytes.Equal(got.Bytes(), body(0, n)) {
			t.Errorf("the body of another object, or %v", err)
		}
		check(t, v.Close())
	}
	if about.Value() == nil || string(about.Value().([]byte)) != "about" {
		t.Errorf("described as %q", about.Value())
	}
}
