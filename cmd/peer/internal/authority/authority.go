package authority

import (
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
)

// Operators are those who may do something. The zero Operators are nobody.
type Operators struct {
	Socket   bool           // whoever reached the listener: it is the peer's Unix socket
	Tokens   []string       // that a request may present; "" is none
	Networks []netip.Prefix // from which a request may come
}

// A Verdict is what became of a request.
type Verdict int

const (
	Granted Verdict = iota
	Relayed         // a proxy passed it on that nobody named
	Unknown         // it shows no authority
)

// Decide decides about a request. from is the address of its client, with or without a port. named says that the
// operator named the proxy through which it came, if it came through any.
func (o *Operators) Decide(r *http.Request, from string, named bool) Verdict {
	switch ip, known := addressOf(from); {
	case !named && Trace(r.Header) != "":
		return Relayed
	case o.Socket, o.presented(r), known && Within(o.Networks, ip):
		return Granted
	}
	return Unknown
}

// presented reports whether a request presents a token.
func (o *Operators) presented(r *http.Request) (yes bool) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, t := range o.Tokens {
		yes = subtle.ConstantTimeCompare([]byte(token), []byte(t)) == 1 && t != "" || yes
	}
	return ok && yes
}

// Trace returns the first field, in alphabetical order, by which a proxy shows that it passed a request on; "" = there
// is none.
func Trace(h http.Header) (field string) {
	for name := range h {
		if canonical.OfProxy(name) && (field == "" || name < field) {
			field = name
		}
	}
	return field
}

// Within reports whether an address is in one of the networks.
func Within(networks []netip.Prefix, ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

func addressOf(s string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr(), true
	}
	ip, err := netip.ParseAddr(s)
	return ip, err == nil
}
