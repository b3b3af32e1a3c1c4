package origin

import (
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
	Fresh time.Duration    // how long answers stay fresh, in whole seconds; 0 = a day
	// Fetched, if not nil, is called for every request for an object before it
	// is answered, from the request's goroutine.
	Fetched func(r *http.Request)

	mu      sync.Mutex
	fetches map[string]int
	total   Tally
}

// Tally is what an origin was asked for.
type Tally struct {
	Requests int   // for objects that exist
	Objects  int   // distinct ones
	Bytes    int64 // their bodies, in full
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
	h.count(target, size)
	fresh := h.Fresh
	if fresh == 0 {
		fresh = 24 * time.Hour
	}
	header := w.Header()
	header.Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(fresh.Seconds())))
	header.Set("Content-Type", "application/octet-stream")
	header.Set("ETag", fmt.Sprintf(`"%016x-%d"`, xxhash.Sum64String(target), size))
	http.ServeContent(w, r, "", time.Time{}, NewContent(target, size))
}

func (h *Handler) count(target string, size int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fetches == nil {
		h.fetches = make(map[string]int)
	}
	h.fetches[target]++
	h.total.Requests++
	h.total.Objects = len(h.fetches)
	h.total.Bytes += size
}

// Tally returns what was asked for so far.
func (h *Handler) Tally() Tally {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}
