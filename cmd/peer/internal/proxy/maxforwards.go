package proxy

import (
	"net/http"
	"strconv"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
)

// maxForwards implements Max-Forwards of OPTIONS and TRACE (RFC 9110 section 7.6.2): it answers a
// request with 0, and decrements any other number.
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
		return h.cache.Refuse(w, r, cache.Bypass, http.StatusMethodNotAllowed, "no-trace", "this cache does not reflect requests"), true
	}
	w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT")
	return h.cache.Refuse(w, r, cache.Bypass, http.StatusOK, "max-forwards", "this cache passes requests on with these methods"), true
}
