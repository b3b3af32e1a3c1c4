package authority

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// Forward says who may use a forward proxy, and for what. It does not apply to requests of
// peers.
type Forward struct {
	Clients []netip.Prefix // nil = this machine only
	Ports   []uint16       // to which tunnels may lead; nil = 443
	// Peers returns the gossip addresses of the cluster's members, including this peer: nothing
	// is sent there, nor to their hosts at the port of Admin.
	Peers func() []netip.AddrPort
	Admin netip.AddrPort // this peer's own
}

// thisMachine are the addresses from which the users of this machine come, and whatever a proxy on it passes on.
var thisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// Client reports whether the sender of a request may use the proxy. A client behind another proxy counts as a user of
// this machine only if its addresses are among Clients.
func (a *Forward) Client(r *http.Request) bool {
	users, named := Operators{Networks: a.Clients}, a.Clients != nil
	if !named {
		users.Networks = thisMachine
	}
	return users.Decide(r, r.RemoteAddr, named) == Granted
}

// Port reports whether a tunnel may lead to a port.
func (a *Forward) Port(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	if len(a.Ports) == 0 {
		return err == nil && n == 443
	}
	return err == nil && slices.Contains(a.Ports, uint16(n))
}

// Destination reports whether the proxy may send anything over c. It checks the connection
// itself, so that no name or notation of an address gets around it. Clients on other
// machines can't reach what only this machine reaches.
func (a *Forward) Destination(c net.Conn) bool {
	to, local := ends(c)
	same := func(p netip.AddrPort) bool {
		at := p.Addr().Unmap()
		return to.Port() == p.Port() && (at == to.Addr() || at.IsUnspecified() && (to.Addr().IsLoopback() || to.Addr() == local.Addr()))
	}
	for _, p := range a.Peers() {
		if same(p) || same(netip.AddrPortFrom(p.Addr(), a.Admin.Port())) {
			return false
		}
	}
	return !same(a.Admin) && !(a.open() && (to.Addr().IsLoopback() || to.Addr().IsLinkLocalUnicast()))
}

// open reports whether clients of other machines may use the proxy.
func (a *Forward) open() bool {
	return slices.ContainsFunc(a.Clients, func(p netip.Prefix) bool { return !p.Addr().IsLoopback() })
}

func ends(c net.Conn) (to, local netip.AddrPort) {
	of := func(a net.Addr) netip.AddrPort {
		ap, _ := netip.ParseAddrPort(a.String())
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return of(c.RemoteAddr()), of(c.LocalAddr())
}
