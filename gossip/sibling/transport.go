package sibling

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Transport is an [http.RoundTripper] that sends a GET to siblings whose digests advertise its
// object, and otherwise to the origin. A cache on top of it gets the answer of a sibling like
// an answer of the origin, Age included; the last member of Cache-Status is the sibling's. It is
// safe for concurrent use, but its fields must not change then.
//
// Requests that a shared cache may not answer, or not in full, go to the origin only: methods
// other than GET, and requests with credentials (Authorization), a body, a range, "no-cache",
// "no-store" or "max-age=0". Siblings do not get the client's cookies. An answer that is
// private or stale, or varies by a field that siblings do not get, counts as a false hit.
//
// A request that is only-if-cached gets 504, and no sibling is asked: it comes from a sibling,
// and the cache above does not have the object. So requests cannot go in circles, whatever
// that cache does.
type Transport struct {
	Siblings *Client
	Origin   http.RoundTripper // nil = a client of this module, which speaks HTTP/1.1 and HTTP/2 and knows no proxies
	// Identity returns the identity under which siblings advertise the object of a request;
	// nil is the function Identity.
	Identity func(*http.Request) string
	// Cluster invalidates the objects that a request makes out of date, for up to a second before
	// its response is returned. It also knows which invalidations a sibling must have applied
	// to be believed. [gossip.Node.OnInvalidation] reports to the cache above what to remove.
	// That cache must not store an object that was being fetched then. nil = writes remove
	// nothing.
	Cluster Cluster
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close()
	}
}

// Identity returns "GET" and the canonical URL of a request, the identity of a response that does
// not vary.
func Identity(r *http.Request) string { return rfc9111.PlainIdentity(r.URL) }

// PeerOf returns the peer that a request is for or that answered it; "" = the request is not for
// a peer, or the origin answered.
func PeerOf(ctx context.Context) string { return peering.PeerOf(ctx) }

// RoundTrip implements [http.RoundTripper]. An error is the origin's, or that of the request's
// context. [PeerOf] of the context of the response's request is the sibling that answered.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Siblings == nil || t.Siblings.cfg.Locator == nil {
		closeBody(r)
		return nil, errZero
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
		if err == nil {
			removeChanged(t.Cluster, r, resp.StatusCode, resp.Header, identity(r))
		}
		return resp, err
	}
	q := LookupRequest{
		URL: r.URL, Host: r.Host, Identities: []string{identity(r)}, Context: r.Context(),
		Header: peering.LookupHeader(r, &cc, t.Siblings.cfg.Name, "If-None-Match", "If-Modified-Since"),
		Origin: func(ctx context.Context, _ http.Header) (*http.Response, error) {
			return t.origin().RoundTrip(r.WithContext(ctx))
		},
	}
	q.Accept = func(a *Answer) bool { return usable(a.Response, r.Header, q.Header, a.Arrived) }
	if !peering.NameInvalidations(q.Header, t.Cluster, q.Identities[0]) {
		q.Identities = nil
	}
	a, err := t.Siblings.Lookup(q).Next(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	a.Response.Request = r
	if a.Peer != "" {
		a.Response.Request = r.WithContext(peering.WithPeer(r.Context(), a.Peer))
	}
	return a.Response, nil
}

func (t *Transport) origin() http.RoundTripper {
	return cmp.Or[http.RoundTripper](t.Origin, t.Siblings.toOrigins)
}

// CloseIdleConnections closes the connections to siblings and to the origin that are not in use.
func (t *Transport) CloseIdleConnections() {
	t.Siblings.CloseIdleConnections()
	(&http.Client{Transport: t.origin()}).CloseIdleConnections()
}

// mayAsk reports whether siblings may answer a request.
func mayAsk(r *http.Request, cc *rfc9111.Directives) bool {
	if r.Method != http.MethodGet && r.Method != "" || peering.HasBody(r) {
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

// usable reports whether a sibling's answer can replace the origin's: it may be shared, is fresh
// by our clock, and is the variant for the fields that the client wants and the sibling got.
func usable(resp *http.Response, wanted, asked http.Header, now time.Time) bool {
	r := rfc9111.NewResponse(resp.StatusCode, resp.Header, 0, now)
	return !r.Control.Private && !r.Control.NoStore && !r.Control.NoCache && !isStale(r) &&
		rfc9111.SameVariant(rfc9111.VaryFields(resp.Header), asked, wanted)
}

// isStale reports whether a response that just arrived is older than the lifetime that it states.
// If it states none, the cache that sent it has decided that it is fresh.
func isStale(r *rfc9111.Response) bool { return r.Explicit && r.InitialAge >= r.Lifetime }

// notHere returns the answer to a lookup request for an object that this cache does not have.
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
