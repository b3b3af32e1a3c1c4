package sibling

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// IsLookup reports whether a request is answered from what is stored or not at
// all: a GET or HEAD under "Cache-Control: only-if-cached".
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

// Asker is the name of the cache that sent a request, in the last member of Via;
// "" = it is a client's. Anybody can claim a name.
func Asker(h http.Header) string {
	if names := rfc9111.Via(h); len(names) > 0 {
		return names[len(names)-1]
	}
	return ""
}

// maxWait bounds how long a question waits for a fetch that is under way.
const maxWait = 10 * time.Second

// PreferredWait is for how long the asker of a question would wait for a fetch that is
// under way, at most 10 s (RFC 7240 section 4.3); 0 = not at all.
func PreferredWait(h http.Header) time.Duration {
	for m := range rfc9111.Members(h["Prefer"]) {
		if s, ok := strings.CutPrefix(strings.ToLower(m), "wait="); ok {
			if n, err := strconv.ParseUint(s, 10, 16); err == nil {
				return min(time.Duration(n)*time.Second, maxWait)
			}
		}
	}
	return 0
}

// markHit says in a header that the response comes from what the cache of that name
// holds. A Client takes no answer without it.
func markHit(h http.Header, name string) {
	status := rfc9111.Status{Cache: name, Hit: true}
	status.Add(h)
}

const missText = "no fresh copy here\n"

// markMiss is the header of the answer to a question whose object the cache of that name
// does not hold, or not fresh.
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

// refuse answers what is no question where nothing else is answered.
func refuse(w http.ResponseWriter) {
	http.Error(w, "only siblings' questions are answered here", http.StatusForbidden)
}

// A Handler answers siblings from an HTTP cache that is a transport. It asks
// nobody: over a cache that stands on a [Transport] nothing else can happen. What
// is no question it refuses with 403. It is safe for concurrent use.
type Handler struct {
	Name string // this cache's in Cache-Status: a token, such as Config.Name
	// Cache gets the questions as they come, only-if-cached, and is to answer from
	// what it holds, or 504. A response that outlived its lifetime counts as none,
	// since not every cache heeds that. Nil holds nothing.
	Cache http.RoundTripper
	// Cluster says what Cache has removed: see Transport.Cluster. nil = nothing.
	Cluster Cluster
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !IsLookup(r) {
		refuse(w)
		return
	}
	if h.Cache == nil || !UpToDate(r.Header, h.Cluster) {
		answerMiss(w, h.Name)
		return
	}
	out := r.Clone(r.Context())
	out.URL = target(r)
	out.RequestURI, out.Body, out.Close = "", nil, false
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Upgrade"} {
		delete(out.Header, name)
	}
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
	maps.Copy(w.Header(), resp.Header)
	delete(w.Header(), "Connection")
	markHit(w.Header(), h.Name)
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(w, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // the asker must see that the body is not whole
	}
}

// target is the absolute URL that a request is for.
func target(r *http.Request) *url.URL {
	u := *r.URL
	if !u.IsAbs() {
		u.Scheme, u.Host = "http", r.Host
	}
	return &u
}
