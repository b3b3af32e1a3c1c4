package guard

import (
	"net"
	"net/netip"
)

// AddrOf returns the IP address of a socket address; the zero Addr if it has none.
func AddrOf(a net.Addr) netip.Addr { return AddrPortOf(a).Addr() }

// AddrPortOf returns the address and port of a socket address; zero values if it has none.
func AddrPortOf(a net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	switch a := a.(type) {
	case *net.UDPAddr:
		ap = a.AddrPort()
	case *net.TCPAddr:
		ap = a.AddrPort()
	default:
		ap, _ = netip.ParseAddrPort(a.String()) // the zero AddrPort if it is none
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
