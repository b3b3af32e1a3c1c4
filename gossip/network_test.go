package gossip

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAdvertisedAddress(t *testing.T) {
	for _, tc := range []struct {
		configured, bound, want string
	}{
		{"", "127.0.0.1:7946", "127.0.0.1:7946"},
		{"10.1.2.3", "0.0.0.0:7946", "10.1.2.3:7946"},
		{"10.1.2.3:99", "0.0.0.0:7946", "10.1.2.3:99"},
		{"10.1.2.3:0", "0.0.0.0:7946", "10.1.2.3:7946"},
		{"::1", "[::]:7946", "[::1]:7946"},
		{"[::1]:99", "[::]:7946", "[::1]:99"},
		{"::ffff:10.1.2.3", "[::]:7946", "10.1.2.3:7946"},
		{"", "[::ffff:127.0.0.1]:7946", "127.0.0.1:7946"},
		{"localhost:99", "127.0.0.1:7946", "127.0.0.1:99"},
	} {
		got, err := advertised(tc.configured, nil, netip.MustParseAddrPort(tc.bound))
		if tc.configured == "localhost:99" && got.String() == "[::1]:99" {
			continue // a machine that prefers IPv6
		}
		if err != nil || got.String() != tc.want {
			t.Errorf("advertised(%q, %s) = %v, %v, want %s", tc.configured, tc.bound, got, err, tc.want)
		}
	}
	if got, err := advertised("no such host.invalid", nil, netip.MustParseAddrPort("127.0.0.1:1")); err == nil {
		t.Errorf("advertised of a name that does not resolve = %v", got)
	}
}

func TestListenBothUsesOnePort(t *testing.T) {
	p, l, err := listenBoth(new(systemNetwork), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer l.Close()
	if p.LocalAddr().String() != l.Addr().String() {
		t.Errorf("packets at %v, streams at %v", p.LocalAddr(), l.Addr())
	}
	if _, _, err := listenBoth(new(systemNetwork), p.LocalAddr().String()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("listenBoth on a port in use = %v", err)
	}
}

// TestIPv6 lets two peers find each other on ::1.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	l.Close()
	start := func(name string, join ...string) *Node {
		f := newFilter(t, testSecret)
		f.Add(key(name, 1))
		n, err := New(Config{Name: name, Bind: "[::1]:0", Secret: testSecret, Service: "[::1]:1", Join: join, Holdings: NewHoldings(f), Logger: testLog()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	a := start("a")
	b := start("b", a.Addr())
	eventually(t, 30*time.Second, replicas(a, 1))
	eventually(t, 30*time.Second, replicas(b, 1))
	if !holders(b, key("a", 1))["a"] {
		t.Error("b does not find a's objects")
	}
}

func TestConnectionsAreReused(t *testing.T) {
	a := realNode(t, "a", 10)
	b := realNode(t, "b", 10, a.Addr())
	eventually(t, 30*time.Second, replicas(b, 1))
	const fetches = 12
	before := b.Stats().Exchange.Fetches
	for i := range 20 * fetches {
		const many = 3000 // more than an advert carries, unless adding takes so long that the first are published before the last
		for j := range many {
			a.cfg.Holdings.Keys().Add(key("a", 100+many*i+j))
		}
		eventually(t, 30*time.Second, func() error {
			if !holders(b, key("a", 99+many*(i+1)))["a"] {
				return errNotYet
			}
			return nil
		})
		if b.Stats().Exchange.Fetches >= before+fetches {
			break
		}
	}
	if got := b.Stats().Exchange.Fetches - before; got < fetches {
		t.Fatalf("%d fetches", got)
	}
	// One to ask whether the name is free, one of memberlist's to join, poolPerPeer for all later
	// requests, and on a busy machine some of memberlist's, whose datagrams were late.
	if got := a.Stats().ConnsAccepted; got >= fetches {
		t.Errorf("a accepted %d connections for %d requests of one peer", got, fetches)
	}
}
