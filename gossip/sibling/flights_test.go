package sibling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// Concurrent calls for a value share one load.
func TestGetCollapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		c := w.newCache()
		var loads atomic.Int64
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				got, err := c.Get(t.Context(), "x", func(context.Context) ([]byte, time.Time, error) {
					loads.Add(1)
					time.Sleep(time.Second)
					return []byte("value"), time.Now().Add(time.Minute), nil
				})
				if err != nil || string(got) != "value" {
					t.Errorf("Get = %q, %v", got, err)
				}
			})
		}
		all.Wait()
		if loads.Load() != 1 {
			t.Errorf("%d loads", loads.Load())
		}
		time.Sleep(time.Minute)
		if c.fresh("x") != nil {
			t.Error("a value is there after it has expired")
		}
	})
}

// A load lasts as long as any caller waits for it, even if the first one has given up.
func TestLoadOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		c := w.newCache()
		canceled := make(chan time.Duration, 1)
		start := time.Now()
		load := func(ctx context.Context) ([]byte, time.Time, error) {
			select {
			case <-time.After(3 * time.Second):
				return []byte("value"), time.Time{}, nil
			case <-ctx.Done():
				canceled <- time.Since(start)
				return nil, time.Time{}, ctx.Err()
			}
		}
		get := func(id string, patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := c.Get(ctx, id, load)
			return err
		}
		go get("x", time.Second)
		time.Sleep(time.Millisecond)
		if err := get("x", 10*time.Second); err != nil {
			t.Errorf("the second caller: %v", err)
		}
		start = time.Now()
		go get("y", time.Second)
		time.Sleep(time.Millisecond)
		if err := get("y", 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits too short: %v", err)
		}
		if took := <-canceled; took.Round(time.Second) != 2*time.Second {
			t.Errorf("canceled after %v", took)
		}
		if err := get("y", 10*time.Second); err != nil {
			t.Errorf("after one that was canceled: %v", err)
		}
	})
}

// If a load panics, so does Get. If it ends its goroutine, Get returns an error.
func TestLoadPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		c := w.newCache()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			c.Get(t.Context(), "x", func(context.Context) ([]byte, time.Time, error) { panic("bad") })
		}()
		if _, err := c.Get(t.Context(), "x", func(context.Context) ([]byte, time.Time, error) {
			var goexit testing.T
			goexit.SkipNow()
			return nil, time.Time{}, nil
		}); err != errExit {
			t.Errorf("Goexit: %v", err)
		}
	})
}

// If the sibling that should have a value is silent, the value is loaded after a short time.
func TestSilentSiblingIsHedgedByLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.client.most = 1
		defer w.close()
		silent := false
		w.sibling(func(rw http.ResponseWriter, r *http.Request) {
			if silent {
				<-r.Context().Done()
				return
			}
			holds("there")(rw, r)
		})
		c := w.newCache()
		load := func(context.Context) ([]byte, time.Time, error) {
			time.Sleep(20 * time.Millisecond)
			return []byte("made"), time.Time{}, nil
		}
		for i := range enough {
			if got, err := c.Get(t.Context(), fmt.Sprint(i), load); string(got) != "there" {
				t.Errorf("Get = %q, %v", got, err)
			}
		}
		w.client.hedge.saved = 1
		silent = true
		start := time.Now()
		got, err := c.Get(t.Context(), "x", load)
		if took := time.Since(start); err != nil || string(got) != "made" || took > 100*time.Millisecond {
			t.Errorf("Get = %q, %v after %v", got, err, took)
		}
	})
}

// Concurrent requests for a response cause one call of the handler. If the response cannot be
// shared, the others wait only until that is known.
func TestServeCollapses(t *testing.T) {
	for name, tt := range map[string]struct {
		control string
		calls   int64
		took    time.Duration
	}{
		"for all":     {"public, max-age=60", 1, 2 * time.Second},
		"not for all": {"private", 20, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Config{})
			defer w.close()
			var calls atomic.Int64
			h := w.newCache().Wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				time.Sleep(time.Second)
				rw.Header().Set("Cache-Control", tt.control)
				io.WriteString(rw, "page")
				time.Sleep(time.Second)
			}))
			start := time.Now()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, httptest.NewRequest("GET", "http://site.test/x", nil))
					if rec.Body.String() != "page" {
						t.Errorf("%s: %q", name, rec.Body)
					}
				})
			}
			all.Wait()
			if took := time.Since(start); calls.Load() != tt.calls || took != tt.took {
				t.Errorf("%s: %d calls in %v, want %d in %v", name, calls.Load(), took, tt.calls, tt.took)
			}
		})
	}
}

// Concurrent requests for different variants of a URL get their own, whichever of them is first, and requests for the
// same variant still share one call.
func TestServeCollapsesVariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		var calls sync.Map
		h := w.newCache().Wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			language := r.Header.Get("Accept-Language")
			n, _ := calls.LoadOrStore(r.URL.Path+language, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
			time.Sleep(time.Second)
			rw.Header().Set("Cache-Control", "public, max-age=60")
			rw.Header().Set("Vary", "Accept-Language")
			io.WriteString(rw, "page in "+language)
		}))
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				time.Sleep(time.Duration(i/20) * time.Second / 4)
				for _, path := range []string{"/a", "/b"} {
					language := []string{"de", "en", "fr"}[(i+len(path))%3]
					r := httptest.NewRequest("GET", "http://site.test"+path, nil)
					r.Header.Set("Accept-Language", language)
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					if rec.Body.String() != "page in "+language {
						t.Errorf("%s in %s is %q", path, language, rec.Body)
					}
				}
			})
		}
		all.Wait()
	})
}

// Copies from siblings are evicted before other objects, until they are requested again.
func TestMemoryProbation(t *testing.T) {
	held := newHeld(t)
	m := NewMemory(held, 3, 0)
	m.Put("own 1", &Object{})
	m.Put("copy 1", &Object{Copied: true})
	m.Put("own 2", &Object{})
	m.Put("copy 2", &Object{Copied: true}) // in the place of copy 1
	for id, want := range map[string]bool{"own 1": true, "own 2": true, "copy 1": false, "copy 2": true} {
		if held.Has(id) != want {
			t.Errorf("%s is held: %v", id, !want)
		}
	}
	if _, ok := m.Get("copy 2"); !ok {
		t.Fatal("copy 2 is gone")
	}
	m.Put("own 3", &Object{}) // copy 2 has been asked for: own 1 is the oldest
	m.Put("copy 3", &Object{Copied: true})
	for id, want := range map[string]bool{"own 1": false, "own 2": false, "copy 2": true, "own 3": true, "copy 3": true} {
		if held.Has(id) != want {
			t.Errorf("then %s is held: %v", id, !want)
		}
	}
	m.Put("copy 3", &Object{}) // made here after all
	m.Drop("copy 2")
	if m.Len() != 2 || held.Filter().Len() != 2 || m.order.Len() != 2 || m.probation.Len() != 0 {
		t.Errorf("%d objects, %d listed, %d in order, %d on probation", m.Len(), held.Filter().Len(), m.order.Len(), m.probation.Len())
	}
}

// Owners are asked only while that pays. It pays again when others turn out to fetch the same
// objects.
func TestOwnersAreAskedWhileItPays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(2).coalescers["p0:80"]
		advertised := false
		c.cfg.Advertised = func(string) bool { return advertised }
		const rounds = 1000
		asks := func(pause time.Duration) (n uint64) {
			before := c.Asked.Load()
			for i := range rounds {
				key := uint64(i) * 0x9e3779b97f4a7c15
				c.cfg.Key = func(string) uint64 { return key }
				if owner, _ := c.owner(key); owner.Name == "p0" {
					continue // costs no message
				}
				c.InFlight(t.Context(), fmt.Sprint(i), 20*time.Millisecond)
				time.Sleep(pause)
			}
			return c.Asked.Load() - before
		}
		if n := asks(0); n < 32 || n > maxOpen+100 {
			t.Errorf("asked %d owners of which none knew of anybody", n)
		}
		if n := asks(0); n != 0 {
			t.Errorf("then still asked %d", n)
		}
		everything := invalidation.Target{Kind: invalidation.Everything}
		c.Invalidated(everything, 100)
		c.Invalidated(everything, 50)
		if n := asks(0); n != 150 {
			t.Errorf("asked %d after 150 objects were removed everywhere, want 150", n)
		}
		c.Invalidated(everything, 150)
		time.Sleep(removedFor)
		if n := asks(0); n != 0 {
			t.Errorf("asked %d after 150 objects were removed a minute ago, want 0", n)
		}
		advertised = true
		if n := asks(time.Second); n < rounds/4 {
			t.Errorf("asked %d after others had fetched the same", n)
		}
	})
}

// Servers of one site under two host names share objects by an Identity function.
func TestCacheIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		caches := []*Cache{newTestCache("me", w.client, NewMemory(nil, 0, 0)), w.newCache()}
		made := 0
		site := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			made++
			rw.Header().Set("Cache-Control", "public, max-age=60")
			io.WriteString(rw, "page")
		})
		for i, c := range caches {
			c.Identity = func(r *http.Request) string { return r.URL.Path }
			rec := httptest.NewRecorder()
			c.Wrap(site).ServeHTTP(rec, httptest.NewRequest("GET", fmt.Sprintf("http://node%d.test/x", i), nil))
			if rec.Body.String() != "page" {
				t.Errorf("%q", rec.Body)
			}
			if i == 0 {
				w.sibling(c.ServeHTTP)
			}
		}
		if made != 1 {
			t.Errorf("made %d times", made)
		}
	})
}
