package httpcache

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"

	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Wrap is [Member.Serve] as middleware around a handler, which must not be nil.
func (m *Member) Wrap(next http.Handler) http.Handler {
	if m.made(); next == nil {
		panic("cache: Wrap needs the handler that answers what is not cached")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = m.Serve(w, r, func(w http.ResponseWriter, r *http.Request) error {
			next.ServeHTTP(w, r)
			return nil
		})
	})
}

// ServeHTTP answers the requests of siblings, and all others with 403.
func (m *Member) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.made()
	if !isFromSibling(r) { // so no request can remove anything here
		http.Error(w, "only requests from siblings (only-if-cached) are answered here", http.StatusForbidden)
		return
	}
	m.answer(w, r)
}

func isFromSibling(r *http.Request) bool {
	return sibling.IsLookup(r) || r.URL.Path == peering.CoalescePath
}

// Serve answers a GET or HEAD from the store, from a sibling, or by next, whose answer is passed on as it
// is written, and stored if that is allowed. All other requests go to next as they are. If one of them
// that may change the object, such as a POST, succeeds, the object is removed here and at the siblings
// before Serve returns, or up to a second later. The last member of Cache-Status in each answer is the
// cache's.
//
// next runs in a goroutine of its own, with the values of the request's context, and may outlive the
// request: other clients may wait for its answer, which is stored. It may be called again if its
// answer breaks off, for the rest, and to validate what it answered before. An error is next's; if it
// panics, so does Serve.
//
// An answer that may not be stored goes to its own client alone. For half a minute after it no request for that URL
// waits for another one, and each calls next. Trailers of answers to GET and HEAD are dropped; all other requests, such
// as those of gRPC, have theirs.
//
// The URL of the object has the host that the request names. Its scheme is https if the request
// came by TLS. A request of a sibling is answered from the store or with 504.
func (m *Member) Serve(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request) error) error {
	if m.made(); next == nil {
		panic("cache: Serve needs the function that answers what is not cached")
	}
	if isFromSibling(r) {
		m.answer(w, r)
		return nil
	}
	u := m.served(r)
	if reason := m.bypass(r, u); reason != "" {
		to := &statusWriter{ResponseWriter: w, m: m, st: rfc9111.Status{Fwd: reason}}
		if r.Method == http.MethodGet || rfc9111.IsSafe(r.Method) {
			m.engine.AddStatus(w.Header(), to.st)
			return next(w, r) // which may want to take over the connection
		}
		err := next(to, r)
		to.begin(http.StatusOK)
		m.engine.Written(r, u, to.st.FwdStatus, w.Header())
		return err
	}
	q := m.request(r, u, &source{RoundTripper: handled(next), of: r})
	refused, err := m.serve(w, q)
	if err == nil {
		return nil
	}
	engine.Repanic(err)
	switch failed := (*handlerError)(nil); {
	case errors.As(err, &failed):
		return failed.error
	case refused && r.Context().Err() == nil:
		m.engine.Failed(w, q, u.Host, err)
	default:
		panic(http.ErrAbortHandler) // so that the client sees that the answer is incomplete or missing
	}
	return nil
}

// served returns the URL of the response to a server's request.
func (m *Member) served(r *http.Request) *url.URL {
	if m.url != nil {
		return m.url(r)
	}
	u := &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery,
		ForceQuery: r.URL.ForceQuery}
	if r.TLS != nil || r.URL.Scheme == "https" && sibling.IsLookup(r) {
		u.Scheme = "https"
	}
	return u
}

// bypass returns why a client's request goes to its source as it is; "" = it does not.
func (m *Member) bypass(r *http.Request, u *url.URL) string {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != "":
		return "method"
	case peering.HasBody(r), r.Header["Upgrade"] != nil, r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil,
		isValue(u): // which no client names
		return "bypass"
	}
	return ""
}

func isValue(u *url.URL) bool { return strings.HasPrefix(rfc9111.CanonicalURL(u), valueURL) }

// request returns r as the cache needs it.
func (m *Member) request(r *http.Request, u *url.URL, from *source) *http.Request {
	if from != nil {
		from.within = sourceOf(r.Context())
	}
	q := r.WithContext(context.WithValue(r.Context(), sourceKey{}, from))
	q.URL, q.Header, q.Body, q.RequestURI = u, maps.Clone(r.Header), http.NoBody, ""
	if q.Header == nil {
		q.Header = http.Header{}
	}
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	if q.ProtoMajor == 0 {
		q.Proto, q.ProtoMajor, q.ProtoMinor = "HTTP/1.1", 1, 1
	}
	rfc9111.RemoveHopByHop(q.Header)
	return q
}

// serve answers a client's request by the cache. An error is that of the source, of the cache or of the context;
// refused says that nothing was written then.
func (m *Member) serve(w http.ResponseWriter, q *http.Request) (refused bool, err error) {
	to := &refusable{ResponseWriter: w}
	res := m.engine.Serve(to, q)
	m.outcomes[res.Outcome].Add(1)
	if to.refused && res.Outcome == engine.NotCached {
		m.engine.NotCachedHere(w, q)
		return false, nil
	}
	if res.Err == nil {
		return to.refused, nil
	}
	return to.refused, engine.Cause(res.Err)
}

// answer answers a request of a sibling.
func (m *Member) answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == peering.CoalescePath && m.coalescer != nil {
		m.coalescer.ServeHTTP(w, r)
		return
	}
	m.lookups.Add(1)
	u := m.served(r)
	if isValue(u) {
		w = terse{w}
	}
	res := m.engine.Serve(w, m.request(r, u, nil))
	if res.Outcome == engine.LocalHit {
		m.answered.Add(1)
	}
	if res.Broken || res.Outcome == engine.ClientGone {
		panic(http.ErrAbortHandler)
	}
}

// A terse answer is one to a sibling, without what says nothing of a value: a third of a short one.
type terse struct{ http.ResponseWriter }

func (w terse) WriteHeader(status int) {
	h := w.Header()
	h["Content-Type"], h["Date"] = nil, nil // which the server would add
	delete(h, "Via")
	w.ResponseWriter.WriteHeader(status)
}

// if that fails, the data is sent later
func (w terse) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// A refusable answer is none if the cache would refuse the request.
type refusable struct {
	http.ResponseWriter
	refused bool
}

func (w *refusable) Refused()                    { w.refused = true }
func (w *refusable) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// if that fails, the data is sent later
func (w *refusable) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// A statusWriter notes the status of an answer that passes by the cache.
type statusWriter struct {
	http.ResponseWriter
	m  *Member
	st rfc9111.Status
}

func (w *statusWriter) begin(status int) {
	if w.st.FwdStatus == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.st.FwdStatus = status
		w.m.engine.AddStatus(w.Header(), w.st)
	}
}

func (w *statusWriter) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *statusWriter) Flush() {
	w.begin(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush() // if that fails, the data is sent later
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// handled is a handler as the source of its answers.
type handled func(http.ResponseWriter, *http.Request) error

// A handlerError is the error that a handler returned.
type handlerError struct{ error }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body = http.NoBody // as a server's request has one
	w := &engine.Piped{Sniff: true}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		w.Interim = trace.Got1xxResponse
	}
	return w.Receive(r, func() error {
		if err := h(w, r); err != nil {
			return &handlerError{err}
		}
		return nil
	})
}

// Transport returns the cache as an [http.RoundTripper] in front of the origin's; nil = a
// client of this module, which speaks HTTP/1.1 and HTTP/2 and knows no proxies. Errors are those of origin. The last
// member of Cache-Status in each response is the cache's. All requests but GET and HEAD go to origin as they are, and
// remove what they change.
func (m *Member) Transport(origin http.RoundTripper) http.RoundTripper {
	if origin == nil {
		origin = http1.ToOrigins()
	}
	return &transport{m.made(), origin}
}

type transport struct {
	m      *Member
	origin http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	m, u := t.m, r.URL
	if m.url != nil {
		u = m.url(r)
	}
	if reason := m.bypass(r, u); reason != "" && !(sibling.IsLookup(r) && reason == "bypass") {
		resp, err := t.origin.RoundTrip(r)
		if err == nil {
			m.engine.Written(r, u, resp.StatusCode, resp.Header)
			m.engine.AddStatus(resp.Header, rfc9111.Status{Fwd: reason, FwdStatus: resp.StatusCode})
		}
		return resp, err
	}
	if r.Body != nil {
		r.Body.Close()
	}
	resp, err := m.receive(m.request(r, u, &source{RoundTripper: t.origin, of: r}))
	if err == nil {
		resp.Request = r
	}
	return resp, err
}

// receive returns the answer to q as it arrives.
func (m *Member) receive(q *http.Request) (*http.Response, error) {
	to := new(engine.Piped)
	resp, err := to.Receive(q, func() error {
		_, err := m.serve(to, q)
		return err
	})
	if err != nil {
		engine.Repanic(err)
		return nil, err
	}
	return resp, nil
}
