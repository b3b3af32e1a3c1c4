package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// checkAddresses compares the addresses with each other, unless one is malformed.
func (c *checker) checkAddresses() {
	var squids []string
	for _, a := range c.SquidPeers {
		switch {
		case slices.Contains(squids, a):
			c.fail("squid-peer", a, errors.New("is listed twice"))
		case a == c.Listen:
			c.fail("squid-peer", a, errors.New("is the address of --listen: want the address of a Squid"))
		}
		squids = append(squids, a)
	}
	for _, setting := range []string{"listen", "admin", "gossip", "join"} {
		if c.wrong[setting] {
			return
		}
	}
	listeners := []struct{ setting, addr string }{{"listen", c.Listen}, {"admin", c.Admin}, {"gossip", c.Gossip}, {"https", c.HTTPSListen}}
	for i, a := range listeners {
		for _, other := range listeners[:i] {
			if clash(a.addr, other.addr) {
				c.fail(a.setting, a.addr, fmt.Errorf("is also the address of --%s %s: each needs its own", other.setting, other.addr))
			}
		}
	}
	c.checkAdvertise()
}

// clash reports whether two listeners want the same port of one host.
func clash(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	return portA == portB && portA != "0" && (hostA == hostB || wildcard(hostA) || wildcard(hostB))
}

// checkAdvertise determines the host at which the other peers reach this one, and refuses a host
// that they cannot reach.
func (c *checker) checkAdvertise() {
	if h := c.Advertise; h != "" {
		if _, _, err := net.SplitHostPort(h); err == nil || wildcard(h) || strings.ContainsAny(h, "/ []@?#") {
			c.fail("advertise", h, errors.New("is not a host: want a name or an IP address without a port"))
		}
		return
	}
	listen, _, _ := net.SplitHostPort(c.Listen)
	gossip, _, _ := net.SplitHostPort(c.Gossip)
	switch {
	case wildcard(listen) && wildcard(gossip):
		host, err := ownAddress()
		c.fail("advertise", "", err)
		c.Advertise = host
		return
	case wildcard(listen):
		c.Advertise, listen = gossip, gossip
	case wildcard(gossip):
		c.Advertise, gossip = listen, listen
	}
	for _, a := range c.Join {
		host, _, _ := net.SplitHostPort(a)
		ip, err := netip.ParseAddr(host)
		if err != nil || ip.IsLoopback() {
			continue
		}
		for _, own := range []struct{ setting, host, value string }{{"listen", listen, c.Listen}, {"gossip", gossip, c.Gossip}} {
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

// ownAddress returns this machine's first private address or, if it has none, its first other
// address that is not loopback, IPv4 before IPv6.
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
		return "", errors.New("is needed: --listen or --gossip is a wildcard and this machine has no address other than loopback")
	}
	return best.String(), nil
}

// checkAddr checks a HOST:PORT to listen on or to connect to. For a listener the host may be empty
// (every interface) and the port 0 (any free one). Error messages give usual as an example of a
// port.
func checkAddr(s, usual string, listen bool) error {
	if strings.Contains(s, "/") {
		return errors.New("is not HOST:PORT: it looks like a URL or a path")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		switch _, notNumber := strconv.Atoi(s); {
		case notNumber == nil && listen:
			return fmt.Errorf("has no host: want HOST:PORT, such as 127.0.0.1:%s, or :%s for all of this machine's addresses", s, s)
		case !strings.Contains(s, ":"):
			return fmt.Errorf("has no port: want HOST:PORT, such as %s", net.JoinHostPort(orLocal(s), usual))
		case strings.Count(s, ":") > 1 && !strings.Contains(s, "["):
			return fmt.Errorf("is not HOST:PORT: an IPv6 address goes in brackets, such as [::1]:%s", usual)
		}
		return errors.New("is not HOST:PORT")
	}
	if strings.ContainsAny(host, " \t@?#") {
		return errors.New("is not HOST:PORT: its host has a character that is not allowed in hosts")
	}
	n, err := strconv.Atoi(port)
	switch {
	case err != nil:
		return fmt.Errorf("has port %q, which is not a number", port)
	case n < 0 || n > 65535:
		return fmt.Errorf("has port %d, which is not between 0 and 65535", n)
	case !listen && n == 0:
		return errors.New("has port 0, which cannot be reached")
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
