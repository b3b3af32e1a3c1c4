package origin

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// A Handler serves objects of known sizes. It is safe for concurrent use; its
// exported fields must not change once it serves.
type Handler struct {
	Sizes map[string]int64 // request target to body bytes; any other target is 404
	Fresh time.Duration    // the lifetime of responses, in whole seconds; 0 = a day
	// Fetched, if not nil, is called for every request for an object before the response, in the
	// request's goroutine.
	Fetched func(r *http.Request)

	mu      sync.Mutex
	fetched map[string]bool
	total   Tally
}

// Tally counts the requests to an origin.
type Tally struct {
	Requests int   // for objects that exist
	Objects  int   // distinct ones
	Bytes    int64 // of bodies that it sent
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := r.URL.RequestURI()
	size, ok := h.Sizes[target]
	if !ok {
		http.Error(w, "no such object", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "objects can only be read", http.StatusMethodNotAllowed)
		return
	}
	if h.Fetched != nil {
		h.Fetched(r)
	}
	h.count(target)
	header := w.Header()
	header.Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(cmp.Or(h.Fresh, 24*time.Hour).Seconds())))
	header.Set("Content-Type", "application/octet-stream")
	header.Set("ETag", fmt.Sprintf(`"%016x-%d"`, xxhash.Sum64String(target), size))
	http.ServeContent(sending{w, h}, r, "", time.Time{}, NewContent(target, size))
}

// sending counts the bytes of a body before they are sent.
type sending struct {
	http.ResponseWriter
	h *Handler
}

func (s sending) Write(p []byte) (int, error) {
	s.h.mu.Lock()
	s.h.total.Bytes += int64(len(p))
	s.h.mu.Unlock()
	return s.ResponseWriter.Write(p)
}

func (h *Handler) count(target string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fetched == nil {
		h.fetched = make(map[string]bool)
	}
	h.fetched[target] = true
	h.total = Tally{h.total.Requests + 1, len(h.fetched), h.total.Bytes}
}

// Tally returns the counts so far.
func (h *Handler) Tally() Tally {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}
