package proxy

import (
	"iter"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// trusts reports whether a connection from addr, with its port, is a trusted proxy's.
func (v *appliedSettings) trusts(addr string) bool {
	if len(v.TrustedProxies) == 0 {
		return false
	}
	at, err := netip.ParseAddrPort(addr)
	return err == nil && authority.Within(v.TrustedProxies, at.Addr())
}

// client returns the address of r's client: that of the connection or, if that is a trusted
// proxy's, the last one in X-Forwarded-For, or Forwarded, that is not.
func (v *appliedSettings) client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if !v.trusts(r.RemoteAddr) {
		return host
	}
	hops := slices.Collect(rfc9111.Members(r.Header["X-Forwarded-For"]))
	if !byX(r.Header) {
		hops = forwardedFor(r.Header)
	}
	for _, hop := range slices.Backward(hops) {
		ip, err := hopAddr(strings.Trim(hop, `"`))
		if err != nil {
			return host
		}
		if host = ip.String(); !authority.Within(v.TrustedProxies, ip) {
			return host
		}
	}
	return host
}

// hopAddr reads the address of a hop, of which some proxies write the port, too, or IPv6 in brackets.
func hopAddr(s string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr().Unmap(), nil
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		s = strings.TrimSuffix(inner, "]")
	}
	ip, err := netip.ParseAddr(s)
	return ip.Unmap(), err
}

// forwardedFor returns the hops that Forwarded names, as they are written there, the client's first.
func forwardedFor(h http.Header) (hops []string) {
	for member := range rfc9111.Members(h["Forwarded"]) {
		for name, value := range pairs(member) {
			if name == "for" && value != "" {
				hops = append(hops, value)
			}
		}
	}
	return hops
}

// pairs yields the pairs of a member of Forwarded, their names in lower case.
func pairs(member string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for pair := range strings.SplitSeq(member, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if !yield(strings.ToLower(name), value) {
				return
			}
		}
	}
}

// byX reports whether it is X-Forwarded-* that a trusted proxy sets, and not Forwarded. If both are present, only
// X-Forwarded-* is trusted: a proxy that sets one kind passes the other on as received.
func byX(h http.Header) bool {
	return h["X-Forwarded-For"] != nil || last(h["X-Forwarded-Proto"]) != "" || last(h["X-Forwarded-Host"]) != ""
}

// ruledClient returns the address of r's client if a rule depends on it, and otherwise none.
func (v *appliedSettings) ruledClient(r *http.Request) (ip netip.Addr) {
	if v.Rules.ByClient() {
		ip, _ = netip.ParseAddr(v.client(r))
	}
	return ip.Unmap().WithZone("")
}

// forwarded is the scheme and host that a client used, as far as known.
type forwarded struct {
	scheme    string
	host      string // of X-Forwarded-Host or Forwarded of a trusted proxy, in lower case; "" = unknown
	redundant bool   // there are both X-Forwarded-* and Forwarded
}

// believe sets what the nearest proxy says.
func (a *forwarded) believe(h http.Header) {
	proto, host := last(h["X-Forwarded-Proto"]), last(h["X-Forwarded-Host"])
	if a.redundant = byX(h); !a.redundant {
		for name, value := range pairs(last(h["Forwarded"])) {
			switch value = strings.Trim(value, `"`); name {
			case "proto":
				proto = value
			case "host":
				host = value
			}
		}
	}
	switch strings.ToLower(proto) {
	case "http", "ws":
		a.scheme = "http"
	case "https", "wss":
		a.scheme = "https"
	}
	if canonical.ValidHost(host) && len(host) <= 300 {
		a.host = strings.ToLower(host)
	}
}

// last returns the last member of a list field.
func last(lines []string) (member string) {
	for m := range rfc9111.Members(lines) {
		member = m
	}
	return member
}

// setForwarded sets the fields that describe the client to an origin: its address, from remote,
// and the scheme and the host that it used. host "" = none.
func setForwarded(h http.Header, remote, scheme, host string) {
	lines := []string{"", scheme, host} // of the fields below, one each
	if ip, _, err := net.SplitHostPort(remote); err == nil {
		chain := ip
		if before := slices.Collect(rfc9111.Members(h["X-Forwarded-For"])); before != nil {
			chain = strings.Join(before, ", ") + ", " + ip
		}
		lines[0] = chain
		h["X-Forwarded-For"] = lines[0:1:1]
		setHops(h, ip)
	}
	h["X-Forwarded-Proto"] = lines[1:2:2]
	delete(h, "X-Forwarded-Host")
	if host != "" {
		h["X-Forwarded-Host"] = lines[2:3:3]
	}
}

// setHops has Forwarded of a trusted proxy, if any, say nothing but the addresses of the hops and of
// the proxy: a host or scheme in it may be others than those of the key.
func setHops(h http.Header, proxy string) {
	hops := forwardedFor(h)
	delete(h, "Forwarded")
	if hops != nil {
		if strings.Contains(proxy, ":") {
			proxy = `"[` + proxy + `]"`
		}
		h["Forwarded"] = []string{"for=" + strings.Join(append(hops, proxy), ", for=")}
	}
}

// doNotShare prevents a response that varies by the client from being stored, since the client is
// not part of any key.
func doNotShare(h http.Header) {
	for name := range rfc9111.Members(h["Vary"]) {
		if n := http.CanonicalHeaderKey(name); n == "X-Forwarded-For" || n == "Forwarded" {
			h["Vary"] = []string{"*"}
			return
		}
	}
}
