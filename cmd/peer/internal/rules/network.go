package rules

import (
	"errors"
	"net/netip"
	"slices"
)

// Network reads a network, or an address as a network of one. One of IPv4 that is written as of IPv6, such as
// ::ffff:10.0.0.0/104, is of IPv4, as the addresses are that are compared with it.
func Network(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if ip, fault := netip.ParseAddr(s); fault == nil {
		p, err = netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	if ip := p.Addr(); ip.Is4In6() {
		if p = netip.PrefixFrom(ip.Unmap(), p.Bits()-96); !p.IsValid() { // it has more than IPv4
			err = errors.New("rules: no network of IPv4")
		}
	}
	return p, err
}

func inAny(all []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(ip) })
}
