package admin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
)

// Access says which requests an admin listener answers. The zero Access answers everybody
// who reaches the listener, accepts no commands, and serves no profiles.
type Access struct {
	// Hosts are the names that requests may have in Host, in addition to IP addresses and names
	// without a dot. A web page can make its own name, which has a dot, resolve to the
	// address of this listener (DNS rebinding); its requests have that name.
	Hosts     []string
	Operators authority.Operators // who may send commands
	// a token for a browser, among those of Operators, that whoever may send commands gets
	Session  string
	Profiles bool // at /debug/pprof/
}

// guard passes on the requests that have access, and refuses all others.
func guard(access func() Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(saidBy, "1")
		a, verdict := access(), authority.Granted
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			verdict = a.Operators.Decide(r, "", false)
		}
		switch {
		case r.Header["Via"] != nil:
			plain(w, http.StatusForbidden, "this is an admin listener: requests through proxies are refused\n")
		case !a.Operators.Socket && !a.named(r.Host):
			plain(w, http.StatusMisdirectedRequest,
				"this is an admin listener: use its IP address, or name the host by --admin-host\n")
		case verdict == authority.Relayed:
			plain(w, http.StatusForbidden, "a command through a proxy ("+authority.Trace(r.Header)+
				") is refused: send it to the admin port itself, with a token\n")
		case verdict == authority.Unknown:
			plain(w, http.StatusUnauthorized,
				"commands need a token: that of --admin-token-file, or one of peer open. On "+
					"the peer's machine peer purge, reload and replace need none, as its user or root: they use its "+
					"Unix socket\n")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// named reports whether a request may have that host.
func (a Access) named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc(a.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}
