package conn

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Access says who may use a forward proxy, and for what. It does not apply to requests of
// peers.
type Access struct {
	Clients []netip.Prefix // nil = this machine only
	Ports   []uint16       // to which tunnels may lead; nil = 443
	// Peers returns the gossip addresses of the cluster's members, including this peer: nothing
	// is sent there, nor to their hosts at the port of Admin.
	Peers func() []netip.AddrPort
	Admin netip.AddrPort // this peer's own
}

// Client reports whether a client at an address, as [net/http.Request.RemoteAddr] has
// it, may use the proxy.
func (a *Access) Client(remote string) bool {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	if len(a.Clients) == 0 {
		return from.Addr().Unmap().IsLoopback()
	}
	return Within(a.Clients, from.Addr())
}

// Within reports whether an address is in one of the networks.
func Within(networks []netip.Prefix, ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Port reports whether a tunnel may lead to a port.
func (a *Access) Port(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	if len(a.Ports) == 0 {
		return err == nil && n == 443
	}
	return err == nil && slices.Contains(a.Ports, uint16(n))
}

// Destination reports whether the proxy may send anything over c. It checks the connection
// itself, so that no name or notation of an address gets around it. Clients on other
// machines can't reach what only this machine reaches.
func (a *Access) Destination(c net.Conn) bool {
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
func (a *Access) open() bool {
	return slices.ContainsFunc(a.Clients, func(p netip.Prefix) bool { return !p.Addr().IsLoopback() })
}

func ends(c net.Conn) (to, local netip.AddrPort) {
	of := func(a net.Addr) netip.AddrPort {
		ap, _ := netip.ParseAddrPort(a.String())
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	return of(c.RemoteAddr()), of(c.LocalAddr())
}
