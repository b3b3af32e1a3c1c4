package authority

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
)

type between struct {
	net.Conn
	local, remote string
}

func (c between) LocalAddr() net.Addr  { return addr(c.local) }
func (c between) RemoteAddr() net.Addr { return addr(c.remote) }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// What a forward proxy sends reaches no port of the cluster's own, by whatever name or
// notation, and for clients of other machines nothing that only this one reaches.
func TestDestination(t *testing.T) {
	lan := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, tt := range []struct {
		clients              []netip.Prefix
		admin, local, remote string
		want                 bool
	}{
		{nil, "127.0.0.1:3129", "127.0.0.1:5", "127.0.0.1:3129", false},
		{nil, "127.0.0.1:3129", "127.0.0.1:5", "127.0.0.1:80", true},
		{nil, "127.0.0.1:3129", "[::ffff:127.0.0.1]:5", "[::ffff:127.0.0.1]:3129", false},
		{nil, "10.0.0.1:3129", "10.0.0.1:5", "10.0.0.9:3129", true}, // no peer
		{nil, "10.0.0.1:3129", "10.0.0.1:5", "10.0.0.2:3129", false},
		{nil, "127.0.0.1:3129", "10.0.0.1:5", "10.0.0.2:3129", false},
		{nil, "10.0.0.1:3129", "10.0.0.1:5", "10.0.0.2:7946", false},
		{nil, "10.0.0.1:3129", "10.0.0.1:5", "10.0.0.1:7947", false}, // its own gossip
		{nil, "10.0.0.1:3129", "10.0.0.1:5", "10.0.0.2:443", true},
		{nil, "0.0.0.0:3129", "10.0.0.1:5", "10.0.0.1:3129", false},
		{nil, "[::]:3129", "127.0.0.1:5", "127.0.0.2:3129", false},
		{lan, "127.0.0.1:3129", "127.0.0.1:5", "127.0.0.1:80", false},
		{lan, "127.0.0.1:3129", "10.0.0.1:5", "169.254.169.254:80", false},
		{lan, "127.0.0.1:3129", "10.0.0.1:5", "[fe80::1%eth0]:80", false},
		{lan, "127.0.0.1:3129", "10.0.0.1:5", "10.0.0.9:80", true},
	} {
		a := Forward{Clients: tt.clients, Admin: netip.MustParseAddrPort(tt.admin), Peers: func() []netip.AddrPort {
			return []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:7947"), netip.MustParseAddrPort("10.0.0.2:7946")}
		}}
		if got := a.Destination(between{local: tt.local, remote: tt.remote}); got != tt.want {
			t.Errorf("admin at %s, clients %v: %s to %s: %v, want %v", tt.admin, tt.clients, tt.local, tt.remote, got, tt.want)
		}
	}
}

// A forward proxy is this machine's own, and tunnels lead to port 443, unless more is
// asked for.
func TestClosedByDefault(t *testing.T) {
	var closed Forward
	open := Forward{Clients: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Ports: []uint16{443, 8443}}
	named := Forward{Clients: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	for _, tt := range []struct {
		remote, trace       string
		closed, open, named bool
	}{
		{"127.0.0.1:5", "", true, false, true}, {"[::1]:5", "", true, false, false}, {"[::ffff:10.1.2.3]:5", "", false, true, false},
		{"10.1.2.3:5", "", false, true, false}, {"10.1.2.3:5", "Via", false, true, false}, {"127.0.0.1:5", "X-Forwarded-For", false, false, true},
		{"192.0.2.1:5", "", false, false, false}, {"", "", false, false, false}, {"nobody", "", false, false, false},
	} {
		r := &http.Request{RemoteAddr: tt.remote, Header: http.Header{}}
		if tt.trace != "" {
			r.Header.Set(tt.trace, "x")
		}
		if got, want := [3]bool{closed.Client(r), open.Client(r), named.Client(r)}, [3]bool{tt.closed, tt.open, tt.named}; got != want {
			t.Errorf("client %q with %q: %v, want %v", tt.remote, tt.trace, got, want)
		}
	}
	for port, want := range map[string][2]bool{"443": {true, true}, "8443": {false, true}, "3129": {}, "22": {}, "x": {}, "70443": {}, "": {}} {
		if got := [2]bool{closed.Port(port), open.Port(port)}; got != want {
			t.Errorf("port %q: %v, want %v", port, got, want)
		}
	}
}
