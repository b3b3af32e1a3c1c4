package gossip

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lines is a log whose lines can be counted.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// with returns the lines that have all of these.
func (l *lines) with(all ...string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.buf.String()) {
		for _, part := range all {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}

// TestClusterNames: two clusters of two peers, and a peer of one comes back at an address that a peer of the other has had. Clusters of
// one name become one, as peers of one cluster find each other by such addresses; of two names they stay two, and both say why, once.
// A copied secret changes nothing in that.
func TestClusterNames(t *testing.T) {
	for name, tt := range map[string]struct {
		one, other string // names
		secret     []byte
		merge      bool
	}{
		"no names":                    {"", "", nil, true},
		"one name":                    {"prod", "prod", nil, true},
		"two names":                   {"prod", "stag", nil, false},
		"a name and none":             {"prod", "", nil, false},
		"none and a name":             {"", "stag", nil, false},
		"one name, one secret":        {"prod", "prod", testSecret, true},
		"two names, one secret":       {"prod", "stag", testSecret, false},
		"a name and none, a secret":   {"prod", "", testSecret, false},
		"none and a name, one secret": {"", "stag", testSecret, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				logs := map[string]*lines{}
				start := func(name, ip, cluster string, join ...string) *Node {
					cfg := c.config(name, ip)
					cfg.Cluster, cfg.Secret, cfg.Join = cluster, tt.secret, join
					cfg.Holdings = NewHoldings(newFilter(t, tt.secret))
					logs[name] = new(lines)
					cfg.Logger = slog.New(slog.NewTextHandler(logs[name], nil))
					return c.start(cfg)
				}
				prod := []string{"10.0.1.1:7946", "10.0.1.2:7946"}
				start("prod-1", "10.0.1.1", tt.one)
				start("prod-2", "10.0.1.2", tt.one, prod...)
				start("stag-1", "10.0.2.1", tt.other)
				start("stag-2", "10.0.2.2", tt.other, "10.0.2.1:7946")
				time.Sleep(10 * time.Second)
				c.kill("prod-1")
				c.kill("stag-1")
				start("prod-1", "10.0.2.1", tt.one, prod...)
				time.Sleep(2 * time.Minute)
				merged := c.nodes["prod-1"].live("stag-2") != nil || c.nodes["prod-2"].live("stag-2") != nil || c.nodes["stag-2"].live("prod-1") != nil
				if merged != tt.merge {
					t.Errorf("after two minutes the clusters are one: %v, want %v", merged, tt.merge)
				}
				if c.nodes["prod-2"].live("prod-1") == nil {
					t.Error("production is not one cluster")
				}
				if tt.merge {
					return
				}
				for peer, of := range map[string][2]string{"prod-1": {tt.one, tt.other}, "stag-2": {tt.other, tt.one}} {
					text := func(name string) string { return cmp.Or(name, `""`) }
					said := logs[peer].with("another cluster", "theirs="+text(of[1])+" ours="+text(of[0])+"\n")
					if len(said) != 1 {
						t.Errorf("%s says of the other cluster %d times, want once: %q", peer, len(said), said)
					}
					if n := c.nodes[peer].Stats().ClustersRefused; n == 0 {
						t.Errorf("%s has refused nothing of the other cluster", peer)
					}
				}
				var refused *JoinError
				cfg := c.config("late", "10.0.2.9")
				cfg.Cluster, cfg.Secret, cfg.Join, cfg.Holdings = tt.one, tt.secret, []string{"10.0.2.2:7946"}, nil
				n, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer n.Close()
				if err := n.Join(t.Context()); !errors.Is(err, ErrCluster) || !errors.As(err, &refused) || !strings.Contains(err.Error(), `"`+tt.one+`"`) || !strings.Contains(err.Error(), `"`+tt.other+`"`) {
					t.Errorf("Join through a peer of another cluster = %v, want ErrCluster with both names", err)
				}
			})
		})
	}
}
