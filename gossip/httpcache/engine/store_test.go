package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// room is the size of the stores of these tests.
const room = 8 << 20

// overStores runs a test over every store. It gets the store, with labels, and a function that returns how often
// each hook was called for a key: Stored less Evicted, and Listed less Unlisted.
func overStores(t *testing.T, f func(t *testing.T, s bodies.Store, held func(key string) (stored, listed int64))) {
	open := map[string]func(t *testing.T, h bodies.Hooks) bodies.Store{
		"disk": func(t *testing.T, h bodies.Hooks) bodies.Store {
			s, err := diskstore.Open(diskstore.Options{Dir: t.TempDir(), MaxBytes: room, MemoryBytes: 1 << 20, Hooks: h})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"memory": func(t *testing.T, h bodies.Hooks) bodies.Store {
			s, err := memstore.Open(room)(h)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls sync.Map // *[2]atomic.Int64 by key
				count := func(key string) *[2]atomic.Int64 {
					n, _ := calls.LoadOrStore(key, new([2]atomic.Int64))
					return n.(*[2]atomic.Int64)
				}
				s := open(t, bodies.Hooks{
					Stored: func(key string) { count(key)[0].Add(1) }, Evicted: func(key string) { count(key)[0].Add(-1) },
					Listed: func(key string) { count(key)[1].Add(1) }, Unlisted: func(key string) { count(key)[1].Add(-1) },
					Labels: func(data []byte) []string {
						if i := bytes.IndexByte(data, '#'); i >= 0 {
							return []string{string(data[i:])}
						}
						return nil
					},
				})
				f(t, s, func(key string) (int64, int64) { n := count(key); return n[0].Load(), n[1].Load() })
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func bodyOf(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// put stores an object; in pieces, if its length is not announced.
func put(s bodies.Store, key string, b []byte, announced bool, m bodies.Meta) (bodies.Object, error) {
	size := int64(-1)
	if announced {
		size = int64(len(b))
	}
	w, err := s.Create(key, size)
	if err != nil {
		return nil, err
	}
	for p := range slices.Chunk(b, 50_001) {
		if err := w.Write(context.Background(), p); err != nil {
			w.Abort()
			return nil, err
		}
	}
	return w.Commit(m)
}

// get returns the description and the body under a key; an empty description = there is none.
func get(t *testing.T, s bodies.Store, key string) (string, []byte) {
	t.Helper()
	o, ok := s.Get(key)
	if !ok {
		return "", nil
	}
	about, err := s.Describe(o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Open(o, about)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	src, err := v.Source(0, o.Size())
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(v.Sums().Check(src, 0, o.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(about.Value().([]byte)), b
}

// TestStoreKeeps: what is stored is found, whole and in part, until it is replaced or removed, by its key and by
// its label; and the hooks say so.
func TestStoreKeeps(t *testing.T) {
	overStores(t, func(t *testing.T, s bodies.Store, held func(string) (int64, int64)) {
		for _, n := range []int{0, 1, 1000, bodies.BlockSize, bodies.BlockSize + 1, 3*bodies.BlockSize + 5, 1 << 20} {
			for _, announced := range []bool{true, false} {
				key, old, b := fmt.Sprint(n, announced), bodyOf(1, n+7), bodyOf(2, n)
				was, err := put(s, key, old, announced, bodies.Meta{Data: []byte("old#x")})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := put(s, key, b, announced, bodies.Meta{Data: []byte("new#y" + key), ListUntil: time.Now().Add(time.Minute)}); err != nil {
					t.Fatal(err)
				}
				if about, got := get(t, s, key); about != "new#y"+key || !bytes.Equal(got, b) {
					t.Errorf("%s: %q, %d bytes", key, about, len(got))
				}
				if stored, listed := held(key); stored != 1 || listed != 1 {
					t.Errorf("%s: stored %d, listed %d", key, stored, listed)
				}
				if s.DeleteObject(was) {
					t.Errorf("%s: removed an object that was replaced", key)
				}
				if _, err := s.Update(was, bodies.Meta{}); !errors.Is(err, bodies.ErrGone) {
					t.Errorf("%s: described an object that was replaced, %v", key, err)
				}
				o, _ := s.Peek(key)
				fresh, err := s.Update(o, bodies.Meta{Data: []byte("newer#z" + key)})
				if err != nil {
					t.Fatal(err)
				}
				if about, got := get(t, s, key); about != "newer#z"+key || !bytes.Equal(got, b) {
					t.Errorf("%s: after Update %q, %d bytes", key, about, len(got))
				}
				if stored, listed := held(key); stored != 1 || listed != 0 {
					t.Errorf("%s: after Update stored %d, listed %d", key, stored, listed)
				}
				if of := slices.Collect(s.Labelled("#z" + key)); len(of) != 1 || of[0] != fresh || len(slices.Collect(s.Labelled("#y"+key))) != 0 {
					t.Errorf("%s: labelled are %v", key, of)
				}
				if !s.Delete(key) || s.Delete(key) {
					t.Errorf("%s: not removed once", key)
				}
				if stored, listed := held(key); stored != 0 || listed != 0 {
					t.Errorf("%s: after Delete stored %d, listed %d", key, stored, listed)
				}
			}
		}
		if n := len(slices.Collect(s.Keys())) + len(slices.Collect(s.Labelled("#x"))); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// TestStoreLists: an object is listed until its time is over.
func TestStoreLists(t *testing.T) {
	overStores(t, func(t *testing.T, s bodies.Store, held func(string) (int64, int64)) {
		for i := range 10 {
			if _, err := put(s, fmt.Sprint(i), nil, true, bodies.Meta{ListUntil: time.Now().Add(time.Duration(i) * time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			time.Sleep(time.Second / 2)
			synctest.Wait()
			if n := len(slices.Collect(s.Listed())); n != 9-i {
				t.Errorf("after %d.5 s %d are listed", i, n)
			}
			if _, listed := held(fmt.Sprint(i)); listed != 0 {
				t.Errorf("%d is listed still", i)
			}
			time.Sleep(time.Second / 2)
		}
	})
}

// TestStoreIsBounded: a store that is filled several times holds no more than fits, and what was used last.
func TestStoreIsBounded(t *testing.T) {
	overStores(t, func(t *testing.T, s bodies.Store, held func(string) (int64, int64)) {
		if _, err := put(s, "used", bodyOf(1, 100_000), true, bodies.Meta{}); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			key := fmt.Sprint(i)
			if _, err := put(s, key, bodyOf(uint64(i), 100_000+i), i%2 == 0, bodies.Meta{Copied: i%3 == 0}); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Get("used"); !ok {
				t.Fatalf("the object used most went for number %d", i)
			}
		}
		var sum int64
		for key := range s.Keys() {
			if o, ok := s.Peek(key); ok {
				sum += o.Size()
			}
		}
		if sum > room || sum < room/2 {
			t.Errorf("%d bytes are held", sum)
		}
		for i := range 200 {
			_, there := s.Peek(fmt.Sprint(i))
			if stored, _ := held(fmt.Sprint(i)); (stored == 1) != there {
				t.Errorf("%d: stored %d, found %v", i, stored, there)
			}
		}
		if _, err := s.Create("k", room); !errors.Is(err, bodies.ErrTooLarge) {
			t.Errorf("Create() of what does not fit: %v", err)
		}
	})
}

// TestStoreFollowers: all followers of a body get it, even if it is not stored since it turns out to be too long;
// and the error if it breaks off. A closed follower gets nothing.
func TestStoreFollowers(t *testing.T) {
	overStores(t, func(t *testing.T, s bodies.Store, held func(string) (int64, int64)) {
		for _, n := range []int{0, 10, 300_000, room/4 + 1000} {
			for _, whole := range []bool{true, false} {
				b := bodyOf(3, n)
				w, err := s.Create("k", -1)
				if err != nil {
					t.Fatal(err)
				}
				closed, _ := w.Follow(t.Context())
				closed.Close()
				if _, err := closed.Read(make([]byte, 1)); err != io.ErrClosedPipe {
					t.Errorf("Read() of a closed follower: %v", err)
				}
				var all sync.WaitGroup
				for i := range 3 {
					f, _ := w.Follow(t.Context())
					all.Go(func() {
						defer f.Close()
						time.Sleep(time.Duration(i) * time.Millisecond)
						got, err := io.ReadAll(f)
						if !bytes.Equal(got, b) || (err == nil) != whole || !whole && !errors.Is(err, bodies.ErrBrokenOff) {
							t.Errorf("n=%d whole=%v: follower %d got %d bytes, %v", n, whole, i, len(got), err)
						}
					})
				}
				for p := range slices.Chunk(b, 77_777) {
					if err := w.Write(t.Context(), p); err != nil {
						t.Fatal(err)
					}
				}
				fits := n <= room/4
				if !whole {
					w.Abort()
				} else if _, err := w.Commit(bodies.Meta{}); fits && err != nil || !fits && !errors.Is(err, bodies.ErrTooLarge) {
					t.Errorf("n=%d: Commit() = %v", n, err)
				}
				all.Wait()
				if stored, _ := held("k"); (stored == 1) != (whole && fits) {
					t.Errorf("n=%d whole=%v: stored %d", n, whole, stored)
				}
				s.Delete("k")
			}
		}
	})
}

// TestStoreUnwanted: an object that was removed while it arrived does not come back, however its end and the
// removal meet: Meta.Wanted is asked when nothing can come between its answer and the insertion.
func TestStoreUnwanted(t *testing.T) {
	overStores(t, func(t *testing.T, s bodies.Store, held func(string) (int64, int64)) {
		refused := 0
		for i := range 300 {
			key := fmt.Sprint(i)
			var asked, removed atomic.Bool
			var all sync.WaitGroup
			var err error
			all.Go(func() {
				wanted := func() bool {
					ok := !removed.Load()
					asked.Store(true)
					for range 200 {
						runtime.Gosched() // so that the removal comes now, if it can
					}
					return ok
				}
				_, err = put(s, key, bodyOf(1, 100), true, bodies.Meta{Wanted: wanted})
			})
			all.Go(func() {
				for i%2 == 0 && !asked.Load() {
					runtime.Gosched()
				}
				removed.Store(true)
				s.Delete(key)
			})
			all.Wait()
			if _, there := s.Peek(key); there {
				t.Errorf("%d came back", i)
			}
			if err != nil && !errors.Is(err, bodies.ErrUnwanted) {
				t.Fatal(err)
			} else if err != nil {
				refused++
			}
			if stored, _ := held(key); stored != 0 {
				t.Errorf("%d: stored %d", i, stored)
			}
		}
		if _, err := put(s, "k", nil, true, bodies.Meta{Wanted: func() bool { return false }}); !errors.Is(err, bodies.ErrUnwanted) {
			t.Errorf("Commit() of what is not wanted: %v", err)
		}
		t.Logf("%d of 300 were refused", refused)
	})
}
