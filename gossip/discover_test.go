package gossip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/memnet"
)

// names is a name service that changes.
type names struct {
	mu      sync.Mutex
	rng     *rand.Rand
	of      map[string][]string // addresses
	srv     map[string][]*net.SRV
	most    int // addresses in an answer; 0 means all
	down    bool
	lookups int
	behind  []string // a load balancer
}

func newNames(seed uint64) *names {
	return &names{rng: rand.New(rand.NewPCG(seed, 1)), of: map[string][]string{}, srv: map[string][]*net.SRV{}}
}

func (s *names) set(name string, ips ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[name] = ips
}

func (s *names) change(f func(*names)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *names) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookups
}

// LookupNetIP answers in another order each time, with no more than most.
func (s *names) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	list := s.of[host]
	if s.down || len(list) == 0 || network != "ip" {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: !s.down, IsTemporary: s.down}
	}
	var out []netip.Addr
	for _, i := range s.rng.Perm(len(list)) {
		out = append(out, netip.MustParseAddr(list[i]))
	}
	if s.most > 0 {
		out = out[:min(s.most, len(out))]
	}
	return out, nil
}

func (s *names) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	if service != "" || proto != "" || s.down || s.srv[name] == nil {
		return "", nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return name, s.srv[name], nil
}

// A namedHost looks names up in a name service of its own. Connections to the address balanced go to
// the hosts in behind, one after the other.
type namedHost struct {
	*memnet.Host
	*names
}

const balanced = "10.9.9.9:7946"

func (h namedHost) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if addr == balanced {
		h.change(func(s *names) {
			addr = s.behind[0] + ":7946"
			s.behind = append(s.behind[1:], s.behind[0])
		})
	}
	return h.Host.Dial(ctx, addr)
}

// joining makes peers p1 to pn that join through one name, and lets them join at once.
func (c *cluster) joining(s *names, seed string, ips ...string) {
	var wg sync.WaitGroup
	for _, ip := range ips {
		name := "p" + ip[strings.LastIndexAny(ip, ".:")+1:]
		cfg := c.config(name, ip)
		cfg.Bind = net.JoinHostPort(ip, "7946")
		cfg.Service = ""
		cfg.Join, cfg.Network = []string{seed}, namedHost{c.net.Host(ip), s}
		n, err := New(cfg)
		if err != nil {
			c.t.Fatal(err)
		}
		c.nodes[name], c.ips[name] = n, ip
		wg.Go(func() {
			if err := n.Join(c.t.Context()); err != nil && !errors.Is(err, ErrUnreachable) {
				c.t.Errorf("Join of %s: %v", name, err)
			}
		})
	}
	wg.Wait()
}

// clusters counts the groups of peers that know each other.
func (c *cluster) clusters() int {
	group := map[string]string{}
	var find func(string) string
	find = func(a string) string {
		if group[a] == "" || group[a] == a {
			return a
		}
		return find(group[a])
	}
	for name, n := range c.nodes {
		for _, m := range n.Members() {
			if m.Alive {
				group[find(name)] = find(m.Name)
			}
		}
	}
	roots := map[string]bool{}
	for name := range c.nodes {
		roots[find(name)] = true
	}
	return len(roots)
}

// whole reports whether every peer knows every other.
func (c *cluster) whole() error {
	for name, n := range c.nodes {
		alive := 0
		for _, m := range n.Members() {
			if m.Alive {
				alive++
			}
		}
		if alive != len(c.nodes)-1 {
			return fmt.Errorf("%s knows %d of %d others", name, alive, len(c.nodes)-1)
		}
	}
	return nil
}

func tens(n int) (ips []string) {
	for i := range n {
		ips = append(ips, fmt.Sprintf("10.0.0.%d", i+1))
	}
	return ips
}

// TestOneNameOneCluster starts peers together that join through one name with the addresses of all.
func TestOneNameOneCluster(t *testing.T) {
	for _, tc := range []struct{ peers, runs, most int }{{2, 16, 0}, {10, 3, 0}, {10, 3, 1}} {
		t.Run(fmt.Sprintf("peers=%d/most=%d", tc.peers, tc.most), func(t *testing.T) {
			if testing.Short() { // with the race detector
				tc.runs = 1 + tc.runs/8
			}
			split, longest := 0, time.Duration(0)
			for run := range tc.runs {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t)
					defer c.close()
					s := newNames(uint64(run))
					s.most = tc.most
					s.set("cache", tens(tc.peers)...)
					start := time.Now()
					c.joining(s, "cache:7946", tens(tc.peers)...)
					for c.whole() != nil && time.Since(start) < 3*time.Minute {
						time.Sleep(100 * time.Millisecond)
					}
					longest = max(longest, time.Since(start))
					if c.clusters() > 1 {
						split++
					}
				})
			}
			t.Logf("%d of %d runs ended in several clusters; one cluster after %v at most", split, tc.runs, longest)
			if split > 0 {
				t.Errorf("%d of %d runs ended in several clusters", split, tc.runs)
			}
		})
	}
}

// TestClustersBehindANameMerge lets two clusters form that do not know of each other, and then join:
// by a name that gets the addresses of both, and by a load balancer, whose connections do not show
// which peer is behind it.
func TestClustersBehindANameMerge(t *testing.T) {
	left, right := []string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.3", "10.0.0.4"}
	for name, hear := range map[string]func(a, b *names){
		"the name grows": func(a, b *names) {
			a.set("cache", append(left, right...)...)
		},
		"a load balancer": func(a, b *names) {
			for _, s := range []*names{a, b} {
				s.change(func(s *names) { s.of["cache"], s.behind = []string{"10.9.9.9"}, append(left, right...) })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				a, b := newNames(1), newNames(2)
				a.set("cache", left...)
				b.set("cache", right...)
				c.joining(a, "cache:7946", left...)
				c.joining(b, "cache:7946", right...)
				time.Sleep(5 * time.Minute)
				if got := c.clusters(); got != 2 {
					t.Fatalf("%d clusters of peers that cannot find each other, want 2", got)
				}
				hear(a, b)
				t.Logf("one cluster after %v", within(t, 5*time.Minute, c.whole))
			})
		})
	}
}

// TestAloneIsSaid: the name service of a peer fails, then knows only this peer, then another one too.
func TestAloneIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var log logBuffer
		s := newNames(1)
		s.down = true
		cfg := c.config("p1", "10.0.0.1")
		cfg.Join, cfg.Network, cfg.Logger = []string{"cache:7946"}, namedHost{c.net.Host("10.0.0.1"), s}, log.logger()
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes["p1"], c.ips["p1"] = n, "10.0.0.1"
		says := func(when string, err error, want string) {
			t.Helper()
			var join *JoinError
			if !errors.Is(err, ErrUnreachable) || !errors.As(err, &join) || join.Seed != "cache:7946" || !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: %v, want %q", when, err, want)
			}
		}
		says("before it joins", n.alone(), "no answer yet")
		says("without names", n.Join(t.Context()), "no such host")
		says("without names", n.alone(), "no such host")
		s.change(func(s *names) { s.down = false })
		s.set("cache", "10.0.0.1")
		time.Sleep(2 * time.Second)
		says("with a name for itself", n.alone(), "no address but this peer's own")
		says("with a name for itself", n.Join(t.Context()), "no address but this peer's own")
		if !log.has("alone: no other peer is found") {
			t.Errorf("no log record that the peer is alone:\n%s", log.b.String())
		}
		s.set("cache", "10.0.0.1", "10.0.0.2")
		time.Sleep(2 * time.Second)
		says("while the other is not there yet", n.alone(), "10.0.0.2:7946: ")
		c.joining(s, "cache:7946", "10.0.0.2")
		within(t, 2*time.Second, c.whole)
		time.Sleep(2 * time.Second)
		if err := n.alone(); err != nil || !log.has("found other peers") {
			t.Errorf("Alone of one of two = %v, and the log is\n%s", err, log.b.String())
		}
		if err := n.Join(t.Context()); err != nil {
			t.Errorf("Join of one of two = %v", err)
		}
		s.change(func(s *names) { s.down = true })
		c.kill("p2")
		time.Sleep(time.Minute)
		says("after the other died", n.alone(), "10.0.0.2:7946: ") // what the name stood for is remembered
		c.joining(s, "cache:7946", "10.0.0.2")
		within(t, 15*time.Second, c.whole)
	})
}

// TestOneListForAll: all peers have the same list. None warns about its own address in it once another
// peer answers.
func TestOneListForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		list := []string{"10.0.0.1:7946", "10.0.0.2:7946"}
		c.start(c.config("p1", "10.0.0.1"))
		var log logBuffer
		cfg := c.config("p2", "10.0.0.2")
		cfg.Join, cfg.Logger = list, log.logger()
		n := c.start(cfg)
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		within(t, 2*time.Second, c.whole)
		if log.has("could not join") {
			t.Errorf("the log warns:\n%s", log.b.String())
		}
	})
}

// TestNamesAreLookedUpEachMinute, and not more often if nothing fails.
func TestNamesAreLookedUpEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		s := newNames(1)
		s.set("cache", tens(2)...)
		c.joining(s, "cache:7946", tens(2)...)
		within(t, 10*time.Second, c.whole)
		time.Sleep(time.Minute)
		before := s.asked()
		time.Sleep(10 * time.Minute)
		if got := s.asked() - before; got < 2*8 || got > 2*10 {
			t.Errorf("two peers looked the name up %d times in ten minutes", got)
		}
	})
}

// TestJoinByRecords finds peers of both families at the ports that SRV records name.
func TestJoinByRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		s := newNames(1)
		s.set("a.cache", "10.0.0.1")
		s.set("b.cache", "fd00::2")
		s.change(func(s *names) {
			s.srv["_gossip._tcp.cache"] = []*net.SRV{{Target: "a.cache", Port: 7946}, {Target: "b.cache", Port: 7946}, {Target: "gone.cache", Port: 7946}}
		})
		c.joining(s, "srv:_gossip._tcp.cache", "10.0.0.1", "fd00::2")
		within(t, 3*time.Second, c.whole)
	})
}

// TestRecordsStayAsTheResolverGaveThem: a resolver with a cache returns the same slice of records to
// several peers, which must not change it.
func TestRecordsStayAsTheResolverGaveThem(t *testing.T) {
	s := newNames(1)
	var given []*net.SRV
	for i := range uint16(20) {
		given = append(given, &net.SRV{Target: "10.0.0.1", Port: 7946 + i})
	}
	s.change(func(s *names) { s.srv["cache"] = slices.Clone(given) })
	n := &group{base: &base{cfg: Config{Advanced: Advanced{Network: namedHost{nil, s}}}}}
	if found, err := n.resolve(t.Context(), "srv:cache"); err != nil || len(found) != greetedAtOnce {
		t.Fatalf("resolved %v, %v", found, err)
	}
	if !slices.Equal(s.srv["cache"], given) {
		t.Error("the resolver's records changed places")
	}
}

// TestFewAreGreetedOfMany: a peer that joins through the name of a large cluster does not greet all its
// peers.
func TestFewAreGreetedOfMany(t *testing.T) {
	n := &group{base: &base{cfg: Config{Name: "p"}}, advertise: netip.MustParseAddrPort("10.0.0.1:7946")}
	n.members.Store(new(memberTable))
	var found []netip.AddrPort
	seen := map[string]bool{}
	for i := range 1000 {
		found = append(found, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 7946))
	}
	for range 1000 {
		targets, known := n.targets(found)
		if len(targets) != greetedAtOnce || known {
			t.Fatalf("%d targets, known %v", len(targets), known)
		}
		for _, a := range targets {
			seen[a] = true
		}
	}
	if len(seen) != 999 || seen[n.advertise.String()] {
		t.Errorf("%d of 999 others were drawn, this peer: %v", len(seen), seen[n.advertise.String()])
	}
}
