//go:build linux

package diskstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// A frozenFS is the system's, whose reads or writes wait while there is a channel, until that is closed.
type frozenFS struct {
	system
	reads, writes atomic.Pointer[chan struct{}]
}

type frozenFile struct {
	File
	of *frozenFS
}

func thaw(gate *atomic.Pointer[chan struct{}]) {
	if c := gate.Load(); c != nil {
		<-*c
	}
}

func (d *frozenFS) Create(name string) (File, error) {
	thaw(&d.writes)
	f, err := d.system.Create(name)
	return frozenFile{f, d}, err
}

func (d *frozenFS) Open(name string) (File, error) {
	thaw(&d.reads)
	f, err := d.system.Open(name)
	return frozenFile{f, d}, err
}

func (f frozenFile) ReadAt(p []byte, off int64) (int, error) {
	thaw(&f.of.reads)
	return f.File.ReadAt(p, off)
}

func (f frozenFile) WriteAt(p []byte, off int64) (int, error) {
	thaw(&f.of.writes)
	return f.File.WriteAt(p, off)
}

// Once a disk has done nothing for a while, bodies pass through, and objects that only it has can't be read, until it goes
// on: no request waits for it. Nothing that is stored is lost by that.
func TestDiskHangs(t *testing.T) {
	for _, large := range []int{1000, 5 * blockSize} {
		t.Run(fmt.Sprint(large), func(t *testing.T) {
			t.Parallel()
			disk := new(frozenFS)
			s := open(t, Options{FS: disk})
			want := body(1, large)
			put(t, s, "stored", want, bodies.Meta{})
			o, _ := s.Get("stored")
			gate := make(chan struct{})
			disk.reads.Store(&gate)
			disk.writes.Store(&gate)

			waiting := make(chan error, 2) // those that were under way when it began
			go func() { _, _, err := read(s, "stored"); waiting <- err }()
			go func() { _, err := keep(s, "written", want); waiting <- err }()
			time.Sleep(patience + patience/2)

			done := make(chan bool)
			go func() {
				defer close(done)
				for i := range 10 {
					w, err := s.Create(fmt.Sprint("new ", i), int64(large))
					if err != nil {
						t.Error(err)
						return
					}
					f, _ := w.Follow(context.Background())
					got := make(chan []byte, 1)
					go func() { b, _ := follow(f, 64<<10, 0); got <- b }()
					if err := w.Write(context.Background(), want); err != nil {
						t.Errorf("Write() = %v", err)
					}
					if _, err := w.Commit(bodies.Meta{}); !errors.Is(err, errHangs) {
						t.Errorf("Commit() = %v, want %v", err, errHangs)
					}
					if b := <-got; !bytes.Equal(b, want) {
						t.Errorf("a follower got %d bytes of %d", len(b), len(want))
					}
					if _, _, err := read(s, "stored"); !errors.Is(err, errHangs) {
						t.Errorf("read() = %v, want %v", err, errHangs)
					}
					if _, err := s.Update(o, bodies.Meta{}); !errors.Is(err, errHangs) {
						t.Errorf("Update() = %v, want %v", err, errHangs)
					}
				}
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				t.Fatal("requests wait for the disk")
			}

			disk.reads.Store(nil)
			disk.writes.Store(nil)
			close(gate)
			for range 2 {
				if err := <-waiting; err != nil {
					t.Errorf("what was under way: %v", err)
				}
			}
			for _, key := range []string{"stored", "written"} {
				if _, got, err := read(s, key); !bytes.Equal(got, want) || err != nil {
					t.Errorf("read(%q) = %d bytes, %v", key, len(got), err)
				}
			}
			put(t, s, "new", want, bodies.Meta{})
			if st := s.Stats(); st.Corrupt != 0 || st.Objects != 3 {
				t.Errorf("Stats() = %+v", st)
			}
		})
	}
}

// keep stores a body.
func keep(s *store, key string, b []byte) (bodies.Object, error) {
	w, err := s.Create(key, int64(len(b)))
	if err != nil {
		return nil, err
	}
	if err := w.Write(context.Background(), b); err != nil {
		return nil, err
	}
	return w.Commit(bodies.Meta{})
}
