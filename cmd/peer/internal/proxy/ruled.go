package proxy

import (
	"net/http"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// ruled writes what the rules decide into what origins answer.
type ruled struct {
	http.RoundTripper
	h *Handler
}

// RoundTrip implements [http.RoundTripper].
func (t ruled) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		now := time.Now
		if t.h.cfg.Now != nil {
			now = t.h.cfg.Now
		}
		t.h.rules.Load().Response(r, resp.StatusCode, resp.Header, now())
	}
	return resp, err
}

// SetRules replaces the rules. What is stored keeps what was decided of it.
func (h *Handler) SetRules(s rules.Set) { h.rules.Store(&s) }
