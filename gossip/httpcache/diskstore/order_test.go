package diskstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// killed opens a copy of a store's directory as it is now.
func killed(t *testing.T, s *store) *store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	check(t, os.CopyFS(dir, os.DirFS(s.opt.Dir)))
	return open(t, Options{Dir: dir})
}

// hooked is the system's disk with a hook that is called before each change of a file.
type hooked struct {
	FS
	change func(name string)
}

type hookedFile struct {
	File
	name   string
	change func(name string)
}

func (h hooked) Create(name string) (File, error) {
	h.change(name)
	f, err := h.FS.Create(name)
	return hookedFile{f, name, h.change}, err
}

func (h hooked) Remove(name string) error {
	h.change(name)
	return h.FS.Remove(name)
}

func (f hookedFile) WriteAt(p []byte, off int64) (int, error) {
	f.change(f.name)
	return f.File.WriteAt(p, off)
}

// TestMovedTwice moves an object, and again before its first removal is in the log: at each change of the disk a start finds
// it, and none finds it once it is deleted.
func TestMovedTwice(t *testing.T) {
	var s *store
	want := body(1, 1000)
	var changes atomic.Int64
	found := func(s *store) bool {
		_, got, err := read(s, "key")
		return err == nil && bytes.Equal(got, want)
	}
	s = open(t, Options{FS: hooked{system{}, func(string) {
		if changes.Load() > 0 && !found(killed(t, s)) {
			t.Errorf("change %d: the object is gone", changes.Load())
		}
		if changes.Load() > 0 {
			changes.Add(1)
		}
	}}})
	put(t, s, "key", want, bodies.Meta{})
	g := s.segments
	changes.Store(1)
	for range 2 {
		s.appending.Lock()
		from := g.head
		from.emptied, g.head = true, nil
		s.appending.Unlock()
		if !g.move(from, make([]byte, 4096)) || !found(s) {
			t.Fatal("the segment is still there, or the object is not")
		}
	}
	for left := 2; left > 1; { // run may be removing a file
		all, err := filepath.Glob(filepath.Join(g.dir(), "*.data"))
		check(t, err)
		left = len(all)
	}
	if n := changes.Swap(0); n < 10 {
		t.Errorf("%d changes", n)
	}
	if s.Delete("key"); found(killed(t, s)) {
		t.Error("it is back")
	}
}

// TestDeletedWhileMoved deletes an object at each change that moving it makes: no start finds it.
func TestDeletedWhileMoved(t *testing.T) {
	for at := 1; ; at++ {
		var s *store
		var changes atomic.Int64
		changes.Store(-1 << 30)
		deleted := make(chan bool)
		s = open(t, Options{FS: hooked{system{}, func(string) {
			if changes.Add(1) == int64(at) {
				s.removeObject(func() *object { o, _ := s.peek("key"); return o }())
				go func() { // it waits for the writer
					s.Delete("key")
					close(deleted)
				}()
			}
		}}})
		put(t, s, "key", body(1, 1000), bodies.Meta{})
		s.appending.Lock()
		from := s.segments.head
		from.emptied, s.segments.head = true, nil
		s.appending.Unlock()
		changes.Store(0)
		s.segments.move(from, make([]byte, 4096))
		if n := changes.Load(); n < int64(at) {
			if at < 6 {
				t.Errorf("%d changes", n)
			}
			return
		}
		<-deleted
		if _, ok := killed(t, s).peek("key"); ok {
			t.Errorf("deleted at change %d, it is back", at)
		}
	}
}

// TestUpdateReplaced updates an object's description while the object is replaced. A start at any time does not find the
// old body.
func TestUpdateReplaced(t *testing.T) {
	old, want := body(1, 1000), body(2, 1000)
	var s *store
	replaced := false
	anew := func(s *store) bool {
		_, got, err := read(s, "key")
		return err == nil && bytes.Equal(got, want)
	}
	s = open(t, Options{
		FS: hooked{system{}, func(string) {
			if replaced && !anew(killed(t, s)) {
				t.Error("a start finds the old object, or none")
			}
		}},
		Hooks: bodies.Hooks{Labels: func(data []byte) []string {
			if string(data) == "anew" && !replaced { // the new description is about to be written
				put(t, s, "key", want, bodies.Meta{})
				replaced = true
			}
			return nil
		}},
	})
	o := put(t, s, "key", old, bodies.Meta{})
	if _, err := s.Update(o, bodies.Meta{Data: []byte("anew")}); !errors.Is(err, bodies.ErrGone) || !replaced {
		t.Errorf("Update: %v", err)
	}
	s.flush()
	if !anew(s) || !anew(killed(t, s)) {
		t.Error("the new object is gone")
	}
}

// TestUpdateKept: after Update has returned, a start finds the new description.
func TestUpdateKept(t *testing.T) {
	for _, n := range []int{1000, 100_000} {
		s := open(t, Options{})
		put(t, s, "key", body(1, n), bodies.Meta{Data: []byte("old")})
		o, _ := s.peek("key")
		if _, err := s.Update(o, bodies.Meta{Data: []byte("anew")}); err != nil {
			t.Fatal(err)
		}
		if data, got, err := read(killed(t, s), "key"); err != nil || string(data) != "anew" || !bytes.Equal(got, body(1, n)) {
			t.Errorf("%q, %d bytes, %v", data, len(got), err)
		}
	}
}

// TestDeleteEvicted: an object that left the index a moment ago, and is not removed from the disk
// yet, does not come back after Delete or DeleteObject, though they find nothing.
func TestDeleteEvicted(t *testing.T) {
	s := open(t, Options{})
	for _, remove := range []func(bodies.Object) bool{s.DeleteObject, func(o bodies.Object) bool { return s.Delete(o.Key()) }} {
		put(t, s, "key", body(1, 1000), bodies.Meta{})
		o, _ := s.peek("key")
		if !s.removeObject(o) {
			t.Fatal("the object should have been there")
		}
		if _, ok := killed(t, s).peek("key"); !ok {
			t.Error("its removal is in the log already: this tests nothing")
		}
		if remove(o) {
			t.Fatal("it was there twice")
		}
		if _, ok := killed(t, s).peek("key"); ok {
			t.Error("it is back")
		}
	}
}
