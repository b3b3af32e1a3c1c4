package proxy

import (
	"net"
	"net/http"
	"strconv"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
)

// forwarded tells the origin of a reverse proxy who asked. It drops the fields by
// which a client could make an origin believe that it was asked for something
// else than what the response will be stored under.
type forwarded struct{ http.RoundTripper }

var misleading = []string{"X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Server", "X-Forwarded-Prefix",
	"X-Original-Url", "X-Rewrite-Url", "X-Host", "Forwarded"}

// RoundTrip changes r's header, which is the cache's own copy.
func (f forwarded) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, name := range misleading {
		delete(r.Header, name)
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		for _, before := range r.Header["X-Forwarded-For"] {
			host = before + ", " + host
		}
		r.Header["X-Forwarded-For"] = []string{host}
	}
	r.Header["X-Forwarded-Proto"] = []string{"http"}
	return f.RoundTripper.RoundTrip(r)
}

// maxForwards answers an OPTIONS or TRACE that may go no further, and counts the
// others down (RFC 9110 section 7.6.2).
func (h *Handler) maxForwards(w http.ResponseWriter, r *http.Request) (res cache.Result, done bool) {
	if r.Method != http.MethodOptions && r.Method != http.MethodTrace {
		return res, false
	}
	n, err := strconv.ParseUint(r.Header.Get("Max-Forwards"), 10, 31)
	if err != nil {
		return res, false
	}
	if n > 0 {
		r.Header.Set("Max-Forwards", strconv.FormatUint(n-1, 10))
		return res, false
	}
	if r.Method == http.MethodTrace {
		res = h.cache.Refuse(w, r, http.StatusMethodNotAllowed, "no-trace", "this cache does not reflect requests")
	} else {
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT")
		res = h.cache.Refuse(w, r, http.StatusOK, "max-forwards", "this cache passes requests on with these methods")
	}
	res.Outcome = Bypass
	return res, true
}
