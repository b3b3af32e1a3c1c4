package proxy

import (
	"net/http"
	"strconv"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

const methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT" // that are passed on

// maxForwards refuses TRACE, which would show the client's cookies to whoever sends it, and
// implements Max-Forwards of OPTIONS (RFC 9110 section 7.6.2): it answers a request with 0, and
// decrements any other number.
func (h *Handler) maxForwards(w http.ResponseWriter, r *http.Request) (res engine.Result, done bool) {
	switch r.Method {
	case http.MethodTrace:
		w.Header().Set("Allow", methods)
		return h.cache.Refuse(w, r, engine.ClientError, http.StatusMethodNotAllowed, "no-trace",
			"this cache neither reflects requests nor passes TRACE on"), true
	case http.MethodOptions:
	default:
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
	w.Header().Set("Allow", methods)
	return h.cache.Refuse(w, r, engine.Bypass, http.StatusOK, "max-forwards",
		"this cache passes requests on with these methods"), true
}
