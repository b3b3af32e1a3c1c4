package proxy

import (
	"net/http"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// ruled makes of what origins answer what the rules want.
type ruled struct {
	http.RoundTripper
	h *Handler
}

// RoundTrip changes r's header, which is the cache's own copy.
func (t ruled) RoundTrip(r *http.Request) (*http.Response, error) {
	rules := t.h.rules.Load()
	code := rules.Coding(r)
	if code != "" {
		coding.Conditions(r.Header)
	}
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		now := time.Now
		if t.h.cfg.Now != nil {
			now = t.h.cfg.Now
		}
		if code != "" {
			t.h.coder.Response(r, resp, code)
		}
		rules.Response(r, resp.StatusCode, resp.Header, now())
	}
	return resp, err
}

// recode says how the response to r is made of one without a content coding; nil = it is not.
func (h *Handler) recode(r *http.Request, header http.Header) func(*http.Response) bool {
	code := h.rules.Load().Coding(r)
	if code == "" || code == "identity" || r.Method != http.MethodGet {
		return nil
	}
	coding.Conditions(header)
	return func(resp *http.Response) bool { return h.coder.Response(r, resp, code) }
}

// SetRules replaces the rules. What is stored keeps what was decided of it.
func (h *Handler) SetRules(s rules.Set) { h.rules.Store(&s) }
