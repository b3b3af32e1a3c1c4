package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A rulesTransport applies the rules to the responses of origins.
type rulesTransport struct {
	http.RoundTripper
	h     *Handler
	rules rules.Set
}

// RoundTrip changes r's header, which is the cache's own copy.
func (t rulesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	code := t.rules.Coding(r)
	if code != "" {
		coding.Conditions(r.Header)
	}
	now := time.Now
	if t.h.cfg.Now != nil {
		now = t.h.cfg.Now
	}
	sent, q := now(), r
	if r.Header[rfc9111.KeyField] != nil { // which no origin gets
		q = r.Clone(r.Context())
		delete(r.Header, rfc9111.KeyField)
	}
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp, err = t.follow(q, resp)
	}
	if err != nil {
		return nil, err
	}
	if code != "" {
		t.h.coder.Response(r, resp, code)
	}
	arrived := now()
	t.rules.Response(q, resp.StatusCode, resp.Header, arrived, max(0, arrived.Sub(sent)))
	if t.h.rare(t.rules, q, resp) {
		resp.Header[rfc9111.ClusterControl] = []string{"no-store"}
	}
	return resp, nil
}

// recode returns the function that makes the response to r from a stored one without a content
// coding; nil if the rules want none.
func (h *Handler) recode(r *http.Request, header http.Header) func(*http.Response) bool {
	code := h.applied.Load().Rules.Coding(r)
	if code == "" || code == "identity" || r.Method != http.MethodGet {
		return nil
	}
	coding.Conditions(header)
	return func(resp *http.Response) bool { return h.coder.Response(r, resp, code) }
}

// denyOrRedirect answers a request that a rule denies or redirects. received is the request as the client sent it.
func (h *Handler) denyOrRedirect(w http.ResponseWriter, received, r *http.Request, e rules.Effect, lookup bool) engine.Result {
	switch {
	case e.Deny == nil:
		v := h.applied.Load()
		prefix := ""
		if v.sites != nil && v.sites[0].alone {
			prefix = strings.TrimSuffix(v.sites[0].Origins[0].EscapedPath(), "/")
		}
		status, to := e.Redirect.Location(r.URL, v.hostname(received, r), prefix)
		w.Header()["Location"] = []string{to}
		return h.cache.Refuse(w, r, engine.Bypass, status, "redirect", "see "+to)
	case lookup: // the sibling's own rules allow it
		return h.cache.Refuse(w, r, engine.NotCached, http.StatusGatewayTimeout, "denied",
			"a rule denies this request here")
	}
	return h.cache.Refuse(w, r, engine.ClientError, http.StatusForbidden, "denied", "a rule denies this request")
}

// hostname returns the host that the client of a request used, without its port.
func (v *appliedSettings) hostname(received, r *http.Request) string {
	host := r.URL.Host
	if received.URL.Host == "" {
		host = received.Host
		if v.trusts(received.RemoteAddr) {
			var by forwarded
			if by.believe(received.Header); by.host != "" {
				host = by.host
			}
		}
	}
	name, _ := canonical.SplitHost(canonical.Authority("", host))
	return name
}

// deliveryRules marks the context of a request whose answer rules may change.
type deliveryRules struct{}

// withDeliveryRules returns w and r such that the rules change the answer to r when it is sent. asked is the request
// that they look at.
func (v *appliedSettings) withDeliveryRules(w http.ResponseWriter, r, asked *http.Request) (
	http.ResponseWriter, *http.Request) {
	marked := r.WithContext(context.WithValue(r.Context(), deliveryRules{}, true))
	return &ruledWriter{ResponseWriter: w, rules: v.Rules, asked: asked}, marked
}

// A ruledWriter writes an answer whose header the rules change.
type ruledWriter struct {
	http.ResponseWriter
	rules rules.Set
	asked *http.Request
	page  *rules.Page // is sent instead of the answer's body; nil = none
}

// WriteHeader implements [http.ResponseWriter]. An interim response stays as it is.
func (d *ruledWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		h := d.Header()
		if d.page = d.rules.Deliver(d.asked, status, h); h["Content-Type"] == nil {
			h["Content-Type"] = nil // one that a rule removed is not guessed
		}
	}
	d.ResponseWriter.WriteHeader(status)
	if d.page != nil && d.asked.Method != http.MethodHead {
		d.ResponseWriter.Write(d.page.Body) // an error shows at the next write, of which there is none
	}
}

// Write implements [http.ResponseWriter].
func (d *ruledWriter) Write(p []byte) (int, error) {
	if d.page != nil {
		return len(p), nil
	}
	return d.ResponseWriter.Write(p)
}

// ReadFrom implements [io.ReaderFrom], by which a body may be sent from the disk.
func (d *ruledWriter) ReadFrom(body io.Reader) (int64, error) {
	if d.page != nil {
		return io.Copy(io.Discard, body)
	}
	return io.Copy(d.ResponseWriter, body)
}

// Flush implements [http.Flusher].
func (d *ruledWriter) Flush() {
	http.NewResponseController(d.ResponseWriter).Flush() // an error shows at the next write
}

// Unwrap is for [http.ResponseController].
func (d *ruledWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }
