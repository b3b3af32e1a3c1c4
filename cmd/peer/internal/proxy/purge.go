package proxy

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// methodPurge removes the stored responses of a URL. It is in no standard, but customary since
// Varnish and Squid.
const methodPurge = "PURGE"

// softPurge, with the value 1, makes a PURGE mark responses as stale instead of removing them, as
// at Fastly.
const softPurge = "Fastly-Soft-Purge"

// purgeMethod, with the value "pattern", makes a PURGE one of all that its URL matches, where * stands for any
// characters. The name is that of the plugins for Varnish.
const purgeMethod = "X-Purge-Method"

// mayPurge returns why r, as the client sent it, is refused; status 0 = it is carried out. The
// client behind another proxy is known only if that proxy is trusted.
func (v *appliedSettings) mayPurge(r *http.Request) (status int, why string) {
	who := authority.Operators{Networks: v.PurgeClients}
	switch verdict := who.Decide(r, v.client(r), v.trusts(r.RemoteAddr)); {
	case verdict == authority.Relayed:
		return http.StatusForbidden, "a PURGE through a proxy (" + authority.Trace(r.Header) +
			") needs that proxy in --trusted-proxies, and its client in --purge-client"
	case verdict == authority.Unknown && len(v.PurgeClients) == 0:
		return http.StatusMethodNotAllowed,
			"PURGE needs --purge-client, which names who may send it. On the peer's machine peer purge needs nothing"
	case verdict == authority.Unknown:
		return http.StatusForbidden, "--purge-client does not include your address"
	}
	return 0, ""
}

// purge carries out a PURGE of the tags in Surrogate-Key, Cache-Tag or xkey or, if there are none,
// of the URL.
func (h *Handler) purge(w http.ResponseWriter, r *http.Request, v *appliedSettings) engine.Result {
	soft := r.Header.Get(softPurge) == "1"
	var targets []invalidation.Target
	for _, tag := range engine.Tags(r.Header) {
		targets = append(targets, invalidation.Target{Kind: invalidation.Tag, Name: tag, Soft: soft})
	}
	switch {
	case len(targets) > MaxPurgeTags:
		return h.cache.Refuse(w, r, engine.ClientError, http.StatusBadRequest, "tags",
			fmt.Sprintf("more than %d tags at once", MaxPurgeTags))
	case len(targets) == 0:
		kind, known := map[string]invalidation.Kind{"": invalidation.Identity, "exact": invalidation.Identity,
			"pattern": invalidation.Pattern}[strings.ToLower(r.Header.Get(purgeMethod))]
		if !known || kind == invalidation.Pattern && strings.Contains(r.URL.Host, "*") {
			return h.cache.Refuse(w, r, engine.ClientError, http.StatusBadRequest, "method", purgeMethod+
				" is exact or pattern, where * stands for any characters of a path and query")
		}
		t := v.targetOf(r.URL, kind)
		t.Soft = soft
		targets = []invalidation.Target{t}
	}
	removed, late := h.cfg.Purge(r.Context(), targets)
	status, text := http.StatusOK, "done at all peers; "+table.Of(removed, "response")+" here"
	if len(late) > 0 {
		status, text = http.StatusAccepted, "in progress, not yet done at: "+strings.Join(late, ", ")
	}
	return h.cache.Refuse(w, r, engine.Bypass, status, "purge", text)
}

// MaxPurgeTags is how many tags a purge may name.
const MaxPurgeTags = 256
