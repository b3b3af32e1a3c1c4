package otter

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// start starts two caches that know each other; loads counts what both load, and heard
// gets a word when b has heard something.
func start(t *testing.T, bytes uint64) (a, b *Cache, loads *atomic.Int64, heard chan struct{}) {
	heard = make(chan struct{}, 1) // b's digests changed
	loads = new(atomic.Int64)
	load := func(_ context.Context, key string) ([]byte, error) {
		loads.Add(1)
		return []byte("value of " + key), nil
	}
	var caches []*Cache
	for _, name := range []string{"a", "b"} {
		server := httptest.NewUnstartedServer(nil)
		cfg := gossip.Config{Name: name, Bind: "127.0.0.1:0", Secret: []byte("at least 16 bytes, better random"),
			Service: server.Listener.Addr().String()}
		if len(caches) > 0 {
			cfg.Join = []string{caches[0].node.Addr()}
			cfg.Hooks.Event = func(exchange.Event) {
				select {
				case heard <- struct{}{}:
				default: // it is told already
				}
			}
		}
		c, err := New(cfg, bytes, load)
		if err != nil {
			t.Fatal(err)
		}
		server.Config.Handler = c
		server.Start()
		t.Cleanup(func() { c.node.Close(); server.Close() })
		if err := c.node.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		caches = append(caches, c)
	}
	return caches[0], caches[1], loads, heard
}

func TestSiblingHit(t *testing.T) {
	a, b, loads, heard := start(t, 1<<20)
	if _, err := a.Get(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	for timeout := time.After(10 * time.Second); len(b.node.CandidatesByKey(nil, b.key("x"))) == 0; {
		select {
		case <-heard:
		case <-timeout:
			t.Fatal("b has not heard of what a holds")
		}
	}
	if value, err := b.Get(t.Context(), "x"); err != nil || string(value) != "value of x" || loads.Load() != 1 {
		t.Errorf("Get = %q, %v after %d loads", value, err, loads.Load())
	}
}

// TestFilterFollowsCache: whatever is written and evicted at the same time, the
// filter holds the cache's keys and no others.
func TestFilterFollowsCache(t *testing.T) {
	a, _, _, _ := start(t, 2000)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				key := fmt.Sprint((i*7 + worker) % 300)
				a.put(key, []byte("value of "+key))
			}
		})
	}
	wg.Wait()
	a.values.CleanUp()
	n := 0
	for key := range a.values.Keys() {
		n++
		if !a.held.MayContain(a.key(key)) {
			t.Errorf("%s is cached, and the filter denies it", key)
		}
	}
	if n == 0 || a.held.Len() != n {
		t.Errorf("%d keys cached, %d in the filter", n, a.held.Len())
	}
}
