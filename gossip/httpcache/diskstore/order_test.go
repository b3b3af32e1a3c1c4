package diskstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// TestMovedTwice moves an object again while the marks of its first move are still queued, and
// makes them one by one: after each a start finds the object.
func TestMovedTwice(t *testing.T) {
	s := open(t, Options{})
	want := body(1, 1000)
	g := s.segments
	put(t, s, "key", want, bodies.Meta{})
	s.trash.work.Lock()
	defer s.trash.work.Unlock()
	for range 2 {
		g.appending.Lock()
		from := g.head
		from.emptied, g.head = true, nil
		g.appending.Unlock()
		g.empty(from, true, make([]byte, 4096))
	}
	if _, got, err := read(s, "key"); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	s.trash.mu.Lock()
	todo := s.trash.todo
	s.trash.todo = nil
	s.trash.mu.Unlock()
	if len(todo) != 8 { // twice: two marks, two files
		t.Errorf("%d things are to be done", len(todo))
	}
	for i, what := range todo {
		check(t, s.trash.do(what))
		if what.seg != nil {
			what.seg.release()
		}
		if _, got, err := read(killed(t, s), "key"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("killed after %d of them: %d bytes, %v", i+1, len(got), err)
		}
	}
}

// hooked is the system's disk with a hook that is called before each write.
type hooked struct {
	FS
	write func(name string)
}

type hookedFile struct {
	File
	name  string
	write func(name string)
}

func (h hooked) Create(name string) (File, error) {
	f, err := h.FS.Create(name)
	return hookedFile{f, name, h.write}, err
}

func (f hookedFile) WriteAt(p []byte, off int64) (int, error) {
	f.write(f.name)
	return f.File.WriteAt(p, off)
}

// TestUpdateReplaced updates an object's description while the object is replaced by one whose
// number is lower than that of the new description. A start at any time does not find the old body.
func TestUpdateReplaced(t *testing.T) {
	old, want := body(1, 1000), body(2, 1000)
	var (
		s         *store
		armed     bool
		begun     atomic.Bool
		described = make(chan struct{})
		committed = make(chan struct{})
		updated   = make(chan error)
		asked     int
		starts    []*store
	)
	disk := hooked{system{}, func(name string) {
		if armed && strings.HasSuffix(name, ".data") && begun.CompareAndSwap(false, true) {
			o, _ := s.peek("key")
			go func() {
				_, err := s.Update(o, bodies.Meta{Data: []byte("anew")})
				updated <- err
			}()
			<-described
		}
	}}
	s = open(t, Options{
		FS: disk,
		Hooks: bodies.Hooks{
			Labels: func(data []byte) []string {
				if string(data) == "anew" {
					if asked++; asked == 2 { // it is on the disk, and not yet in the index
						close(described)
						<-committed
					}
				}
				return nil
			},
			Evicted: func(string) {
				if armed {
					starts = append(starts, killed(t, s))
				}
			},
		},
	})
	put(t, s, "key", old, bodies.Meta{})
	s.trash.drain()
	armed = true
	put(t, s, "key", want, bodies.Meta{})
	close(committed)
	if err := <-updated; !errors.Is(err, bodies.ErrGone) {
		t.Errorf("Update: %v", err)
	}
	armed = false
	if len(starts) != 2 {
		t.Errorf("%d objects left, want the old one and its new description", len(starts))
	}
	for i, s := range append(starts, s, killed(t, s)) {
		if _, got, err := read(s, "key"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("start %d finds %d bytes, the old ones: %v, %v", i, len(got), bytes.Equal(got, old), err)
		}
	}
}

// TestUpdateKept: after Update has returned, a start finds the new description.
func TestUpdateKept(t *testing.T) {
	s := open(t, Options{})
	put(t, s, "key", body(1, 1000), bodies.Meta{Data: []byte("old")})
	o, _ := s.peek("key")
	if _, err := s.Update(o, bodies.Meta{Data: []byte("anew")}); err != nil {
		t.Fatal(err)
	}
	if data, got, err := read(killed(t, s), "key"); err != nil || string(data) != "anew" || !bytes.Equal(got, body(1, 1000)) {
		t.Errorf("%q, %d bytes, %v", data, len(got), err)
	}
}

// TestDeleteEvicted: an object that left the index a moment ago, and is not removed from the disk
// yet, does not come back after Delete or DeleteObject, though they find nothing.
func TestDeleteEvicted(t *testing.T) {
	s := open(t, Options{})
	s.trash.close() // no removals in the background
	for _, remove := range []func(bodies.Object) bool{s.DeleteObject, func(o bodies.Object) bool { return s.Delete(o.Key()) }} {
		put(t, s, "key", body(1, 1000), bodies.Meta{})
		o, _ := s.peek("key")
		if !s.removeObject(o) || remove(o) {
			t.Fatal("the object should have been there once")
		}
		if _, ok := killed(t, s).peek("key"); ok {
			t.Error("it is back")
		}
	}
}
