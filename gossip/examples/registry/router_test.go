package registry

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

const layer = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// start starts a router of a cluster.
func start(t testing.TB, name string, others ...*Router) *Router {
	t.Helper()
	cfg := gossip.Config{Name: name, Bind: "127.0.0.1:0", Secret: []byte("at least 16 bytes, better random"), Service: fmt.Sprintf("127.0.0.1:5%03d", len(others)),
		Objects: 1000, Logger: slog.New(slog.DiscardHandler)}
	for _, r := range others {
		cfg.Join = append(cfg.Join, r.Node.Addr())
	}
	node, err := gossip.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	if err := node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &Router{Node: node}
}

// finds waits until a look-up at r returns these nodes, in any order.
func finds(t testing.TB, r *Router, key string, count int, names ...string) *Peers {
	t.Helper()
	var got []string
	for range 1000 {
		peers, err := r.Lookup(t.Context(), key, count)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		want := map[string]bool{}
		for _, name := range names {
			want[name] = true
		}
		for _, p := range peers.list {
			got = append(got, p.Host)
			delete(want, p.Host)
		}
		if len(want) == 0 && len(got) == len(names) {
			return peers
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("Lookup(%q, %d) finds %q, want %q", key, count, got, names)
	return nil
}

// A key is found where it is advertised, until it is withdrawn; a router is ready once it knows another.
func TestAdvertise(t *testing.T) {
	a := start(t, "a")
	if ready, err := a.Ready(t.Context()); ready || err != nil {
		t.Errorf("alone: Ready = %v, %v", ready, err)
	}
	b := start(t, "b", a)
	c := start(t, "c", a, b)
	for range 3 { // again and again, as after a restart of the image store
		if err := a.Advertise(t.Context(), []string{layer, "docker.io/library/alpine:3"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Advertise(t.Context(), []string{layer}); err != nil {
		t.Fatal(err)
	}
	peers := finds(t, c, layer, 0, "a", "b")
	if ready, err := c.Ready(t.Context()); !ready || err != nil {
		t.Errorf("Ready = %v, %v", ready, err)
	}
	for _, p := range peers.list {
		if want := map[string]string{"a": "127.0.0.1:5000", "b": "127.0.0.1:5001"}[p.Host]; p.Addr.String() != want {
			t.Errorf("%s is at %v, want %s", p.Host, p.Addr, want)
		}
	}
	if some, err := c.Lookup(t.Context(), layer, 1); err != nil || len(some.list) != 1 {
		t.Errorf("Lookup of one: %v, %v", some.list, err)
	}
	finds(t, a, layer, 0, "b") // not itself
	finds(t, c, "docker.io/library/alpine:3", 0, "a")
	finds(t, c, "nobody's", 0)
	if err := a.Withdraw(t.Context(), []string{layer}); err != nil {
		t.Fatal(err)
	}
	finds(t, c, layer, 0, "b")
	finds(t, c, "docker.io/library/alpine:3", 0, "a")
}

// Each node is used in turn, by one request at a time, and one that did not answer by none.
func TestPeers(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", a)
	c := start(t, "c", a, b)
	for _, r := range []*Router{a, b} {
		r.Advertise(t.Context(), []string{layer})
	}
	peers := finds(t, c, layer, 0, "a", "b")
	used := map[string]int{}
	for range 6 {
		p, ok := peers.Acquire()
		if !ok {
			t.Fatal("none is left")
		}
		used[p.Host]++
		peers.Release(p)
	}
	if used["a"] != 3 || used["b"] != 3 {
		t.Errorf("used %v", used)
	}
	first, _ := peers.Acquire()
	second, _ := peers.Acquire()
	if _, ok := peers.Acquire(); ok || first == second {
		t.Errorf("%v and %v are in use, and there is another", first, second)
	}
	peers.Failed(first)
	peers.Release(second)
	finds(t, c, layer, 0, second.Host)
	if p, ok := peers.Acquire(); !ok || p != second {
		t.Errorf("then %v, %v", p, ok)
	}
}

// BenchmarkLookup is one look-up of a key that another node has.
func BenchmarkLookup(b *testing.B) {
	first := start(b, "a")
	r := start(b, "b", first)
	first.Advertise(b.Context(), []string{layer})
	finds(b, r, layer, 0, "a")
	b.ReportAllocs()
	for b.Loop() {
		r.Lookup(b.Context(), layer, 1)
	}
}
