package sibling

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Wrap is [Cache.Serve] as middleware, for a handler that makes the answers.
func (c *Cache) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = c.Serve(w, r, func(w http.ResponseWriter, r *http.Request) error {
			next.ServeHTTP(w, r)
			return nil
		})
	})
}

// ServeHTTP answers siblings' questions, and refuses with 403 what is none.
func (c *Cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.Store != nil && !c.isQuestion(r) { // nor is anything removed by it
		refuse(w)
		return
	}
	_ = c.Serve(w, r, nil)
}

func (c *Cache) isQuestion(r *http.Request) bool {
	return IsLookup(r) || r.URL.Path == CoalescePath && c.Coalescer != nil
}

// Serve answers a GET or HEAD from the Store, from a sibling, or by next, whose answer is
// handed on as it is written, and kept if it may be. Whatever else there is goes to
// next; when a request that may change the object ("POST", say) has not failed, it is
// removed, here and at siblings ([Cache.Remove]), before Serve returns or a second later. An
// error is next's, and what that wrote is not kept. Every answer ends Cache-Status by a
// member that says what became of the request.
//
// The URL is of the scheme https if the request came by TLS, and of the host that it
// names. A sibling's question is answered from the Store or by 504.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request) error) error {
	if c.Store == nil {
		http.Error(w, ErrNoCache.Error(), http.StatusInternalServerError)
		return ErrNoCache
	}
	u := &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	if r.TLS != nil || r.URL.Scheme == "https" && IsLookup(r) {
		u.Scheme = "https"
	}
	if c.isQuestion(r) {
		c.answer(w, r, u)
		return nil
	}
	q := c.request(r, u)
	if q.reason != "" {
		return c.handle(w, r, q, nil, next)
	}
	c.count(&c.stats.n.Gets)
	o, ok := c.lookup(q)
	if ok {
		c.count(&c.stats.n.Hits)
		c.write(w, q, o, rfc9111.Status{Hit: true}, nil)
		return nil
	}
	c.dropExpired(o)
	var f *flight
	if mayAsk(q.Request, &q.cc) {
		var leader bool
		if f, leader = c.flights.begin(q.identity); !leader {
			c.joined()
			if o, _ := f.wait(r.Context()); q.selects(o) {
				c.write(w, q, o, rfc9111.Status{Fwd: q.reason, Collapsed: true}, nil)
				return nil
			}
			f = nil // what was made is not for all, or failed: this one asks for itself
		}
	}
	return c.handle(w, r, q, f, next)
}

// handle has a request answered by next, or by a sibling if f is not nil. Those that wait
// for f get the object, or hear as soon as it is known that there will be none for them.
func (c *Cache) handle(w http.ResponseWriter, r *http.Request, q *request, f *flight, next func(http.ResponseWriter, *http.Request) error) error {
	if q.Method != http.MethodGet && rfc9111.IsSafe(q.Method) || q.reason == "bypass" && q.Method == http.MethodGet {
		status := rfc9111.Status{Cache: c.name(), Fwd: q.reason}
		status.Add(w.Header())
		return next(w, r) // which may want to take over the connection
	}
	var o *Object
	end := func() {
		if f != nil {
			f.end(o, nil)
		}
	}
	defer end()
	if f != nil && c.Siblings != nil {
		found, via, _, err := c.fromSiblings(q, nil)
		if err != nil {
			return nil // the client has gone
		}
		if found != nil {
			o = found
			end()
			c.write(w, q, o, rfc9111.Status{Fwd: q.reason, Stored: true, Detail: "sibling"}, via)
			return nil
		}
	}
	rec := &recorder{ResponseWriter: w, c: c, q: q, unstorable: end}
	if q.Method == http.MethodGet {
		c.count(&c.stats.n.Loads)
	}
	err := next(rec, r)
	removeChanged(q.Request, max(rec.status, http.StatusOK), rec.Header(), q.identity, c.Invalidate)
	if err != nil {
		c.count(&c.stats.n.Errors)
		return err
	}
	if made := rec.whole(); made != nil {
		o = made
		c.store(q, o)
	}
	return nil
}

// answer answers a sibling's question. One that can wait gets what is being made.
func (c *Cache) answer(w http.ResponseWriter, r *http.Request, u *url.URL) {
	if r.URL.Path == CoalescePath && c.Coalescer != nil {
		c.Coalescer.ServeHTTP(w, r)
		return
	}
	c.count(&c.stats.n.Questions)
	if !UpToDate(r.Header, c.cluster()) {
		answerMiss(w, c.name())
		return
	}
	q, value := &request{Request: r}, u.Host == valueHost
	var o *Object
	if value {
		q.identity, _ = url.QueryUnescape(u.RawQuery)
		o = c.fresh(q.identity)
	} else {
		q = c.request(r, u)
		found, ok := c.lookup(q)
		if ok {
			o = found
		}
		c.dropExpired(found)
	}
	if wait := PreferredWait(r.Header); o == nil && wait > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		if o = c.flights.join(ctx, q.identity); !value && !q.selects(o) {
			o = nil
		}
		cancel()
	}
	if o == nil {
		answerMiss(w, c.name())
		return
	}
	c.count(&c.stats.n.Answered)
	if c.Coalescer != nil {
		c.Coalescer.Served(q.identity)
	}
	c.write(w, q, o.asResponse(), rfc9111.Status{Hit: true}, nil)
}

// dropExpired forgets what a sibling's question would not get.
func (c *Cache) dropExpired(o *Object) {
	if o != nil && !time.Now().Before(o.Expires) {
		c.Store.Drop(o.id)
	}
}

// asResponse is how a value travels between siblings.
func (o *Object) asResponse() *Object {
	if o.response != nil {
		return o
	}
	h, now := http.Header{"Content-Type": {"application/octet-stream"}}, time.Now()
	if !o.Expires.IsZero() {
		h["Cache-Control"] = []string{"max-age=" + strconv.Itoa(int(o.Expires.Sub(now).Seconds()))}
	}
	v := newObject(http.StatusOK, h, 0, now)
	v.Body = o.Body
	return v
}

// write answers q by o.
func (c *Cache) write(w http.ResponseWriter, q *request, o *Object, status rfc9111.Status, via []string) {
	part := c.fill(w.Header(), q, o, int64(len(o.Body)), status, via)
	w.WriteHeader(part.Status)
	if q.Method != http.MethodHead && part.Length > 0 {
		w.Write(o.Body[part.Offset : part.Offset+part.Length])
	}
}
