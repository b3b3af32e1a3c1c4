package mapcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// start starts a cache and joins it to others.
func start(t *testing.T, name string, most int, join ...string) *Cache {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	node, err := gossip.New(gossip.Config{Name: name, Bind: "127.0.0.1:0", Join: join, Secret: []byte("at least 16 bytes, better random"),
		Service: server.Listener.Addr().String(), Logger: slog.New(slog.DiscardHandler), Objects: most})
	if err != nil {
		t.Fatal(err)
	}
	siblings, err := sibling.New(sibling.Config{Name: name, Locator: node})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cache{Node: node, Siblings: siblings, Most: most, Values: map[string][]byte{}}
	server.Config.Handler = c
	server.Start()
	t.Cleanup(func() { c.Node.Close(); server.Close() })
	if err := c.Node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func never(context.Context) ([]byte, error) {
	return nil, errors.New("loaded, though a sibling has it")
}

func TestSiblingHit(t *testing.T) {
	a := start(t, "a", 100)
	b := start(t, "b", 100, a.Node.Addr())
	for i := range 50 {
		value, err := a.Get(t.Context(), fmt.Sprint(i), func(context.Context) ([]byte, error) {
			return fmt.Append(nil, "value ", i), nil
		})
		if err != nil || string(value) != fmt.Sprint("value ", i) {
			t.Fatalf("Get(%d) = %q, %v", i, value, err)
		}
	}
	until := time.After(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); len(b.Node.Candidates(nil, "GET http://value.invalid/?49")) == 0; {
		select {
		case <-tick:
		case <-until:
			t.Fatal("b has not heard of what a holds")
		}
	}
	if value, err := b.Get(t.Context(), "49", never); err != nil || string(value) != "value 49" {
		t.Errorf("Get = %q, %v", value, err)
	}
	if value, err := b.Get(t.Context(), "49", never); err != nil || string(value) != "value 49" {
		t.Errorf("Get of what is held = %q, %v", value, err)
	}
	if m := b.Node.Members(); len(m) != 1 || m[0].Name != "a" {
		t.Errorf("members: %+v", m)
	}
	broken := errors.New("broken")
	if _, err := b.Get(t.Context(), "nobody's", func(context.Context) ([]byte, error) { return nil, broken }); err != broken {
		t.Errorf("Get of what cannot be loaded: %v", err)
	}
}

func TestFilterFollowsMap(t *testing.T) {
	c := start(t, "a", 100)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 1000 {
				name := fmt.Sprint((i*7 + worker) % 300)
				c.put(name, nil)
			}
		})
	}
	all.Wait()
	held := c.Node.Holdings()
	if n := len(c.Values); n == 0 || n > 100 || held.Keys().Len() != n {
		t.Errorf("%d values, %d keys in the filter", n, held.Keys().Len())
	}
	for name := range c.Values {
		if !held.Has(name) {
			t.Errorf("%s is held, and the filter denies it", name)
		}
	}
}
