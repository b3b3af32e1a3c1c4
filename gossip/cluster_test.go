package gossip

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/memnet"
)

var testSecret = []byte("a secret of the test cluster")

// testLog is silent unless GOSSIP_LOG names a level.
func testLog() *slog.Logger {
	var level slog.Level
	if v := os.Getenv("GOSSIP_LOG"); v != "" && level.UnmarshalText([]byte(v)) == nil {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// geometry is small, since every peer locks all shards of a filter twenty times a second, which otherwise takes most of a
// test's time.
func geometry(secret []byte) digest.Geometry {
	return digest.Geometry{Bits: 1 << 19, Hashes: 1, Seed: digest.SeedFrom(secret)}
}

func newFilter(t testing.TB, secret []byte) *digest.Set {
	t.Helper()
	f, err := digest.NewSet(geometry(secret), 1)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func key(peer string, i int) digest.Key {
	return digest.KeyOfString(digest.SeedFrom(testSecret), fmt.Sprintf("%s/%d", peer, i))
}

// cluster runs nodes on a network in memory, in virtual time.
type cluster struct {
	t     testing.TB
	net   *memnet.Network
	nodes map[string]*Node
	ips   map[string]string
}

func newCluster(t testing.TB) *cluster {
	return &cluster{t: t, net: memnet.New(1), nodes: make(map[string]*Node), ips: make(map[string]string)}
}

// config returns the configuration of a peer that detects deaths soon.
func (c *cluster) config(name, ip string) Config {
	return Config{
		Name: name, Bind: ip + ":7946", Secret: testSecret, Service: ip + ":8080",
		Holdings: NewHoldings(newFilter(c.t, testSecret)), Advanced: Advanced{Network: c.net.Host(ip)}, Logger: testLog(), detect: detection{probe: 500 * time.Millisecond},
	}
}

func (c *cluster) start(cfg Config) *Node {
	c.t.Helper()
	n, err := New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[cfg.Name] = n
	c.ips[cfg.Name] = n.advertise.Addr().String()
	if err := n.Join(c.t.Context()); err != nil {
		c.t.Fatalf("Join of %s: %v", cfg.Name, err)
	}
	return n
}

// startMany starts peers p1 to pn, which join through p1.
func (c *cluster) startMany(n int) {
	for i := 1; i <= n; i++ {
		cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
		if i > 1 {
			cfg.Join = []string{"10.0.0.1:7946"}
		}
		c.start(cfg)
	}
}

// kill ends a peer as SIGKILL does.
func (c *cluster) kill(name string) {
	c.net.Host(c.ips[name]).Kill()
	c.nodes[name].Close()
	delete(c.nodes, name)
}

// close ends all nodes and lets sleeping goroutines wake and end.
func (c *cluster) close() {
	for _, n := range c.nodes {
		n.Close()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

// holders returns the peers that may hold k according to n.
func holders(n *Node, k digest.Key) map[string]bool {
	out := make(map[string]bool)
	for _, c := range n.CandidatesByKey(nil, k) {
		out[c.Peer] = true
	}
	return out
}

// settling is how long a cluster may take until all know all, in tests of something else. A peer that
// missed a member learns of it by the next exchange of lists.
const settling = 2 * time.Minute

// inStep checks that every node's replicas equal their origins' filters, and that its lookups use them.
func (c *cluster) inStep() error {
	for _, n := range c.nodes {
		for name, origin := range c.nodes {
			if name == n.cfg.Name {
				continue
			}
			if f := origin.cfg.Holdings.Keys().Filter(); f.Changed() != 0 || f.Current().Keys() != uint64(f.Len()) {
				return fmt.Errorf("%s has changes to publish", name)
			}
			n.mu.Lock()
			r, ok := n.engine.Replica(name)
			n.mu.Unlock()
			if !ok || !r.Usable {
				return fmt.Errorf("%s does not know %s", n.cfg.Name, name)
			}
			want := origin.cfg.Holdings.Keys().Filter().Current().Version()
			if r.Filter == nil || r.Filter.Version() != want {
				return fmt.Errorf("%s holds %v of %s, want %v", n.cfg.Name, r.Head, name, want)
			}
			if m := (*n.members.Load())[name]; m == nil || m.inUse.Load() != r.Filter {
				return fmt.Errorf("%s holds %v of %s and does not answer from it yet", n.cfg.Name, r.Head, name)
			}
		}
	}
	return nil
}

// within runs check until it succeeds, at most for d of virtual time.
func within(t testing.TB, d time.Duration, check func() error) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		err := check()
		if err == nil {
			return time.Since(start)
		}
		if time.Since(start) > d {
			t.Fatalf("after %v: %v", d, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// published returns the last filter that a node published.
func published(n *Node) exchange.Version {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.engine.Self().Version
}
