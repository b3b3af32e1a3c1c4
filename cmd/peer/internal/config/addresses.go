package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/summarycache/summarycache/gossip"
)

func (c *checker) addresses(s *Settings, out *Config) {
	out.Listen, out.Admin, out.Gossip = s.Listen, s.Admin, s.Gossip
	good := true
	for _, a := range []struct{ setting, value, usual string }{{"listen", s.Listen, "3128"}, {"admin", s.Admin, "3129"}, {"gossip", s.Gossip, "7946"}} {
		err := checkAddr(a.value, a.usual, true)
		good = good && err == nil
		c.fail(a.setting, a.value, err)
	}
	for _, a := range s.Join {
		err := checkAddr(a, "7946", false)
		if strings.HasPrefix(a, "srv:") {
			err = gossip.CheckJoin(a)
		}
		good = good && err == nil
		c.fail("join", a, err)
		if err == nil {
			out.Join = append(out.Join, a)
		}
	}
	out.SquidPeers = c.squids(s)
	if !good {
		return
	}
	c.distinct(s)
	c.advertise(s, out)
}

// squids checks the addresses of Squids.
func (c *checker) squids(s *Settings) (list []string) {
	for _, a := range s.SquidPeer {
		err := checkAddr(a, "3128", false)
		switch {
		case err != nil:
		case slices.Contains(list, a):
			err = errors.New("is there twice")
		case a == s.Listen:
			err = errors.New("is the address of --listen: want that of a Squid")
		default:
			list = append(list, a)
		}
		c.fail("squid-peer", a, err)
	}
	return list
}

// distinct refuses two listeners on one port of one host.
func (c *checker) distinct(s *Settings) {
	all := []struct{ setting, addr string }{{"listen", s.Listen}, {"admin", s.Admin}, {"gossip", s.Gossip}, {"https", s.HTTPS}}
	for i, a := range all {
		for _, other := range all[:i] {
			if clash(a.addr, other.addr) {
				c.fail(a.setting, a.addr, fmt.Errorf("is the address of --%s %s too: each needs its own", other.setting, other.addr))
			}
		}
	}
}

// clash reports whether two listeners want one port of one host.
func clash(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	return portA == portB && portA != "0" && (hostA == hostB || wildcard(hostA) || wildcard(hostB))
}

// advertise settles at which host the others reach this peer, and refuses one
// that they can't.
func (c *checker) advertise(s *Settings, out *Config) {
	if h := s.Advertise; h != "" {
		if _, _, err := net.SplitHostPort(h); err == nil || wildcard(h) || strings.ContainsAny(h, "/ []@?#") {
			c.fail("advertise", h, errors.New("is no host: want a name or an IP address without a port"))
		}
		out.Advertise = h
		return
	}
	listen, _, _ := net.SplitHostPort(s.Listen)
	gossip, _, _ := net.SplitHostPort(s.Gossip)
	switch {
	case wildcard(listen) && wildcard(gossip):
		host, err := ownAddress()
		c.fail("advertise", "", err)
		out.Advertise = host
		return
	case wildcard(listen):
		out.Advertise, listen = gossip, gossip
	case wildcard(gossip):
		out.Advertise, gossip = listen, listen
	}
	for _, a := range s.Join {
		host, _, _ := net.SplitHostPort(a)
		ip, err := netip.ParseAddr(host)
		if err != nil || ip.IsLoopback() {
			continue
		}
		for _, own := range []struct{ setting, host, value string }{{"listen", listen, s.Listen}, {"gossip", gossip, s.Gossip}} {
			if loopback(own.host) {
				c.fail(own.setting, own.value, fmt.Errorf("cannot be reached by the peer that --join %s names: want an address of this machine's network, or --advertise", a))
			}
		}
		return
	}
}

func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ownAddress is the first private address of this machine or else its first
// other one that isn't loopback, IPv4 before IPv6.
func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("is needed: cannot list this machine's addresses: %w", err)
	}
	best, bestRank := netip.Addr{}, 0
	for _, a := range addrs {
		prefix, err := netip.ParsePrefix(a.String())
		ip := prefix.Addr().Unmap()
		if err != nil || !ip.IsGlobalUnicast() {
			continue
		}
		rank := 1
		if ip.Is4() {
			rank++
		}
		if ip.IsPrivate() {
			rank += 2
		}
		if rank > bestRank {
			best, bestRank = ip, rank
		}
	}
	if bestRank == 0 {
		return "", errors.New("is needed: --listen or --gossip is a wildcard and this machine has no address but loopback")
	}
	return best.String(), nil
}

// checkAddr checks a host:port to listen on or to connect to; an example of one has
// the usual port. To listen on, the host may be missing (every interface) and the port 0
// (any free one).
func checkAddr(s, usual string, listen bool) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		switch {
		case !strings.Contains(s, ":"):
			return fmt.Errorf("has no port: want HOST:PORT, such as %s", net.JoinHostPort(orLocal(s), usual))
		case strings.Count(s, ":") > 1 && !strings.Contains(s, "["):
			return fmt.Errorf("is no HOST:PORT: an IPv6 address goes in brackets, such as [::1]:%s", usual)
		}
		return errors.New("is no HOST:PORT")
	}
	if strings.Contains(s, "/") {
		return errors.New("is no HOST:PORT: it looks like a URL or a path")
	}
	if strings.ContainsAny(host, " \t@?#") {
		return errors.New("is no HOST:PORT: its host holds a character that no host has")
	}
	n, err := strconv.Atoi(port)
	switch {
	case err != nil:
		return fmt.Errorf("has port %q, which is no number", port)
	case n < 0 || n > 65535:
		return fmt.Errorf("has port %d, which is not between 0 and 65535", n)
	case !listen && n == 0:
		return errors.New("has port 0, at which nobody can be reached")
	case !listen && host == "":
		return errors.New("has no host")
	}
	return nil
}

func orLocal(host string) string {
	if host == "" || strings.ContainsAny(host, "/ ") {
		return "127.0.0.1"
	}
	return host
}
