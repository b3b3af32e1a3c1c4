package sibling

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Transport returns the cache as an [http.RoundTripper] in front of the origin's; nil =
// http.DefaultTransport. Unlike [Cache.Serve], it validates stale responses, and serves them
// stale if the origin fails and that is allowed. Its errors are those of origin. The
// last member of Cache-Status in each response is the cache's.
//
// A body is passed on as it arrives, and stored once it has been read. A body longer than
// MaxBytes is not stored.
func (c *Cache) Transport(origin http.RoundTripper) http.RoundTripper {
	return &cachingTransport{c, cmp.Or(origin, http.DefaultTransport)}
}

type cachingTransport struct {
	*Cache
	origin http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *cachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Store == nil {
		closeBody(r)
		return nil, errZero
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
		return notHere(r, t.name), nil
	case r.Method == http.MethodHead:
		return t.head(q, o)
	case r.Header["Range"] != nil:
		q.reason = "partial"
		return t.pass(q)
	}
	return t.fetch(q, o)
}

// fetch validates o or, if that is nil, fetches a complete response. It calls itself at most
// once, without o.
func (t *cachingTransport) fetch(q *request, o *Object) (*http.Response, error) {
	a, err := &Answer{Requested: time.Now()}, error(nil)
	forward := func(r *http.Request) (*http.Response, error) {
		t.count(&t.stats.n.Loads)
		return t.origin.RoundTrip(conditional(r, o))
	}
	if mayAsk(q.Request, &q.cc) {
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

// conditional returns r as it is sent to the origin: without conditions or, to validate o, with
// those of o.
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

// forward passes an answer on. If it may be stored, it is stored once it has been read.
func (t *cachingTransport) forward(q *request, o *Object, resp *http.Response, status rfc9111.Status) (*http.Response, error) {
	size := resp.ContentLength
	if status.Stored {
		k := &keptBody{ReadCloser: resp.Body, room: t.maxBytes(), whole: func(body []byte) {
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
		io.Copy(io.Discard, resp.Body) // so that it is stored
		resp.Body.Close()
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	resp.Header, resp.StatusCode, resp.Status, resp.Request = h, part.Status, http.StatusText(part.Status), q.Request
	return resp, nil
}

// response answers q with an object.
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

// pass forwards a request whose answer is not stored, and removes the objects that an unsafe
// request changes.
func (t *cachingTransport) pass(q *request) (*http.Response, error) {
	if q.cc.OnlyIfCached && rfc9111.IsSafe(q.Method) {
		return notHere(q.Request, t.name), nil
	}
	resp, err := t.origin.RoundTrip(q.Request)
	if err != nil {
		return nil, err
	}
	removeChanged(t.cluster, q.Request, resp.StatusCode, resp.Header, q.identity)
	status := rfc9111.Status{Cache: t.name, Fwd: q.reason, FwdStatus: resp.StatusCode}
	status.Add(resp.Header)
	return resp, nil
}

// head forwards a HEAD. Its answer may update the stored response to GET, or invalidate it (RFC
// 9111 section 4.3.5).
func (t *cachingTransport) head(q *request, o *Object) (*http.Response, error) {
	asked := time.Now()
	resp, err := t.pass(q)
	switch now := time.Now(); {
	case err != nil || o == nil || resp.StatusCode != http.StatusOK || q.cc.NoStore:
	case o.response.MatchesHead(resp.Header, int64(len(o.Body))):
		h := resp.Header.Clone()
		rfc9111.RemoveHopByHop(h)
		delete(h, "Cache-Status") // pass added this cache's member
		t.store(q, o.freshened(h, now.Sub(asked), now))
	default:
		t.Store.Drop(o.id)
	}
	return resp, err
}

// A keptBody is kept while it is read.
type keptBody struct {
	io.ReadCloser
	room  int64
	kept  bytes.Buffer
	whole func([]byte) // called once, with the whole body; nil = called, or the body is too long
}

func (k *keptBody) Read(p []byte) (int, error) {
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

func (k *keptBody) end() {
	if k.whole != nil {
		k.whole(k.kept.Bytes())
		k.whole = nil
	}
}
