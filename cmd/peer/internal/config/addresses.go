package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/summarycache/summarycache/gossip/insider"
)

// listeners returns the addresses that the peer listens on, by their settings.
func (c *checker) listeners() []struct{ setting, addr string } {
	return []struct{ setting, addr string }{{"listen", c.Listen}, {"admin", c.Admin}, {"gossip", c.Gossip}, {"https", c.HTTPSListen}}
}

// checkOrigin returns an error if an origin is this peer itself: each request would come round, and be refused then.
func (c *checker) checkOrigin(o *url.URL) error {
	host, port := o.Hostname(), cmp.Or(o.Port(), map[string]string{"https": "443"}[o.Scheme], "80")
	advertised, _ := c.Advertised()
	for _, l := range c.listeners() {
		own, at, _ := net.SplitHostPort(l.addr)
		same := host == own || host == "localhost" && loopback(own) || own == "localhost" && loopback(host) ||
			wildcard(own) && (loopback(host) || host == advertised)
		if port == at && same {
			return fmt.Errorf("is this peer's own --%s %s: requests would come round", l.setting, l.addr)
		}
	}
	return nil
}

// checkAddresses compares the addresses with each other, unless one is malformed.
func (c *checker) checkAddresses() {
	if c.Origin != nil {
		c.fail("origin", c.Origin.String(), c.checkOrigin(c.Origin))
	}
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
	listeners := c.listeners()
	for i, a := range listeners {
		for _, other := range listeners[:i] {
			if clash(a.addr, other.addr) {
				c.fail(a.setting, a.addr,
					fmt.Errorf("is also the address of --%s %s: each needs its own", other.setting, other.addr))
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
		host, port := c.Advertised()
		if n, err := strconv.Atoi(cmp.Or(port, "1")); wildcard(host) || strings.ContainsAny(host, "/ []@?#") ||
			err != nil || n < 1 || n > 65535 {
			c.fail("advertise", h, errors.New("is not a host: want a name or an IP address, with the port of gossip "+
				"if another one leads here"))
		}
		return
	}
	listen, _, _ := net.SplitHostPort(c.Listen)
	gossips, _, _ := net.SplitHostPort(c.Gossip)
	type at struct{ setting, host, value string }
	for _, own := range []at{{"listen", listen, c.Listen}, {"gossip", gossips, c.Gossip}} {
		if ip, err := netip.ParseAddr(own.host); err == nil && ip.Zone() != "" {
			c.fail(own.setting, own.value, errors.New("has a zone, which means nothing on other machines: want an address "+
				"that they can reach, or --advertise"))
			return
		}
	}
	switch {
	case wildcard(listen) && wildcard(gossips):
		host, err := insider.OwnAddress(c.Join)
		if err != nil {
			c.fail("advertise", "", fmt.Errorf("is needed: %w", err))
			return
		}
		c.Advertise = host.String()
		return
	case wildcard(listen):
		c.Advertise, listen = gossips, gossips
	case wildcard(gossips):
		c.Advertise, gossips = listen, listen
	}
	if ip, err := netip.ParseAddr(gossips); err == nil && loopback(listen) && !ip.IsLoopback() {
		c.fail("listen", c.Listen, fmt.Errorf("cannot be reached by the peers that --gossip %s is for: want an "+
			"address of this machine's network, or --advertise", c.Gossip))
		return
	}
	for _, a := range c.Join {
		host, _, _ := net.SplitHostPort(a)
		ip, err := netip.ParseAddr(host)
		if err != nil || ip.IsLoopback() {
			continue
		}
		for _, own := range []at{{"listen", listen, c.Listen}, {"gossip", gossips, c.Gossip}} {
			if loopback(own.host) {
				c.fail(own.setting, own.value,
					fmt.Errorf("cannot be reached by the peer that --join %s names: want an address of this "+
						"machine's network, or --advertise", a))
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
			return fmt.Errorf("has no host: want HOST:PORT, such as 127.0.0.1:%s, or :%s for all of this machine's "+
				"addresses", s, s)
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
