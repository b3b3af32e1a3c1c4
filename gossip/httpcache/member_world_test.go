package httpcache

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/memnet"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// inBothStores runs a test, in virtual time, over each store.
func inBothStores(t *testing.T, f func(t *testing.T, open func(*testing.T) func(bodies.Hooks) (bodies.Store, error))) {
	for name, open := range map[string]func(*testing.T) func(bodies.Hooks) (bodies.Store, error){
		"memory": func(*testing.T) func(bodies.Hooks) (bodies.Store, error) { return memstore.Open(64 << 20) },
		"disk": func(t *testing.T) func(bodies.Hooks) (bodies.Store, error) {
			return diskstore.Options{Dir: t.TempDir(), MaxBytes: 64 << 20, MemoryBytes: 1 << 20}.Open
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, open) })
		})
	}
}

// alone is the cluster of a member without others.
type alone struct{ *Member }

func (a *alone) Invalidate(_ context.Context, targets ...invalidation.Target) error {
	for _, t := range targets {
		if err := t.Check(); err != nil {
			return err
		}
		a.engine.Invalidated(t)
	}
	return nil
}

func (*alone) Concerning(string) ([]invalidation.ID, bool) { return nil, true }
func (*alone) Applied(...invalidation.ID) bool             { return false }

// newTestMember returns a member that is alone but for siblings; nil = none. open nil = a store in memory.
func newTestMember(t testing.TB, name string, siblings *sibling.Client, open func(bodies.Hooks) (bodies.Store, error)) *Member {
	t.Helper()
	if siblings == nil {
		var err error
		if siblings, err = sibling.New(sibling.Config{Name: name, Locator: new(world)}); err != nil {
			t.Fatal(err)
		}
	}
	if open == nil {
		open = memstore.Open(64 << 20)
	}
	cluster := new(alone)
	opened := &opened{open: open}
	m, err := newMember(MemberConfig{Open: opened.Open}, engine.Config{Name: name, Siblings: siblings, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	cluster.Member = m
	opened.by(t, m)
	t.Cleanup(func() { m.Close() })
	return m
}

// stores are the stores of the members of tests: *Member → bodies.Store.
var stores sync.Map

// An opened store is the one of a member of a test.
type opened struct {
	open  func(bodies.Hooks) (bodies.Store, error)
	store bodies.Store
}

// Open is MemberConfig.Open.
func (o *opened) Open(h bodies.Hooks) (s bodies.Store, err error) {
	o.store, err = o.open(h)
	return o.store, err
}

func (o *opened) by(t testing.TB, m *Member) {
	stores.Store(m, o.store)
	t.Cleanup(func() { stores.Delete(m) })
}

// store returns the store of a member of a test.
func (m *Member) store() bodies.Store {
	s, _ := stores.Load(m)
	return s.(bodies.Store)
}

// objects returns how many objects the store of a member has.
func (m *Member) objects() int { return len(slices.Collect(m.store().Keys())) }

// has returns the body that is stored under an identity; "" = none.
func (m *Member) has(identity string) string {
	b, _ := m.engine.Body(identity)
	return string(b)
}

// A world has a sibling.Client and siblings with handlers of a test, on a network in memory.
type world struct {
	t       *testing.T
	net     *memnet.Network
	carrier *http1.Transport
	health  *sibling.Health
	client  *sibling.Client
	servers []*http.Server

	mu    sync.Mutex
	known []sibling.Candidate // of every object
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, net: memnet.New(1), health: new(sibling.Health)}
	host := w.net.Host("10.8.8.8")
	w.carrier = http1.ToSiblings(func(ctx context.Context, _, addr string) (net.Conn, error) { return host.Dial(ctx, addr) })
	var err error
	if w.client, err = sibling.New(sibling.Config{Name: "me", Locator: w, HTTP: w.carrier, Health: w.health}); err != nil {
		t.Fatal(err)
	}
	return w
}

// sibling adds a candidate for every object.
func (w *world) sibling(h http.HandlerFunc) {
	w.mu.Lock()
	n := len(w.servers) + 1
	c := sibling.Candidate{Peer: fmt.Sprint("p", n), Service: fmt.Sprintf("10.0.0.%d:80", n)}
	w.known = append(w.known, c)
	w.mu.Unlock()
	l, err := w.net.Host(fmt.Sprintf("10.0.0.%d", n)).Listen(c.Service)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	w.servers = append(w.servers, s)
	go s.Serve(l)
}

func (w *world) Candidates(dst []sibling.Candidate, identity string) []sibling.Candidate {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(dst, w.known...)
}

func (w *world) Distrust(string) {}

// close ends all goroutines, as a test in a bubble must.
func (w *world) close() {
	w.carrier.CloseIdleConnections()
	for _, s := range w.servers {
		s.Close()
	}
	time.Sleep(time.Minute) // until the handlers of canceled requests have ended
}

// holds answers every request with a fresh object.
func holds(body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Cache-Status", "p; hit")
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Set(name, value)
		}
		io.WriteString(w, body)
	}
}

// members are the members of one cluster, in virtual time, and the source of their values.
type members struct {
	t      *testing.T
	net    *memnet.Network
	nodes  []*gossip.Node
	all    []*Member
	closes []func()

	mu     sync.Mutex
	source int // its version
	loads  int
	takes  time.Duration // for which a load takes
}

func newMembers(t *testing.T, n int) *members {
	w := &members{t: t, net: memnet.New(1)}
	for range n {
		w.start()
	}
	time.Sleep(3 * time.Second)
	return w
}

func (w *members) start() *Member {
	w.t.Helper()
	host := w.net.Host(fmt.Sprintf("10.0.0.%d", len(w.all)+1))
	cfg := gossip.Config{Name: fmt.Sprint("c", len(w.all)), Bind: host.IP() + ":7946", Service: host.IP() + ":80", Objects: 100, Profile: digest.HTTP,
		Secret: []byte("a secret of 16 bytes"), Advanced: gossip.Advanced{Network: host}, Logger: slog.New(slog.DiscardHandler)}
	if len(w.all) > 0 {
		cfg.Join = []string{"10.0.0.1:7946"}
	}
	node, err := gossip.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	transport := http1.ToSiblings(func(ctx context.Context, _, addr string) (net.Conn, error) { return host.Dial(ctx, addr) })
	opened := &opened{open: memstore.Open(64 << 20)}
	c, err := NewMember(MemberConfig{Node: node, Open: opened.Open, Transport: transport})
	if err != nil {
		w.t.Fatal(err)
	}
	opened.by(w.t, c)
	l, err := host.Listen(cfg.Service)
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: c}
	go server.Serve(l)
	if err := node.Join(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.nodes, w.all = append(w.nodes, node), append(w.all, c)
	w.closes = append(w.closes, func() { node.Close(); server.Close(); c.Close() })
	return c
}

func (w *members) close() {
	for _, f := range w.closes {
		f()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (w *members) get(i int, name string) string {
	w.t.Helper()
	v, err := w.all[i].Get(w.t.Context(), name, func(context.Context) ([]byte, time.Time, error) {
		w.mu.Lock()
		w.loads++
		v, takes := w.source, w.takes
		w.mu.Unlock()
		time.Sleep(takes)
		return fmt.Append(nil, "v", v), time.Time{}, nil
	})
	if err != nil {
		w.t.Error(err)
	}
	return string(v)
}

func (w *members) write() {
	w.mu.Lock()
	w.source++
	w.mu.Unlock()
}

// valueID is the identity of a value.
func valueID(name string) string { return "GET " + ValueURL(name) }
