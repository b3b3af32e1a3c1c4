package guard

import (
	"net"
	"net/netip"
	"testing"
)

// TestAddrPortOf: whatever kind of socket has an address, it is that of version 4 if it can be.
func TestAddrPortOf(t *testing.T) {
	mapped, six := net.ParseIP("::ffff:192.0.2.1"), net.ParseIP("2001:db8::1")
	for name, tt := range map[string]struct {
		a    net.Addr
		want string // "" = none
	}{
		"UDP":                {&net.UDPAddr{IP: mapped, Port: 1}, "192.0.2.1:1"},
		"UDP over version 6": {&net.UDPAddr{IP: six, Port: 2}, "[2001:db8::1]:2"},
		"TCP":                {&net.TCPAddr{IP: mapped.To4(), Port: 3}, "192.0.2.1:3"},
		"TCP over version 6": {&net.TCPAddr{IP: six, Port: 4}, "[2001:db8::1]:4"},
		"another kind":       {text("[::ffff:192.0.2.1]:5"), "192.0.2.1:5"},
		"a path":             {&net.UnixAddr{Net: "unix", Name: "/run/peer"}, ""},
		"nothing":            {&net.UDPAddr{}, ""},
	} {
		var want netip.AddrPort
		if tt.want != "" {
			want = netip.MustParseAddrPort(tt.want)
		}
		if got := AddrPortOf(tt.a); got != want || AddrOf(tt.a) != want.Addr() {
			t.Errorf("%s: AddrPortOf(%v) = %v, AddrOf = %v, want %v", name, tt.a, got, AddrOf(tt.a), want)
		}
	}
}

// A text is the address of a network of another kind.
type text string

func (text) Network() string  { return "other" }
func (t text) String() string { return string(t) }
