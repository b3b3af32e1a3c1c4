package origin

import (
	"cmp"
	"fmt"
	"net/http"
	"sync/atomic"
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

	requests, bytes atomic.Int64
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
	h.requests.Add(1)
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
	s.h.bytes.Add(int64(len(p)))
	return s.ResponseWriter.Write(p)
}

// Requests returns the number of requests for objects that exist.
func (h *Handler) Requests() int { return int(h.requests.Load()) }

// Bytes returns how many bytes of bodies were sent.
func (h *Handler) Bytes() int64 { return h.bytes.Load() }
