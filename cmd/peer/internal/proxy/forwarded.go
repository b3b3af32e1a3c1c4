package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// misleading are request fields by which a client could make an origin answer for something
// other than the URL under which the response is stored, or pass for another client. They are
// always dropped.
var misleading = fieldSet("X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Ssl",
	"X-Forwarded-Protocol", "X-Url-Scheme", "Front-End-Https", "X-Original-Url", "X-Original-Host", "X-Rewrite-Url", "X-Host",
	"X-Http-Host-Override", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Client-Ip", "Cf-Connecting-Ip",
	"Fastly-Client-Ip", "Proxy")

// relayed are fields in which a proxy names its client; they are believed from trusted proxies.
var relayed = fieldSet("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Forwarded")

// overriding are those by which a GET becomes another method at some origins.
var overriding = fieldSet("X-Http-Method-Override", "X-Http-Method", "X-Method-Override")

func fieldSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// trustedProxies are the networks of proxies that are believed when they name their client.
type trustedProxies []netip.Prefix

func (t trustedProxies) has(addr string) bool {
	if len(t) == 0 {
		return false
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return false
	}
	return t.contains(at.Addr())
}

func (t trustedProxies) contains(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// client returns the address of r's client, by what trusted proxies say of it: the last
// one that is not a trusted proxy's.
func (t trustedProxies) client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	if !t.has(r.RemoteAddr) {
		return host
	}
	hops := slices.Collect(rfc9111.Members(r.Header["X-Forwarded-For"]))
	for _, hop := range slices.Backward(hops) {
		ip, err := netip.ParseAddr(hop)
		if err != nil {
			return host
		}
		if host = hop; !t.contains(ip) {
			return host
		}
	}
	return host
}

// asked is by which scheme and host a client asked, as far as it is known.
type asked struct {
	scheme string
	host   string // by X-Forwarded-Host or Forwarded of a trusted proxy, in lower case; "" = unknown
}

// withoutClaims returns r without the fields that mislead origins, and says what those
// that may be believed mean. Of X-Forwarded-For and its kin and of Forwarded only the
// first are believed if there are both: a proxy that sets the one passes the other on as
// it came. r's header is not changed.
func (h *Handler) withoutClaims(r *http.Request) (*http.Request, asked) {
	a := asked{scheme: "http"}
	if r.TLS != nil {
		a.scheme = "https"
	}
	trusted := false
	ends := func(name string) bool {
		return misleading[name] || relayed[name] && !trusted || overriding[name] && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	}
	some, claims := false, false
	for name := range r.Header {
		some = some || ends(name)
		claims = claims || relayed[name]
	}
	if !some {
		return r, a
	}
	trusted = claims && h.trusted.has(r.RemoteAddr)
	clone := *r
	clone.Header = r.Header.Clone()
	for name := range r.Header {
		if ends(name) {
			delete(clone.Header, name)
		}
	}
	if trusted {
		a.believe(clone.Header)
	}
	return &clone, a
}

// believe takes what the nearest proxy says.
func (a *asked) believe(h http.Header) {
	proto, host := last(h["X-Forwarded-Proto"]), last(h["X-Forwarded-Host"])
	if proto != "" || host != "" || h["X-Forwarded-For"] != nil {
		delete(h, "Forwarded")
	} else {
		for pair := range strings.SplitSeq(last(h["Forwarded"]), ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			switch value = strings.Trim(value, `"`); strings.ToLower(name) {
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
	if validHost(host) {
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

// validHost reports whether s can be the authority of a URL.
func validHost(s string) bool {
	if s == "" || len(s) > 300 {
		return false
	}
	u, err := url.Parse("http://" + s + "/")
	return err == nil && u.Host == s && u.User == nil && u.Hostname() != ""
}

// setForwarded sets the fields that name the client to an origin, in the header of a request
// that came from remote, by a scheme and, unless host is "", to a host.
func setForwarded(h http.Header, remote, scheme, host string) {
	lines := []string{"", scheme, host} // of the fields below, one each
	if ip, _, err := net.SplitHostPort(remote); err == nil {
		chain := ip
		if before := slices.Collect(rfc9111.Members(h["X-Forwarded-For"])); before != nil {
			chain = strings.Join(before, ", ") + ", " + ip
		}
		lines[0] = chain
		h["X-Forwarded-For"] = lines[0:1:1]
		if lines := h["Forwarded"]; lines != nil { // from a trusted proxy, else it is gone
			if strings.Contains(ip, ":") {
				ip = `"[` + ip + `]"`
			}
			h["Forwarded"] = []string{strings.Join(lines, ", ") + ", for=" + ip}
		}
	}
	h["X-Forwarded-Proto"] = lines[1:2:2]
	delete(h, "X-Forwarded-Host")
	if host != "" {
		h["X-Forwarded-Host"] = lines[2:3:3]
	}
}

// doNotShare keeps a response out of the store that varies by the client, which is in no key.
func doNotShare(h http.Header) {
	for name := range rfc9111.Members(h["Vary"]) {
		if n := http.CanonicalHeaderKey(name); n == "X-Forwarded-For" || n == "Forwarded" {
			h["Vary"] = []string{"*"}
			return
		}
	}
}

// Client returns the address of r's client: that of the connection or, if it is a trusted
// proxy's, what that says.
func (h *Handler) Client(r *http.Request) string { return h.trusted.client(r) }
