package proxy

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// methodPurge asks a cache to remove what it holds of a URL. No standard says so; Varnish
// and Squid made it a custom.
const methodPurge = "PURGE"

// softPurge, with the value 1, has a PURGE make stale what it would remove, as at Fastly.
const softPurge = "Fastly-Soft-Purge"

// mayPurge says why r, as the client sent it, is not carried out; 0 = it is. The client of a
// request through another proxy is known only if that proxy is trusted: otherwise all clients
// of a proxy on this machine could purge.
func (h *Handler) mayPurge(r *http.Request) (status int, why string) {
	from, err := netip.ParseAddr(h.Client(r))
	relayed := r.Header["Via"] != nil || r.Header["X-Forwarded-For"] != nil || r.Header["Forwarded"] != nil
	switch {
	case relayed && !h.trusted.has(r.RemoteAddr):
		return http.StatusForbidden, "a PURGE through a proxy is carried out only if --trusted-proxies names that"
	case len(h.cfg.PurgeClients) == 0 && (err != nil || !from.IsLoopback()):
		return http.StatusMethodNotAllowed, "PURGE is for this machine only: others need --purge-client"
	case len(h.cfg.PurgeClients) > 0 && (err != nil || !trustedProxies(h.cfg.PurgeClients).contains(from)):
		return http.StatusForbidden, "--purge-client does not name you"
	}
	return 0, ""
}

// purge carries out a PURGE: of the tags in its field Surrogate-Key, Cache-Tag or xkey or, if it
// has none, of its URL.
func (h *Handler) purge(w http.ResponseWriter, r *http.Request) cache.Result {
	soft := r.Header.Get(softPurge) == "1"
	var targets []invalidation.Target
	for _, tag := range cache.Tags(r.Header) {
		targets = append(targets, invalidation.Target{Kind: invalidation.Tag, Name: tag, Soft: soft})
	}
	switch {
	case len(targets) > MaxPurgeTags:
		return h.cache.Refuse(w, r, cache.ClientError, http.StatusBadRequest, "tags", fmt.Sprintf("more than %d tags at once", MaxPurgeTags))
	case len(targets) == 0:
		t := h.targetOf(r.URL, false)
		t.Soft = soft
		targets = []invalidation.Target{t}
	}
	removed, late := h.cfg.Purge(r.Context(), targets)
	status, text := http.StatusOK, "done everywhere, with "+table.Of(removed, "response")+" here"
	if len(late) > 0 {
		status, text = http.StatusAccepted, "not done yet, and going on: "+strings.Join(late, ", ")
	}
	return h.cache.Refuse(w, r, cache.Bypass, status, "purge", text)
}

// MaxPurgeTags is how many tags a purge may name.
const MaxPurgeTags = 256
