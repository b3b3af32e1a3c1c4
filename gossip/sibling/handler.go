package sibling

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// IsLookup reports whether a request is a lookup request: a GET or HEAD with "Cache-Control:
// only-if-cached", which a cache must answer from its store alone.
func IsLookup(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != "" {
		return false
	}
	if r.Header["Cache-Control"] == nil {
		return false
	}
	cc := rfc9111.RequestDirectives(r.Header)
	return cc.OnlyIfCached
}

// markHit writes into a header that the response comes from the store of the cache of that name. A
// Client accepts no answer without it.
func markHit(h http.Header, name string) {
	status := rfc9111.Status{Cache: name, Hit: true}
	status.Add(h)
}

const missText = "no fresh copy here\n"

// markMiss writes the header of the answer of a cache of that name that has no fresh copy.
func markMiss(h http.Header, name string) {
	status := rfc9111.Status{Cache: name, Detail: "only-if-cached"}
	status.Add(h)
	h["Content-Type"] = []string{"text/plain; charset=utf-8"}
}

func answerMiss(w http.ResponseWriter, name string) {
	markMiss(w.Header(), name)
	w.WriteHeader(http.StatusGatewayTimeout)
	io.WriteString(w, missText)
}

// A Handler answers siblings from an HTTP cache that is a transport. It never causes requests to
// siblings or the origin, if the cache is on top of a [Transport]. Requests other than lookup
// requests get 403. It is safe for concurrent use.
type Handler struct {
	Name string // of this cache in Cache-Status: a token, such as Config.Name
	// Cache gets the lookup requests with their only-if-cached, and must answer from its
	// store, or with 504. A response that is stale is not sent on, since not every cache
	// checks that. nil = every request is a miss.
	Cache http.RoundTripper
	// Cluster knows which invalidations Cache has applied: see Transport.Cluster. nil = none.
	Cluster Cluster
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !IsLookup(r) {
		http.Error(w, "only requests from siblings (only-if-cached) are answered here", http.StatusForbidden)
		return
	}
	if h.Cache == nil || !peering.UpToDate(r.Header, h.Cluster) {
		answerMiss(w, h.Name)
		return
	}
	out := r.Clone(r.Context())
	out.URL = target(r)
	out.RequestURI, out.Body, out.Close = "", nil, false
	rfc9111.RemoveHopByHop(out.Header)
	resp, err := h.Cache.RoundTrip(out)
	if err != nil {
		answerMiss(w, h.Name)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusGatewayTimeout || isStale(rfc9111.NewResponse(resp.StatusCode, resp.Header, 0, time.Now())) {
		answerMiss(w, h.Name)
		return
	}
	rfc9111.RemoveHopByHop(resp.Header)
	w.Header()["Content-Type"] = nil // keeps the server from guessing one
	maps.Copy(w.Header(), resp.Header)
	markHit(w.Header(), h.Name)
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // so that the sibling sees that the body is incomplete
	}
}

// target returns the absolute URL of a request.
func target(r *http.Request) *url.URL {
	u := *r.URL
	if !u.IsAbs() {
		u.Scheme, u.Host = "http", r.Host
	}
	return &u
}
