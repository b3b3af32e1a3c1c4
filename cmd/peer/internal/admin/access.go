package admin

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Access says which requests an admin listener answers. The zero Access answers everybody
// who reaches the listener, accepts commands over loopback only, and serves no profiles.
type Access struct {
	// Hosts are the names that requests may have in Host, in addition to IP addresses and names
	// without a dot. A web page can make its own name, which has a dot, resolve to the
	// address of this listener (DNS rebinding); its requests have that name.
	Hosts    []string
	Token    string // that commands must present, wherever they come from; "" = none
	Profiles bool   // at /debug/pprof/
}

// guard passes on the requests that have access, and refuses all others.
func guard(access func() Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(saidBy, "1")
		a := access()
		switch command := r.Method != http.MethodGet && r.Method != http.MethodHead; {
		case r.Header["Via"] != nil:
			plain(w, http.StatusForbidden, "this is an admin listener: requests through proxies are refused\n")
		case !a.named(r.Host):
			plain(w, http.StatusMisdirectedRequest, "this is an admin listener: use its IP address, or name the host by --admin-host\n")
		case command && a.Token != "" && !a.bears(r):
			plain(w, http.StatusUnauthorized, "commands need the token of --admin-token-file\n")
		case command && a.Token == "" && !overLoopback(r):
			plain(w, http.StatusForbidden, "commands are accepted over loopback (127.0.0.1, ::1) only, unless there is an --admin-token-file: other machines and containers may share this one's other addresses\n")
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

// bears reports whether a request presents the token.
func (a Access) bears(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(a.Token)) == 1
}

// overLoopback reports whether a request came over loopback. From one's own address behind another
// interface it may come from a container or a pod whose address was translated.
func overLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}
