package sibling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// newHeld returns holdings with so many positions that no two objects share one. While a seed
// changes, a filter counts shared positions only approximately.
func newHeld(t *testing.T) *gossip.Holdings {
	t.Helper()
	filter, err := digest.NewSet(digest.Geometry{Bits: 1 << 40, Hashes: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return gossip.NewHoldings(filter)
}

// alone is the cluster of a cache without others.
type alone struct{ *Cache }

func (a alone) Invalidate(_ context.Context, targets ...invalidation.Target) error {
	for _, t := range targets {
		if err := t.Check(); err != nil {
			return err
		}
		a.invalidated(t)
	}
	return nil
}

func (alone) Concerning(string) ([]invalidation.ID, bool) { return nil, true }
func (alone) Applied(...invalidation.ID) bool             { return false }

// newTestCache returns a cache that is alone; siblings nil = none.
func newTestCache(name string, siblings *Client, store Store) *Cache {
	if siblings == nil {
		siblings = new(Client)
	}
	c := newCache(name, siblings, store)
	c.cluster = alone{c}
	return c
}

func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.by)
}

// newCache returns a cache with a Memory that asks w's siblings.
func (w *world) newCache() *Cache {
	return newTestCache("me", w.client, NewMemory(newHeld(w.t), 0, 0))
}

// A value of any name comes from the store, from a sibling that has it, or from the load function.
func TestCacheGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		a, b := newTestCache("me", w.client, NewMemory(nil, 0, 0)), w.newCache()
		value := func(v string) LoadFunc {
			return func(context.Context) ([]byte, time.Time, error) { return []byte(v), time.Time{}, nil }
		}
		names := []string{"x", "", "a b/?&#%+;=ü\x00\xff/../", "GET http://site.test/x", strings.Repeat("long ", 1000)}
		for i, name := range names {
			if got, err := a.Get(t.Context(), name, value(fmt.Sprint("value ", i))); err != nil || string(got) != fmt.Sprint("value ", i) {
				t.Errorf("Get(%q) = %q, %v", name, got, err)
			}
		}
		w.sibling(a.ServeHTTP)
		broken := errors.New("broken")
		fails := func(context.Context) ([]byte, time.Time, error) { return nil, time.Time{}, broken }
		for i, name := range names {
			for range 2 { // from a, and from where it was kept
				if got, err := b.Get(t.Context(), name, fails); err != nil || string(got) != fmt.Sprint("value ", i) {
					t.Errorf("Get(%q) = %q, %v", name, got, err)
				}
			}
		}
		if s := w.client.Stats(); s.Asked != uint64(len(names)) || s.Hits != s.Asked {
			t.Errorf("Stats = %+v", s)
		}
		if _, err := b.Get(t.Context(), "nobody's", fails); err != broken {
			t.Errorf("Get of what cannot be loaded: %v", err)
		}
		b.Store.Drop("x")
		b.MaxBytes = 5 // a's "value 0" is longer
		if got, err := b.Get(t.Context(), "x", value("longer")); err != nil || string(got) != "longer" {
			t.Errorf("Get of what is too long to be kept = %q, %v", got, err)
		}
		if _, ok := b.Store.Get("x"); ok {
			t.Error("what is too long was kept")
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Get(done, "y", fails); err != context.Canceled && err != broken {
			t.Errorf("Get that nobody waits for: %v", err)
		}
	})
}

// If a body breaks off, the next sibling is asked.
func TestCacheGetBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		w.sibling(func(rw http.ResponseWriter, r *http.Request) {
			markHit(rw.Header(), "p")
			rw.Header().Set("Content-Length", "10")
			rw.Write([]byte("part"))
			rw.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		})
		w.sibling(holds("whole"))
		got, err := w.newCache().Get(t.Context(), "x", func(context.Context) ([]byte, time.Time, error) { return nil, time.Time{}, errors.New("loaded") })
		if err != nil || string(got) != "whole" || w.recorded() != "p1:hit p1:failed p2:hit" {
			t.Errorf("Get = %q, %v; %s", got, err, w.recorded())
		}
	})
}

func TestNewCacheMisused(t *testing.T) {
	node := func(name string, objects int) *gossip.Node {
		n, err := gossip.New(gossip.Config{Name: name, Bind: "127.0.0.1:0", Objects: objects, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	store := NewMemory(nil, 0, 0)
	for want, try := range map[string]func() (*Cache, error){
		"needs a node and a store":  func() (*Cache, error) { return NewCache(nil, store, nil) },
		"needs a node":              func() (*Cache, error) { return NewCache(node("a", 1), nil, nil) },
		"set Objects":               func() (*Cache, error) { return NewCache(node("a", 0), store, nil) },
		`"a:b" cannot name a cache`: func() (*Cache, error) { return NewCache(node("a:b", 1), store, nil) },
	} {
		if _, err := try(); err == nil || !strings.HasPrefix(err.Error(), "sibling: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("NewCache: %v, want %q", err, want)
		}
	}
	c, err := NewCache(node("a", 1), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	if c.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil)); rec.Code != http.StatusForbidden {
		t.Errorf("what is no question: %d", rec.Code)
	}
}

// Memory stays within its bounds, evicts the least recently used objects, and advertises those that
// it has.
func TestMemory(t *testing.T) {
	held := newHeld(t)
	m := NewMemory(held, 3, 100)
	listed := func(want string) {
		t.Helper()
		var got string
		for _, id := range strings.Split("a b c d e f", " ") {
			_, ok := m.by[id]
			if ok != held.Has(id) {
				t.Errorf("%s is held: %v; listed: %v", id, ok, held.Has(id))
			}
			if ok {
				got += id
			}
		}
		if got != want || m.Len() != len(want) || held.Filter().Len() != len(want) {
			t.Errorf("held are %q, %d; %d listed; want %q", got, m.Len(), held.Filter().Len(), want)
		}
	}
	body := func(n int) *Object { return &Object{Body: make([]byte, n)} }
	for _, id := range []string{"a", "b", "c"} {
		m.Put(id, body(9)) // ten bytes with the identity
	}
	listed("abc")
	m.Get("a")
	m.Put("d", body(9))
	listed("acd")
	m.Put("e", &Object{Header: http.Header{"N": {"12345678"}}, Body: make([]byte, 80)}) // 90
	listed("de")
	m.Put("d", body(10))
	listed("d")
	m.Put("d", body(100)) // too large, so that the one before is none either
	m.Put("f", body(100))
	listed("")
	m.Drop("f")
	m.Put("f", body(99))
	listed("f")
	for id := range m.Identities() {
		m.Drop(id) // while they are listed
	}
	if listed(""); m.used != 0 {
		t.Errorf("%d bytes are in use by nothing", m.used)
	}
}

// The stored objects stay advertised while the seed changes and objects are added and removed.
func TestMemoryIdentitiesReseed(t *testing.T) {
	held := newHeld(t)
	m := NewMemory(held, 1000, 0)
	for i := range 1000 {
		m.Put(fmt.Sprint(i), &Object{})
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for worker := range 2 {
		all.Go(func() {
			for i := worker; ; i += 2 {
				select {
				case <-stop:
					return
				default:
					m.Put(fmt.Sprint(i%3000), &Object{})
				}
			}
		})
	}
	for seed := range uint64(5) {
		if err := held.Reseed(seed+1, m.Identities()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
	for id := range m.Identities() {
		if !held.Has(id) {
			t.Errorf("%s is held, and not listed", id)
		}
	}
	if held.Filter().Geometry().Seed != 5 || held.Filter().Len() != m.Len() || m.Len() != 1000 {
		t.Errorf("seed %d, %d held, %d listed", held.Filter().Geometry().Seed, m.Len(), held.Filter().Len())
	}
}

func TestMemoryFromManyGoroutines(t *testing.T) {
	held := newHeld(t)
	m := NewMemory(held, 100, 0)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 2000 {
				id := fmt.Sprint((i*7 + worker) % 300)
				if _, ok := m.Get(id); ok && i%3 == 0 {
					m.Drop(id)
				} else {
					m.Put(id, &Object{})
				}
			}
		})
	}
	all.Wait()
	n := 0
	for id := range m.Identities() {
		if n++; !held.Has(id) {
			t.Errorf("%s is held, and not listed", id)
		}
	}
	if n == 0 || n > 100 || m.Len() != n || held.Filter().Len() != n {
		t.Errorf("%d objects, Len = %d, %d listed", n, m.Len(), held.Filter().Len())
	}
}
