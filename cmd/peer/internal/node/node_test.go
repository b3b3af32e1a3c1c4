package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/config"
	"github.com/summarycache/summarycache/cmd/peer/internal/origin"
)

func local(t *testing.T, dir string) config.Config {
	return config.Config{
		Name: "a", Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Gossip: "127.0.0.1:0", Store: dir, StoreSize: 64 << 20,
		Objects: 1000, FalsePositives: 0.001,
	}
}

func start(t *testing.T, cfg config.Config, log *slog.Logger) *Node {
	t.Helper()
	n, err := Start(t.Context(), Options{Config: cfg, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// The objects of an earlier process are in the digest before any other peer knows of this one.
func TestWarmStart(t *testing.T) {
	const objects = 50
	site := &origin.Handler{Sizes: make(map[string]int64)}
	server := httptest.NewServer(site)
	defer server.Close()
	base, _ := url.Parse(server.URL)
	cfg := local(t, filepath.Join(t.TempDir(), "a"))
	cfg.Origin = base

	first := start(t, cfg, nil)
	for i := range objects {
		site.Sizes[fmt.Sprintf("/%d", i)] = 100
		answer, err := http.Get("http://" + first.Addresses().Listen + fmt.Sprintf("/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if err := first.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := start(t, cfg, nil)
	if !second.Holds("GET "+server.URL+"/7") || second.Holds("GET "+server.URL+"/x") {
		t.Error("Holds does not say what the store has")
	}
	if d := second.Status().Digest; d.Keys != objects || d.Published != objects {
		t.Errorf("after the start the digest has %d objects, of which %d are published; want %d", d.Keys, d.Published, objects)
	}
	if s := second.Status().Store; s.Reloaded != objects {
		t.Errorf("%d objects reloaded, want %d", s.Reloaded, objects)
	}
}

// TestStartRefuses: a peer does not start without a part that it cannot open, says which, and leaves nothing open.
func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		wrong func(*config.Config)
		want  string
	}{
		"access log": {func(c *config.Config) { c.AccessLog = filepath.Join(file, "log") }, "--access-log"},
		"listen":     {func(c *config.Config) { c.Listen = taken.Addr().String() }, "--listen"},
		"admin":      {func(c *config.Config) { c.Admin = taken.Addr().String() }, "--admin"},
		"gossip":     {func(c *config.Config) { c.Gossip = taken.Addr().String() }, taken.Addr().String()},
		"store":      {func(c *config.Config) { c.Store = file }, file},
	} {
		cfg := local(t, filepath.Join(dir, name))
		tt.wrong(&cfg)
		n, err := Start(t.Context(), Options{Config: cfg})
		if err == nil {
			n.Close()
			t.Errorf("%s: started", name)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want one that names %s", name, err, tt.want)
		}
		start(t, local(t, filepath.Join(dir, name)), nil).Close() // the store is not held
	}
}

func TestOpenListenersAreWarnedOf(t *testing.T) {
	var log strings.Builder
	cfg := local(t, t.TempDir())
	cfg.Listen, cfg.Admin, cfg.Gossip, cfg.Advertise, cfg.SecretShared = "0.0.0.0:0", "0.0.0.0:0", "0.0.0.0:0", "127.0.0.1", true
	n := start(t, cfg, slog.New(slog.NewTextHandler(&log, nil)))
	n.Close()
	for _, want := range []string{"the admin listener is open to the network", "the forward proxy is open to the network", "no secret is set", "every user of this machine"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no warning %q in\n%s", want, log.String())
		}
	}
	if host, _, _ := net.SplitHostPort(n.service()); host != "127.0.0.1" {
		t.Errorf("siblings are told to ask at %s, want the advertised host", n.service())
	}
}

func TestBrokenListenerIsReported(t *testing.T) {
	n := start(t, local(t, t.TempDir()), nil)
	n.traffic.Close()
	select {
	case err := <-n.Failed():
		if err == nil || !strings.Contains(err.Error(), "listener 127.0.0.1:") {
			t.Errorf("Failed() = %v", err)
		}
	case <-t.Context().Done():
		t.Error("a listener that broke down was not reported")
	}
}

func TestStartCalledOff(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := local(t, t.TempDir())
	cfg.Join = []string{silent.Addr().String()}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("called off"))
	if _, err := Start(ctx, Options{Config: cfg}); err == nil || err.Error() != "called off" {
		t.Errorf("Start = %v, want called off", err)
	}
}
