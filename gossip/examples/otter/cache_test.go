package otter

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// start starts two caches that know each other. heard gets a value when b has received a digest.
func start(t *testing.T, bytes uint64) (a, b *Cache, heard chan struct{}) {
	heard = make(chan struct{}, 1) // b's digests changed
	var caches []*Cache
	for _, name := range []string{"a", "b"} {
		server := httptest.NewUnstartedServer(nil)
		cfg := gossip.Config{Name: name, Bind: "127.0.0.1:0", Secret: []byte("at least 16 bytes, better random"),
			Service: server.Listener.Addr().String(), Objects: 1000, Logger: slog.New(slog.DiscardHandler)}
		if len(caches) > 0 {
			cfg.Join = []string{caches[0].Node.Addr()}
			cfg.Advanced.Hooks.Event = func(exchange.Event) {
				select {
				case heard <- struct{}{}:
				default: // it is told already
				}
			}
		}
		node, err := gossip.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		siblings, err := sibling.New(sibling.Config{Name: name, Locator: node})
		if err != nil {
			t.Fatal(err)
		}
		values, err := otter.New(Options(node.Holdings(), bytes))
		if err != nil {
			t.Fatal(err)
		}
		c := &Cache{Node: node, Siblings: siblings, Values: values}
		server.Config.Handler = c
		server.Start()
		t.Cleanup(func() { c.Node.Close(); server.Close() })
		if err := c.Node.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		caches = append(caches, c)
	}
	return caches[0], caches[1], heard
}

func TestSiblingHit(t *testing.T) {
	a, b, heard := start(t, 1<<20)
	loads := 0
	load := func(context.Context) ([]byte, error) {
		loads++
		return []byte("value of x"), nil
	}
	if _, err := a.Get(t.Context(), "x", load); err != nil {
		t.Fatal(err)
	}
	for timeout := time.After(10 * time.Second); len(b.Node.Candidates(nil, "GET http://value.invalid/?x")) == 0; {
		select {
		case <-heard:
		case <-timeout:
			t.Fatal("b has not heard of what a holds")
		}
	}
	for range 2 { // from a, and from where it is kept
		if value, err := b.Get(t.Context(), "x", load); err != nil || string(value) != "value of x" || loads != 1 {
			t.Errorf("Get = %q, %v after %d loads", value, err, loads)
		}
	}
	if got := b.Siblings.Stats(); got.Asked != 1 || got.Hits != 1 {
		t.Errorf("siblings: %+v", got)
	}
}

// TestFilterFollowsCache: during concurrent writes and evictions, the filter has the keys of the
// cache and no others.
func TestFilterFollowsCache(t *testing.T) {
	a, _, _ := start(t, 2000)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				key := fmt.Sprint((i*7 + worker) % 300)
				a.put(key, []byte("value of "+key))
				if i%5 == 0 {
					a.Values.Invalidate(key)
				}
			}
		})
	}
	wg.Wait()
	held := a.Node.Holdings()
	a.Values.CleanUp()
	n := 0
	for key := range a.Values.Keys() {
		n++
		if !held.Has(key) {
			t.Errorf("%s is cached, and the filter denies it", key)
		}
	}
	if n == 0 || held.Keys().Len() != n {
		t.Errorf("%d keys cached, %d in the filter", n, held.Keys().Len())
	}
}
