package sibling

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Wrap is [Cache.Serve] as middleware around a handler, which must not be nil.
func (c *Cache) Wrap(next http.Handler) http.Handler {
	if next == nil {
		panic("sibling: Wrap needs the handler that answers what is not cached")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = c.Serve(w, r, func(w http.ResponseWriter, r *http.Request) error {
			next.ServeHTTP(w, r)
			return nil
		})
	})
}

// ServeHTTP answers the requests of siblings, and all others with 403.
func (c *Cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isFromSibling(r) { // so no request can remove anything here
		refuse(w)
		return
	}
	_ = c.Serve(w, r, nil)
}

func isFromSibling(r *http.Request) bool { return IsLookup(r) || r.URL.Path == CoalescePath }

// Serve answers a GET or HEAD from the Store, from a sibling, or by next. The answer of next is
// passed on as it is written, and stored if that is allowed. All other requests go to next. If a
// request that may change the object, such as a POST, succeeds, the object is removed here and at
// the siblings ([Cache.Remove]) before Serve returns, or up to a second later. An error is next's;
// its answer is not stored then. The last member of Cache-Status in each answer is the cache's.
//
// The URL of the object has the host that the request names. Its scheme is https if the request
// came by TLS. A request of a sibling is answered from the Store or with 504.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request) error) error {
	if c.Store == nil {
		http.Error(w, errZero.Error(), http.StatusInternalServerError)
		return errZero
	}
	u := &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	if r.TLS != nil || r.URL.Scheme == "https" && IsLookup(r) {
		u.Scheme = "https"
	}
	if isFromSibling(r) {
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
			f = nil // no object, or not one for this request, which must get its own
		}
	}
	return c.handle(w, r, q, f, next)
}

// handle answers a request by a sibling, if f is not nil, or by next. It ends f with the object, or
// without one as soon as it is known that there is none to share.
func (c *Cache) handle(w http.ResponseWriter, r *http.Request, q *request, f *flight, next func(http.ResponseWriter, *http.Request) error) error {
	if q.Method != http.MethodGet && rfc9111.IsSafe(q.Method) || q.reason == "bypass" && q.Method == http.MethodGet {
		status := rfc9111.Status{Cache: c.name, Fwd: q.reason}
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
	if f != nil {
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
	removeChanged(c.cluster, q.Request, max(rec.status, http.StatusOK), rec.Header(), q.identity)
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

// answer answers a request of a sibling. If the sibling can wait, it gets an object in flight.
func (c *Cache) answer(w http.ResponseWriter, r *http.Request, u *url.URL) {
	if r.URL.Path == CoalescePath {
		c.coalescer.ServeHTTP(w, r)
		return
	}
	c.count(&c.stats.n.Lookups)
	if !UpToDate(r.Header, c.cluster) {
		answerMiss(w, c.name)
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
		answerMiss(w, c.name)
		return
	}
	c.count(&c.stats.n.Answered)
	c.coalescer.Served(q.identity, r.Header)
	c.write(w, q, o.asResponse(), rfc9111.Status{Hit: true}, nil)
}

// dropExpired drops an expired object, which no sibling would get.
func (c *Cache) dropExpired(o *Object) {
	if o != nil && !time.Now().Before(o.Expires) {
		c.Store.Drop(o.id)
	}
}

// asResponse returns o, or the response in which siblings send a value.
func (o *Object) asResponse() *Object {
	if o.response != nil {
		return o
	}
	h, now := http.Header{"Content-Type": {"application/octet-stream"}}, time.Now()
	if !o.Expires.IsZero() {
		h["Cache-Control"] = []string{"max-age=" + strconv.Itoa(int(o.Expires.Sub(now).Seconds()))}
	}
	v := newObject(rfc9111.NewResponse(http.StatusOK, h, 0, now), now)
	v.Body = o.Body
	return v
}

// write answers q with o.
func (c *Cache) write(w http.ResponseWriter, q *request, o *Object, status rfc9111.Status, via []string) {
	part := c.fill(w.Header(), q, o, int64(len(o.Body)), status, via)
	w.WriteHeader(part.Status)
	if q.Method != http.MethodHead && part.Length > 0 {
		w.Write(o.Body[part.Offset : part.Offset+part.Length])
	}
}
