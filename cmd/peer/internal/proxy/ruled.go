package proxy

import (
	"net/http"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// ruled applies the rules to the responses of origins.
type ruled struct {
	http.RoundTripper
	h     *Handler
	rules rules.Set
}

// RoundTrip changes r's header, which is the cache's own copy.
func (t ruled) RoundTrip(r *http.Request) (*http.Response, error) {
	code := t.rules.Coding(r)
	if code != "" {
		coding.Conditions(r.Header)
	}
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if code != "" {
		t.h.coder.Response(r, resp, code)
	}
	now := time.Now
	if t.h.cfg.Now != nil {
		now = t.h.cfg.Now
	}
	t.rules.Response(r, resp.StatusCode, resp.Header, now())
	return resp, nil
}

// recode returns the function that makes the response to r from a stored one without a content
// coding; nil if the rules want none.
func (h *Handler) recode(r *http.Request, header http.Header) func(*http.Response) bool {
	code := h.view.Load().Rules.Coding(r)
	if code == "" || code == "identity" || r.Method != http.MethodGet {
		return nil
	}
	coding.Conditions(header)
	return func(resp *http.Response) bool { return h.coder.Response(r, resp, code) }
}
