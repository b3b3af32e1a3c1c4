package sibling

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A CachingTransport is an [http.RoundTripper] with a shared cache by the rules of
// package rfc9111: it stores what may be stored, under all that it varies by, serves it
// while it is fresh, in parts and on conditions too, validates it after that, serves it
// stale if the origin fails and that is allowed, and drops it after an unsafe request.
// Over a [Transport] it gets from siblings what they have, and under a [Handler] it
// answers them. Which requirements it meets is in ../rfc9111/CONFORMANCE.md. It is safe
// for concurrent use; its fields must not change meanwhile.
//
// Bodies must fit into memory; a longer one is passed on and not stored. Siblings are
// asked for what does not vary.
type CachingTransport struct {
	Name     string            // in Cache-Status: see CheckName
	Store    *Memory           // for this transport alone, which puts in responses only
	Next     http.RoundTripper // a Transport or the origin's; nil = http.DefaultTransport
	MaxBytes int64             // longest body that is stored; 0 = 64 MiB

	invalidations atomic.Uint64
}

// ErrNoStore is the error of a CachingTransport without a Store that NewMemory made.
var ErrNoStore = errors.New("sibling: a CachingTransport needs a Store: see NewMemory")

// A cachedRequest is a GET or HEAD on its way through the cache.
type cachedRequest struct {
	*http.Request
	url    string // canonical
	cc     rfc9111.Directives
	began  uint64 // invalidations by then
	reason string // why it goes forward
}

// RoundTrip implements [http.RoundTripper]. An error is that of Next. The response
// ends Cache-Status with this cache's member.
func (t *CachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case t.Store == nil || t.Store.Variants == nil:
		closeBody(r)
		return nil, ErrNoStore
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != "":
		return t.pass(r, "method")
	case r.Body != nil && r.Body != http.NoBody, r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil, r.Header["Upgrade"] != nil:
		return t.pass(r, "bypass")
	}
	q := &cachedRequest{Request: r, url: rfc9111.CanonicalURL(r.URL), cc: rfc9111.RequestDirectives(r.Header), began: t.invalidations.Load()}
	o := t.lookup(q)
	if o != nil {
		use, reason := o.response.Reuse(&q.cc, o.age())
		if use == rfc9111.ServeFresh || use == rfc9111.ServeStale {
			return t.answer(q, o, rfc9111.Status{Hit: true}), nil
		}
		q.reason = reason
		if use == rfc9111.StaleWhileRevalidate { // which only permits it
			q.reason = "stale"
		}
	}
	switch {
	case q.cc.OnlyIfCached:
		return notHere(r, t.Name), nil
	case r.Method == http.MethodHead:
		return t.head(q, o)
	case r.Header["Range"] != nil:
		return t.pass(r, "partial")
	}
	return t.fetch(q, o)
}

// lookup returns the stored response that q selects, if there is one: of several the
// one generated last (RFC 9111 section 4).
func (t *CachingTransport) lookup(q *cachedRequest) (best *Object) {
	rules := t.Store.Variants.Rules(q.url)
	q.reason = "uri-miss"
	if len(rules) > 0 {
		q.reason = "vary-miss"
	}
	best, _ = t.Store.Get(rfc9111.Identity(q.url, nil, nil))
	for _, fields := range rules {
		o, ok := t.Store.Get(rfc9111.Identity(q.url, fields, q.Header))
		if ok && (best == nil || best.response.Date.Before(o.response.Date)) {
			best = o
		}
	}
	return best
}

// fetch validates o or, if it is nil, gets a whole response. It calls itself once at
// most: without o.
func (t *CachingTransport) fetch(q *cachedRequest, o *Object) (*http.Response, error) {
	out := q.Request
	if o != nil || q.Header["If-None-Match"] != nil || q.Header["If-Modified-Since"] != nil || q.Header["If-Range"] != nil {
		out = q.Clone(q.Context())
		for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Range"} {
			delete(out.Header, name)
		}
		if o != nil {
			maps.Copy(out.Header, o.response.Conditions())
		}
	}
	asked := time.Now()
	resp, err := t.next().RoundTrip(out)
	now := time.Now()
	failed := 0
	if err == nil {
		failed = resp.StatusCode
		rfc9111.RemoveHopByHop(resp.Header)
		if _, ok := rfc9111.ParseDate(resp.Header.Get("Date")); !ok { // RFC 9110 section 6.6.1
			resp.Header["Date"] = []string{now.UTC().Format(http.TimeFormat)}
		}
	}
	status := rfc9111.Status{Fwd: q.reason, FwdStatus: failed}
	switch {
	case o != nil && o.response.StaleOnError(&q.cc, failed, o.age()):
		if err == nil {
			resp.Body.Close()
		}
		return t.answer(q, o, rfc9111.Status{Hit: true, Detail: "stale-if-error"}), nil
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotModified && o != nil:
		resp.Body.Close()
		if !o.response.ConfirmedBy(resp.Header) {
			return t.fetch(q, nil)
		}
		o = o.freshened(resp.Header, now.Sub(asked), now)
		status.Stored = t.store(q, o)
		return t.answer(q, o, status), nil
	}
	o2 := &Object{response: rfc9111.NewResponse(resp.StatusCode, resp.Header, now.Sub(asked), now), arrived: now}
	o2.vary, o2.Copied = rfc9111.VaryFields(resp.Header), resp.Request != nil && PeerOf(resp.Request.Context()) != ""
	status.Stored = t.mayStore(q, o2) && o2.response.Useful() && resp.ContentLength <= t.maxBytes()
	if o != nil && !status.Stored && resp.StatusCode < 500 && !q.cc.NoStore {
		t.Store.Drop(o.identity(q)) // the origin has replaced it
	}
	return t.forward(q, o2, resp, status)
}

// forward hands an answer on and, if it is to be stored, stores it once it was read.
func (t *CachingTransport) forward(q *cachedRequest, o *Object, resp *http.Response, status rfc9111.Status) (*http.Response, error) {
	size := resp.ContentLength
	if status.Stored {
		k := &keeping{ReadCloser: resp.Body, room: t.maxBytes(), whole: func(body []byte) {
			o.Body = body
			t.store(q, o)
		}}
		resp.Body = k
		k.kept.Grow(int(max(0, size)))
		if size == 0 || resp.StatusCode == http.StatusNoContent {
			k.end()
		}
	}
	part := o.response.PartFor(q.Request, size)
	if part.Status == http.StatusNotModified {
		io.Copy(io.Discard, resp.Body) // whole, for the store
		resp.Body.Close()
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	h := make(http.Header, len(resp.Header)+3)
	o.response.Fill(h, part, o.age(), true)
	status.Cache = t.Name
	status.Add(h)
	resp.Header, resp.StatusCode, resp.Status, resp.Request = h, part.Status, http.StatusText(part.Status), q.Request
	return resp, nil
}

// answer makes the response to q of what is stored, or was.
func (t *CachingTransport) answer(q *cachedRequest, o *Object, status rfc9111.Status) *http.Response {
	part := o.response.PartFor(q.Request, int64(len(o.Body)))
	status.Cache = t.Name
	if status.Hit {
		status.HasTTL, status.TTL = true, o.response.Lifetime-o.age()
	}
	h := make(http.Header, len(o.response.Header)+3)
	o.response.Fill(h, part, o.age(), !status.Hit)
	status.Add(h)
	resp := &http.Response{StatusCode: part.Status, Status: http.StatusText(part.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: http.NoBody, ContentLength: part.Length, Request: q.Request}
	if q.Method != http.MethodHead && part.Length > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(o.Body[part.Offset : part.Offset+part.Length]))
	}
	return resp
}

// pass sends a request on whose answer is not stored, and drops what an unsafe one
// invalidates.
func (t *CachingTransport) pass(r *http.Request, reason string) (*http.Response, error) {
	if cc := rfc9111.RequestDirectives(r.Header); cc.OnlyIfCached && rfc9111.IsSafe(r.Method) {
		return notHere(r, t.Name), nil
	}
	resp, err := t.next().RoundTrip(r)
	if err != nil {
		return nil, err
	}
	for _, url := range rfc9111.Invalidated(r.Method, r.URL, resp.StatusCode, resp.Header) {
		t.invalidations.Add(1)
		t.Store.Drop(rfc9111.Identity(url, nil, nil))
		for _, id := range t.Store.Variants.Identities(url) {
			t.Store.Drop(id)
		}
	}
	status := rfc9111.Status{Cache: t.Name, Fwd: reason, FwdStatus: resp.StatusCode}
	status.Add(resp.Header)
	return resp, nil
}

// head passes a HEAD on. What it brings may speak for the response stored for GET (RFC
// 9111 section 4.3.5).
func (t *CachingTransport) head(q *cachedRequest, o *Object) (*http.Response, error) {
	asked := time.Now()
	resp, err := t.pass(q.Request, q.reason)
	switch now := time.Now(); {
	case err != nil || o == nil || resp.StatusCode != http.StatusOK || q.cc.NoStore:
	case o.response.MatchesHead(resp.Header, int64(len(o.Body))):
		h := resp.Header.Clone()
		rfc9111.RemoveHopByHop(h)
		delete(h, "Cache-Status") // which has our member now
		t.store(q, o.freshened(h, now.Sub(asked), now))
	default:
		t.Store.Drop(o.identity(q))
	}
	return resp, err
}

// store puts o into the store, or removes what is there if that may not be kept any
// more. What was under way while anything was invalidated is not stored: it may be
// older.
func (t *CachingTransport) store(q *cachedRequest, o *Object) bool {
	id := o.identity(q)
	switch {
	case t.mayStore(q, o) && t.invalidations.Load() == q.began:
		o.Header, o.Made = o.response.Header, o.arrived.Add(-o.response.InitialAge)
		t.Store.Put(id, o)
		return true
	case !o.response.Storable(nil, false):
		t.Store.Drop(id)
	}
	return false
}

func (t *CachingTransport) mayStore(q *cachedRequest, o *Object) bool {
	return o.response.Storable(&q.cc, q.Header["Authorization"] != nil)
}

func (t *CachingTransport) next() http.RoundTripper {
	if t.Next == nil {
		return http.DefaultTransport
	}
	return t.Next
}

func (t *CachingTransport) maxBytes() int64 {
	if t.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return t.MaxBytes
}

func (o *Object) age() time.Duration { return o.response.Age(time.Since(o.arrived)) }

func (o *Object) freshened(h http.Header, delay time.Duration, now time.Time) *Object {
	return &Object{Body: o.Body, response: o.response.Freshened(h, delay, now), arrived: now, vary: o.vary}
}

// identity is that of the response o to q.
func (o *Object) identity(q *cachedRequest) string {
	return rfc9111.Identity(q.url, o.vary, q.Header)
}

// keeping is a body that is kept while it is read.
type keeping struct {
	io.ReadCloser
	room  int64
	kept  bytes.Buffer
	whole func([]byte) // nil = it was told, or the body is too long
}

func (k *keeping) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	if k.whole != nil {
		k.kept.Write(p[:n])
		if int64(k.kept.Len()) > k.room {
			k.whole, k.kept = nil, bytes.Buffer{}
		}
	}
	if err == io.EOF {
		k.end()
	}
	return n, err
}

func (k *keeping) end() {
	if k.whole != nil {
		k.whole(k.kept.Bytes())
		k.whole = nil
	}
}
