package sibling

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Transport returns c as an [http.RoundTripper] before that of the origin; nil =
// http.DefaultTransport. Beside what handlers get, it validates what is stored and stale,
// and serves it stale if the origin fails and that is allowed. Its errors are those of
// origin, but [ErrNoCache]. Each response ends Cache-Status with c's member.
//
// A body is handed on as it comes, and stored when it was read. One that is longer than
// MaxBytes is not stored.
func (c *Cache) Transport(origin http.RoundTripper) http.RoundTripper {
	if origin == nil {
		origin = http.DefaultTransport
	}
	return &cachingTransport{c, origin}
}

type cachingTransport struct {
	*Cache
	origin http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *cachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Store == nil {
		closeBody(r)
		return nil, ErrNoCache
	}
	q := t.request(r, r.URL)
	if q.reason != "" {
		return t.pass(q)
	}
	t.count(&t.stats.n.Gets)
	o, ok := t.lookup(q)
	switch {
	case ok:
		t.count(&t.stats.n.Hits)
		return t.response(q, o, rfc9111.Status{Hit: true}, nil), nil
	case q.cc.OnlyIfCached:
		return notHere(r, t.name()), nil
	case r.Method == http.MethodHead:
		return t.head(q, o)
	case r.Header["Range"] != nil:
		q.reason = "partial"
		return t.pass(q)
	}
	return t.fetch(q, o)
}

// fetch validates o or, if it is nil, gets a whole response. It calls itself once at
// most: without o.
func (t *cachingTransport) fetch(q *request, o *Object) (*http.Response, error) {
	a, err := &Answer{Requested: time.Now()}, error(nil)
	forward := func(r *http.Request) (*http.Response, error) {
		t.count(&t.stats.n.Loads)
		return t.origin.RoundTrip(conditional(r, o))
	}
	if t.Siblings != nil && mayAsk(q.Request, &q.cc) {
		var found *Object
		var via []string
		if found, via, a, err = t.fromSiblings(q, forward); found != nil {
			return t.response(q, found, rfc9111.Status{Fwd: q.reason, Stored: true, Detail: "sibling"}, via), nil
		}
	} else {
		a.Response, err = forward(q.Request)
		a.Arrived = time.Now()
	}
	status := rfc9111.Status{Fwd: q.reason}
	if err == nil {
		status.FwdStatus = a.StatusCode
		rfc9111.RemoveHopByHop(a.Header)
		if _, ok := rfc9111.ParseDate(a.Header.Get("Date")); !ok { // RFC 9110 section 6.6.1
			a.Header["Date"] = []string{a.Arrived.UTC().Format(http.TimeFormat)}
		}
	}
	switch {
	case o != nil && o.response.StaleOnError(&q.cc, status.FwdStatus, o.age()):
		if err == nil {
			a.Body.Close()
		}
		return t.response(q, o, rfc9111.Status{Hit: true, Detail: "stale-if-error"}, nil), nil
	case err != nil:
		t.count(&t.stats.n.Errors)
		return nil, err
	case a.StatusCode == http.StatusNotModified && o != nil:
		a.Body.Close()
		if !o.response.ConfirmedBy(a.Header) {
			return t.fetch(q, nil)
		}
		o = o.freshened(a.Header, a.Arrived.Sub(a.Requested), a.Arrived)
		status.Stored = t.store(q, o)
		return t.response(q, o, status, nil), nil
	}
	made := q.object(a.StatusCode, a.Header, a.Arrived.Sub(a.Requested), a.Arrived)
	status.Stored = t.mayStore(q, made) && made.response.Useful() && a.ContentLength <= t.maxBytes()
	if o != nil && !status.Stored && a.StatusCode < 500 && !q.cc.NoStore {
		t.Store.Drop(o.id) // the origin has replaced it
	}
	return t.forward(q, made, a.Response, status)
}

// conditional is r as it is sent to the origin: for the whole response, or to validate o.
func conditional(r *http.Request, o *Object) *http.Request {
	if o == nil && r.Header["If-None-Match"] == nil && r.Header["If-Modified-Since"] == nil && r.Header["If-Range"] == nil {
		return r
	}
	out := r.Clone(r.Context())
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Range"} {
		delete(out.Header, name)
	}
	if o != nil {
		maps.Copy(out.Header, o.response.Conditions())
	}
	return out
}

// forward hands an answer on and, if it is to be stored, stores it once it was read.
func (t *cachingTransport) forward(q *request, o *Object, resp *http.Response, status rfc9111.Status) (*http.Response, error) {
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
	h := make(http.Header, len(resp.Header)+3)
	part := t.fill(h, q, o, size, status, nil)
	if part.Status == http.StatusNotModified {
		io.Copy(io.Discard, resp.Body) // whole, for the store
		resp.Body.Close()
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	resp.Header, resp.StatusCode, resp.Status, resp.Request = h, part.Status, http.StatusText(part.Status), q.Request
	return resp, nil
}

// response answers q by what is stored, or was.
func (t *cachingTransport) response(q *request, o *Object, status rfc9111.Status, via []string) *http.Response {
	h := make(http.Header, len(o.Header)+3)
	part := t.fill(h, q, o, int64(len(o.Body)), status, via)
	resp := &http.Response{StatusCode: part.Status, Status: http.StatusText(part.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: http.NoBody, ContentLength: part.Length, Request: q.Request}
	if q.Method != http.MethodHead && part.Length > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(o.Body[part.Offset : part.Offset+part.Length]))
	}
	return resp
}

// pass sends a request on whose answer is not stored, and removes what an unsafe one makes
// out of date.
func (t *cachingTransport) pass(q *request) (*http.Response, error) {
	if q.cc.OnlyIfCached && rfc9111.IsSafe(q.Method) {
		return notHere(q.Request, t.name()), nil
	}
	resp, err := t.origin.RoundTrip(q.Request)
	if err != nil {
		return nil, err
	}
	removeChanged(q.Request, resp.StatusCode, resp.Header, q.identity, t.Invalidate)
	status := rfc9111.Status{Cache: t.name(), Fwd: q.reason, FwdStatus: resp.StatusCode}
	status.Add(resp.Header)
	return resp, nil
}

// head passes a HEAD on. What it brings may speak for the response stored for GET (RFC
// 9111 section 4.3.5).
func (t *cachingTransport) head(q *request, o *Object) (*http.Response, error) {
	asked := time.Now()
	resp, err := t.pass(q)
	switch now := time.Now(); {
	case err != nil || o == nil || resp.StatusCode != http.StatusOK || q.cc.NoStore:
	case o.response.MatchesHead(resp.Header, int64(len(o.Body))):
		h := resp.Header.Clone()
		rfc9111.RemoveHopByHop(h)
		delete(h, "Cache-Status") // which has our member now
		t.store(q, o.freshened(h, now.Sub(asked), now))
	default:
		t.Store.Drop(o.id)
	}
	return resp, err
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
