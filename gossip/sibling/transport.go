package sibling

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Transport is an [http.RoundTripper] that asks the siblings whose digests list
// the object of a GET, and otherwise the origin. It stands under a
// cache, which sees a sibling's answer as if it were the origin's, Age included, with the
// sibling as the last member of Cache-Status. It is safe for concurrent use; its
// fields must not change meanwhile.
//
// Requests that no shared cache may answer, or not in full, go to the origin alone:
// methods other than GET, requests with credentials (Authorization), a body, a range,
// "no-cache", "no-store" or "max-age=0". Siblings do not get the client's cookies. An
// answer that is private, is stale, or varies by a field that siblings do not get is a
// false hit.
//
// A request that is only-if-cached gets 504 and no sibling is asked, since it comes from
// a cache that did not find its object. So questions can't go in circles, whatever
// cache stands above.
type Transport struct {
	Siblings *Client
	Origin   http.RoundTripper // nil = http.DefaultTransport
	// Identity is the name under which siblings list the object of a request; nil
	// is the function Identity. It must be the name that goes into the filters.
	Identity func(*http.Request) string
	// Cluster invalidates what a request makes out of date, for up to a second before its
	// response is returned, and says what siblings must have removed to be believed. The
	// cache above learns what to remove from [gossip.Node.OnInvalidation], and must not
	// store what was being fetched meanwhile. nil = nothing is removed elsewhere.
	Cluster Cluster
}

// ErrNoSiblings is the error of a Transport without Siblings that New made.
var ErrNoSiblings = errors.New("sibling: a Transport needs Siblings: see New")

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// Identity is "GET" and the canonical URL of a request, as peers list what does not vary.
func Identity(r *http.Request) string { return rfc9111.PlainIdentity(r.URL) }

// RoundTrip implements [http.RoundTripper]. An error is the origin's, or that of
// the request's context. [PeerOf], given the context of a response's request, returns
// the sibling that gave it.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Siblings == nil || t.Siblings.cfg.Locator == nil {
		closeBody(r)
		return nil, ErrNoSiblings
	}
	if IsLookup(r) {
		closeBody(r)
		return notHere(r, t.Siblings.cfg.Name), nil
	}
	cc := rfc9111.RequestDirectives(r.Header)
	identity := Identity
	if t.Identity != nil {
		identity = t.Identity
	}
	if !mayAsk(r, &cc) {
		resp, err := t.origin().RoundTrip(r)
		if err == nil && t.Cluster != nil {
			removeChanged(r, resp.StatusCode, resp.Header, identity(r), t.Cluster.Invalidate)
		}
		return resp, err
	}
	q := LookupRequest{
		URL: r.URL, Host: r.Host, Identities: []string{identity(r)},
		Header: LookupHeader(r, &cc, t.Siblings.cfg.Name, "If-None-Match", "If-Modified-Since"),
		Origin: func(ctx context.Context, _ http.Header) (*http.Response, error) {
			return t.origin().RoundTrip(r.WithContext(ctx))
		},
	}
	q.Accept = func(a *Answer) bool { return usable(a.Response, r.Header, q.Header, a.Arrived) }
	if !NameInvalidations(q.Header, t.Cluster, q.Identities[0]) {
		q.Identities = nil
	}
	a, err := t.Siblings.Lookup(q).Next(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	a.Response.Request = r
	if a.Peer != "" {
		a.Response.Request = r.WithContext(WithPeer(r.Context(), a.Peer))
	}
	return a.Response, nil
}

func (t *Transport) origin() http.RoundTripper {
	if t.Origin == nil {
		return http.DefaultTransport
	}
	return t.Origin
}

// CloseIdleConnections closes those to siblings and to the origin that no request
// uses.
func (t *Transport) CloseIdleConnections() {
	t.Siblings.CloseIdleConnections()
	closeIdle(t.origin())
}

// hasBody reports whether a request has one, or may. A server's has a Body in any case,
// which handlers before this one may have wrapped.
func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 || r.RequestURI == "" && r.Body != nil && r.Body != http.NoBody
}

// mayAsk reports whether siblings may answer a request.
func mayAsk(r *http.Request, cc *rfc9111.Directives) bool {
	if r.Method != http.MethodGet && r.Method != "" || hasBody(r) {
		return false
	}
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return false
	}
	for _, name := range []string{"Authorization", "Range", "If-Match", "If-Unmodified-Since", "Upgrade"} {
		if r.Header[name] != nil {
			return false
		}
	}
	return !cc.NoCache && !cc.NoStore && cc.MaxAge != 0
}

// selecting are the fields of a request that siblings are told whether or not a
// response is known to vary by them.
var selecting = []string{"Accept", "Accept-Encoding", "Accept-Language", "Accept-Charset", "User-Agent", "Origin"}

// LookupHeader is the header of a question for what r asks for, from the cache of
// that name: what selects the variant, further fields given by their canonical names,
// and how fresh the answer must be by the directives of r. The rest of the request,
// its cookies above all, is not for siblings.
func LookupHeader(r *http.Request, cc *rfc9111.Directives, name string, fields ...string) http.Header {
	h := http.Header{}
	for _, names := range [...][]string{selecting, fields} {
		for _, field := range names {
			if lines := r.Header[field]; lines != nil {
				h[field] = lines
			}
		}
	}
	wants := "only-if-cached"
	if cc.MaxAge != rfc9111.Unset {
		wants += ", max-age=" + strconv.Itoa(int(cc.MaxAge.Seconds()))
	}
	if cc.MinFresh != rfc9111.Unset {
		wants += ", min-fresh=" + strconv.Itoa(int(cc.MinFresh.Seconds()))
	}
	h["Cache-Control"] = []string{wants}
	h["Via"] = r.Header["Via"]
	rfc9111.AddVia(h, r.ProtoMajor, r.ProtoMinor, name)
	return h
}

// usable reports whether a sibling's answer may stand for the origin's: shareable,
// fresh by our clock, and selected by what the sibling was told.
func usable(resp *http.Response, wanted, asked http.Header, now time.Time) bool {
	r := rfc9111.NewResponse(resp.StatusCode, resp.Header, 0, now)
	return !r.Control.Private && !r.Control.NoStore && !r.Control.NoCache && !isStale(r) &&
		rfc9111.SameVariant(rfc9111.VaryFields(resp.Header), asked, wanted)
}

// isStale reports whether a response that just arrived has outlived the lifetime that
// it states. One that states none is as fresh as its cache says.
func isStale(r *rfc9111.Response) bool { return r.Explicit && r.InitialAge >= r.Lifetime }

// notHere is the answer of a cache that may ask nobody.
func notHere(r *http.Request, name string) *http.Response {
	h := http.Header{}
	markMiss(h, name)
	return &http.Response{
		StatusCode: http.StatusGatewayTimeout, Status: "504 Gateway Timeout",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        h,
		Body:          io.NopCloser(strings.NewReader(missText)),
		ContentLength: int64(len(missText)),
		Request:       r,
	}
}
