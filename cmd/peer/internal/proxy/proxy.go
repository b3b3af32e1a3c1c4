package proxy

import (
	"errors"
	"net/http"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

// A Handler answers the requests of clients and siblings. It is safe for
// concurrent use.
type Handler struct{}

// New opens the store and returns a Handler, or every mistake in c at once.
func New(c Config) (*Handler, error) { return nil, errors.ErrUnsupported }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusNotImplemented)
}

// Counters returns a snapshot of the counters.
func (h *Handler) Counters() Counts { return Counts{} }

// Purge removes every stored response of an absolute URL, whatever the request
// fields it was selected by, and returns how many there were.
func (h *Handler) Purge(url string) (int, error) { return 0, errors.ErrUnsupported }

// PurgePrefix removes every stored response whose URL begins with prefix and
// returns how many there were.
func (h *Handler) PurgePrefix(prefix string) int { return 0 }

// Store returns the store, for its statistics.
func (h *Handler) Store() *store.Store { return nil }

// Close ends tunnels and background work and closes the store. Requests under
// way are the http.Server's to wait for; call Close after it.
func (h *Handler) Close() error { return nil }
