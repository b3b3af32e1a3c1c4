package sibling

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A request is a request to the cache.
type request struct {
	*http.Request // its URL is absolute
	identity      string
	cc            rfc9111.Directives
	began         pass
	reason        string // why it is forwarded
}

// request returns r as a request with an absolute URL u.
func (c *Cache) request(r *http.Request, u *url.URL) *request {
	q := &request{Request: r, cc: rfc9111.RequestDirectives(r.Header)}
	if c.Identity != nil {
		q.identity = c.Identity(r)
	} else {
		q.identity = rfc9111.PlainIdentity(u)
	}
	if r.URL != u {
		clone := *r
		clone.URL = u
		q.Request = &clone
	}
	q.began = c.gate.enter(q.identity)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != "":
		q.reason = "method"
	case hasBody(r), r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil, r.Header["Upgrade"] != nil:
		q.reason = "bypass"
	}
	return q
}

// variant returns the identity of a response to q that varies by these fields.
func (q *request) variant(fields []string) string {
	if len(fields) == 0 {
		return q.identity
	}
	return q.identity + strings.TrimPrefix(rfc9111.Identity("", fields, q.Header), rfc9111.Identity("", nil, nil))
}

// rules returns the sets of fields by which the stored responses vary that q may select.
func (c *Cache) rules(q *request) [][]string {
	url, _ := rfc9111.SplitIdentity(q.identity)
	return c.variants.Rules(url)
}

// lookup returns the stored response that q selects, and whether it may answer q without
// validation. If q selects several, it is the one with the latest Date (RFC 9111 section 4).
func (c *Cache) lookup(q *request) (best *Object, ok bool) {
	rules := c.rules(q)
	q.reason = "uri-miss"
	if len(rules) > 0 {
		q.reason = "vary-miss"
	}
	best = c.stored(q.identity)
	for _, fields := range rules {
		if o := c.stored(q.variant(fields)); o != nil && (best == nil || best.response.Date.Before(o.response.Date)) {
			best = o
		}
	}
	if best == nil {
		return nil, false
	}
	use, reason := best.response.Reuse(&q.cc, best.age())
	if q.reason = reason; use == rfc9111.StaleWhileRevalidate { // optional, and not done here
		q.reason = "stale"
	}
	return best, use == rfc9111.ServeFresh || use == rfc9111.ServeStale
}

// stored returns the stored response of an identity, fresh or not; nil if there is none. It drops a
// sibling's copy that is no longer believed: a 304 would not confirm the body.
func (c *Cache) stored(identity string) *Object {
	o, _ := c.Store.Get(identity)
	switch {
	case o == nil || o.response == nil:
		return nil
	case !o.believed.IsZero() && !time.Now().Before(o.believed):
		c.Store.Drop(identity)
		return nil
	}
	return o
}

// selects reports whether q may be answered by the response to another request for its URL.
func (q *request) selects(o *Object) bool {
	if o == nil || o.response == nil {
		return false
	}
	_, fields := rfc9111.SplitIdentity(o.id)
	use, _ := o.response.Reuse(&q.cc, o.age())
	return use == rfc9111.ServeFresh && (planted.Fault == "any-variant" || q.variant(fields) == o.id)
}

// object returns the response to q as an object without its body. The arguments are those of
// [rfc9111.NewResponse].
func (q *request) object(status int, h http.Header, delay time.Duration, arrived time.Time) *Object {
	o := newObject(rfc9111.NewResponse(status, h, delay, arrived), arrived)
	o.id = q.variant(rfc9111.VaryFields(h))
	return o
}

func newObject(r *rfc9111.Response, arrived time.Time) *Object {
	return &Object{Header: r.Header, Expires: arrived.Add(r.Lifetime - r.InitialAge), response: r, arrived: arrived}
}

func (o *Object) age() time.Duration { return o.response.Age(time.Since(o.arrived)) }

func (o *Object) freshened(h http.Header, delay time.Duration, now time.Time) *Object {
	f := newObject(o.response.Freshened(h, delay, now), now)
	f.Body, f.id = o.Body, o.id
	if o.Copied {
		f.believe(o.believed)
	}
	return f
}

// believe marks o as a sibling's copy, which is used until then at most.
func (o *Object) believe(until time.Time) {
	o.Copied, o.believed = true, until
	if o.Expires.IsZero() || until.Before(o.Expires) {
		o.Expires = until
	}
}

// mayStore reports whether the response to q may be stored. A response with a cookie is for one
// client, whatever its origin says.
func (c *Cache) mayStore(q *request, o *Object) bool {
	return o.response.Storable(&q.cc, q.Header["Authorization"] != nil) && o.Header["Set-Cookie"] == nil && (o.id == q.identity || c.varies)
}

// store puts the response to q into the Store. If it may not be stored by any request, store drops
// the one that is there. A response that was invalidated while it was fetched is not stored:
// it may be the old one.
func (c *Cache) store(q *request, o *Object) bool {
	if c.mayStore(q, o) {
		return c.put(q.began, q.identity, o.id, o)
	}
	if !o.response.Storable(nil, false) {
		c.Store.Drop(o.id)
	}
	return false
}

// fromSiblings asks siblings, and then origin unless it is nil, for a response to q. It returns
// either a sibling's response, which it has stored, and its Cache-Status, or the origin's answer.
func (c *Cache) fromSiblings(q *request, origin func(*http.Request) (*http.Response, error)) (o *Object, via []string, a *Answer, err error) {
	fields, ids := []string(nil), []string(nil)
	for _, rule := range c.rules(q) {
		fields, ids = append(fields, rule...), append(ids, q.variant(rule))
	}
	ids = append(ids, q.identity)
	r := LookupRequest{URL: q.URL, Host: q.Host, Identities: ids, Header: LookupHeader(q.Request, &q.cc, c.name, fields...)}
	delete(r.Header, "Cookie") // it is for the origin only
	sent := r.Header
	var got *Object
	r.Accept = func(a *Answer) bool {
		rfc9111.RemoveHopByHop(a.Header)
		got = q.object(a.StatusCode, a.Header, a.Arrived.Sub(a.Requested), a.Arrived)
		got.believe(a.Arrived.Add(maxCopied - got.response.InitialAge))
		use, _ := got.response.Reuse(&q.cc, got.response.InitialAge)
		return use == rfc9111.ServeFresh && got.believed.After(a.Arrived) && c.mayStore(q, got) && rfc9111.SameVariant(rfc9111.VaryFields(a.Header), sent, q.Header)
	}
	if origin != nil {
		r.Origin = func(ctx context.Context, _ http.Header) (*http.Response, error) { return origin(q.WithContext(ctx)) }
	}
	a, body, err := c.find(q.Context(), r)
	if a == nil || err != nil || a.Peer == "" {
		return nil, nil, a, err
	}
	via = a.Header["Cache-Status"]
	delete(a.Header, "Cache-Status")
	got.Body = body
	c.store(q, got)
	return got, via, nil, nil
}

// fill writes the header of an answer to q with o, and returns the part of o that it describes. via
// is the Cache-Status of the siblings that sent o.
func (c *Cache) fill(h http.Header, q *request, o *Object, size int64, status rfc9111.Status, via []string) rfc9111.Part {
	part := o.response.PartFor(q.Request, size)
	if status.Hit && o.id != "" {
		status.HasTTL, status.TTL = true, o.response.Lifetime-o.age()
	}
	age := o.age()
	if o.Copied && IsLookup(q.Request) { // a 304 made the response younger, but not the copy
		age = max(age, maxCopied-time.Until(o.believed))
	}
	o.response.Fill(h, part, age, !status.Hit)
	if via != nil {
		h["Cache-Status"] = via
	}
	status.Cache = c.name
	status.Add(h)
	return part
}
