package diskstore_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

// TestRemovedOnFullDisk: what is removed while the disk takes no byte more, and no file, does not come back.
func TestRemovedOnFullDisk(t *testing.T) {
	disk := disktest.New()
	o := diskstore.Options{Dir: "/store", MaxBytes: 16 << 20, FS: disk}
	s, err := diskstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	const many = 600
	for i := range many {
		w, err := s.Create(fmt.Sprint(i), -1)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(t.Context(), content(i%50))
		if _, err := w.Commit(bodies.Meta{Data: fmt.Append(nil, i%50)}); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	disk.Inject(func(op disktest.Op, name string, b []byte) (int, error) {
		if op == disktest.Create || op == disktest.Write && len(b) > 1 && strings.HasPrefix(name, "/store/objects") {
			refused++
			return 0, syscall.ENOSPC
		}
		return len(b), nil
	})
	for i := range many {
		if i%3 > 0 {
			s.Delete(fmt.Sprint(i)) // unless turnover has dropped it
		}
	}
	after := disk.Killed()
	disk.Inject(nil)
	if s.Close(); refused == 0 {
		t.Error("the disk was never full")
	}
	o.FS = after
	if s, err = diskstore.Open(o); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range many {
		if _, ok := s.Peek(fmt.Sprint(i)); ok && i%3 > 0 { // turnover may have dropped some of the others, too
			t.Errorf("object %d is back", i)
		}
	}
}

// TestFullAtEveryWrite fills the disk at each of its operations in turn, and frees it some operations later: what was stored and not
// removed can be read or is gone, and after a kill nothing that was removed is back.
func TestFullAtEveryWrite(t *testing.T) {
	for at := 1; at < 500; at += *crashes {
		disk := disktest.New()
		o := diskstore.Options{Dir: "/store", MaxBytes: 4 << 20, FS: disk}
		s, err := diskstore.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		disk.Inject(func(op disktest.Op, _ string, b []byte) (int, error) {
			if op == disktest.Write || op == disktest.Create {
				if n++; n >= at && n < at+40 && len(b) != 1 {
					return len(b) / 2, syscall.ENOSPC
				}
			}
			return len(b), nil
		})
		held := map[string]int{}
		for i := range 150 {
			key := fmt.Sprint(i % 11)
			if i%4 == 3 {
				s.Delete(key)
				delete(held, key)
				continue
			}
			w, err := s.Create(key, -1)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(t.Context(), content(i))
			if _, err := w.Commit(bodies.Meta{Data: fmt.Append(nil, i)}); err == nil {
				held[key] = i
			}
		}
		after := disk.Killed()
		disk.Inject(nil)
		s.Close()
		o.FS = after
		if s, err = diskstore.Open(o); err != nil {
			t.Fatal(err)
		}
		for key := range s.Keys() {
			if _, ok := held[key]; !ok {
				t.Errorf("full at %d: %q was removed and is back", at, key)
			}
		}
		for key := range held { // it may have made room
			if _, ok := s.Peek(key); !ok {
				delete(held, key)
			}
		}
		verify(t, s, held, "")
		s.Close()
		if t.Failed() {
			return
		}
	}
}
