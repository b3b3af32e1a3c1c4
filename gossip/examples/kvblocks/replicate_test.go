package kvblocks

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
)

// start starts a router of a cluster, and returns it and its URL.
func start(t *testing.T, name string, others ...*Router) (*Router, *httptest.Server) {
	t.Helper()
	r := NewRouter(seed)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	cfg := gossip.Config{Name: name, Bind: "127.0.0.1:0", Secret: []byte("at least 16 bytes, better random"),
		Service: strings.TrimPrefix(server.URL, "http://"), Logger: slog.New(slog.DiscardHandler)}
	for _, o := range others {
		cfg.Join = append(cfg.Join, o.Node.Addr())
	}
	node, err := gossip.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	r.Node = node
	if err := node.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, server
}

// TestRouters: what workers tell one router all know, one that starts later and one that has missed something too; and a
// dead one keeps nobody waiting for long.
func TestRouters(t *testing.T) {
	a, at := start(t, "a")
	b, _ := start(t, "b", a)
	w := &Worker{Seed: seed}
	publish := func(all bool) {
		t.Helper()
		w.Next(all, func(d Digest) {
			if err := d.Give(Remote(at.URL + "/publish")); err != nil {
				t.Error(err)
			}
		})
	}
	prompt := blocks(1, 2, 3, 4, 5, 6)
	wants := func(r *Router, want int) {
		t.Helper()
		got := 0
		for range 500 {
			got = 0
			if p := r.Prefixes(prompt); len(p) > 0 {
				got = p[0].Keys
			}
			if got == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
			publish(true)
		}
		t.Fatalf("%s knows %d blocks, want %d", r.Node.Name(), got, want)
	}
	w.Add(t.Context(), nil, prompt[:2], entries(cpu("1")))
	w.Add(t.Context(), nil, prompt[2:4], entries(gpu("1")))
	publish(false)
	wants(a, 4)
	wants(b, 4)
	w.Add(t.Context(), nil, prompt[4:5], entries(gpu("1")))
	w.Next(false, func(Digest) {}) // this change is lost
	w.Add(t.Context(), nil, prompt[5:], entries(gpu("1")))
	publish(false)
	wants(a, 6)
	wants(b, 6)
	c, other := start(t, "c", a, b)
	wants(c, 6)
	other.Close()
	c.Node.Close()
	w.Evict(t.Context(), prompt[3], RequestKey, entries(gpu("1")))
	began := time.Now()
	publish(false)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("a router that is gone costs %v", took)
	}
	wants(a, 3)
	wants(b, 3)
}

// TestRefused: bad messages are refused with a reason, and too many digests too.
func TestRefused(t *testing.T) {
	r := NewRouter(seed)
	server := httptest.NewServer(r)
	defer server.Close()
	other := &Worker{Seed: seed + 1}
	other.Add(t.Context(), nil, blocks(1), entries(gpu("1")))
	other.Next(true, func(d Digest) {
		if err := d.Give(Remote(server.URL + "/publish")); err == nil || !strings.Contains(err.Error(), "seed") {
			t.Errorf("another space of hashes: %v", err)
		}
	})
	for _, body := range []string{"", "no digest"} {
		resp, err := http.Post(server.URL+"/publish?digest=x", "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || len(answer) < 10 {
			t.Errorf("%q: %s %s", body, resp.Status, answer)
		}
	}
	r.most = 100
	w := &Worker{Seed: seed}
	w.Add(t.Context(), nil, blocks(1), entries(gpu("2")))
	w.Next(true, func(d Digest) {
		for i := range r.most + 1 {
			if _, _, err := r.Handle(fmt.Sprint(i), d.Since(digest.Version{})); (err == nil) != (i < r.most) {
				t.Fatalf("digest %d: %v", i, err)
			}
		}
	})
}
