package cache

import (
	"context"
	"net/http"
)

// Serve answers r, whose URL is absolute and whose header has no connection
// fields. The response is written to w; a Result with Broken set asks the caller
// to close the client's connection, since the answer was cut short.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request) Result {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return c.forward(w, r, "method")
	case r.ContentLength != 0, r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil:
		return c.forward(w, r, "bypass")
	}
	return c.get(w, &request{Request: r, url: CanonicalURL(r.URL), cc: requestDirectives(r.Header), now: timeNow()})
}

// maxJoins bounds how often a request waits for the fetch of another one that
// turns out to be of no use to it.
const maxJoins = 3

// again says how a request goes on for which a flight brought nothing.
type again struct {
	fields []string // meet those who select the same variant by these, not by a guess
	alone  bool     // meet nobody
}

// get answers a GET or HEAD.
func (c *Cache) get(w http.ResponseWriter, r *request) Result {
	var next again
	waited, sure := false, false
	for joins := 0; ; {
		hit, varies := c.lookup(r)
		reason := "uri-miss"
		if varies {
			reason = "vary-miss"
		}
		if hit != nil {
			v, why := hit.entry.judge(&r.cc, r.now)
			if v == useFresh || v == useStale || v == useAndCheck && !r.cc.onlyIfCached {
				if res, ok := c.hit(w, r, hit, v); ok {
					return res
				}
				hit, why = nil, "miss" // it left the store between finding and opening
			}
			reason = why
		}
		switch {
		case r.cc.onlyIfCached:
			if res, ok := c.attach(w, r); ok {
				return res
			}
			if !waited && c.await(r) {
				waited, sure = true, false
				continue
			}
			if !sure { // what was arriving may have come into the store since that was looked at
				sure = true
				continue
			}
			res := c.refuse(w, r.Request, http.StatusGatewayTimeout, status{detail: "only-if-cached"}, "no fresh copy here")
			res.Outcome = NotCached
			return res
		case r.Method == http.MethodHead:
			return c.forwardHead(w, r, hit, reason)
		case r.Header["Range"] != nil:
			return c.forward(w, r.Request, "partial")
		}
		res, more := c.fetch(w, r, hit, reason, next)
		if more == nil {
			return res
		}
		next = *more
		if joins++; joins >= maxJoins {
			next.alone = true
		}
	}
}

// hit serves a stored response. It isn't ok if the response can't be read.
func (c *Cache) hit(w http.ResponseWriter, r *request, hit *found, v verdict) (Result, bool) {
	if v == useAndCheck {
		c.validate(r, hit)
	}
	st := status{hit: true, hasTTL: true, ttl: hit.entry.freshFor(r.now)}
	res, ok := c.serveStored(w, r, hit, st, nil)
	res.Outcome, res.Stale = LocalHit, v != useFresh
	return res, ok
}

// fetch answers r by a flight: one of its own, or one that is under way. If that
// brought nothing for r, it says how to go on.
func (c *Cache) fetch(w http.ResponseWriter, r *request, stored *found, reason string, how again) (Result, *again) {
	key := c.flightKey(r, stored, how.fields)
	if how.alone || r.cc.noStore || r.cc.noCache || c.solo.is(r.url, r.now) {
		key = ""
	}
	f, joined := c.newFlight(r, key, stored, reason)
	if !joined {
		if key != "" { // a flight may have landed between our look-up and this one's start
			if now, _ := c.lookup(r); now != nil && (stored == nil || now.obj != stored.obj) {
				f.waiters.leave()
				c.forget(f)
				f.land(&landing{err: context.Canceled}) // whoever joined meanwhile looks again
				return Result{}, &again{}
			}
		}
		c.start(f)
	}
	defer f.waiters.leave()
	late := false // the response is here, only not yet in the store
	if joined {
		select {
		case <-f.ready:
			late = true
		default:
		}
	}
	interims := f.interim
	if joined {
		interims = nil
	}
	for landed := false; !landed; {
		select {
		case <-f.ready:
			drain(interims, w, r.Request)
			landed = true
		case i := <-interims:
			i.write(w, r.Request)
		case <-r.Context().Done():
			if !joined {
				f.leave()
			}
			return Result{Outcome: ClientGone, Err: context.Cause(r.Context())}, nil
		}
	}
	return c.landed(w, r, f, reason, joined, late)
}

// flightKey is the identity under which requests for the same response meet. For
// a URL of which nothing is known it is the plain one: if the response then
// varies, those that don't select it meet again by the fields that it named.
func (c *Cache) flightKey(r *request, stored *found, fields []string) string {
	if stored != nil {
		return stored.obj.Key()
	}
	if fields != nil {
		return variantIdentity(r.url, fields, r.Header)
	}
	if rules := c.rules.of(r.url); len(rules) > 0 {
		return variantIdentity(r.url, rules[0], r.Header)
	}
	return plainIdentity(r.url)
}

// landed answers r with what a flight brought, late if it had before r came.
func (c *Cache) landed(w http.ResponseWriter, r *request, f *flight, reason string, joined, late bool) (Result, *again) {
	l := f.out
	if joined {
		switch {
		case l.answer != nil:
			return Result{}, &again{alone: true}
		case l.err == context.Canceled:
			return Result{}, &again{}
		case l.err == nil && !l.selects(r):
			return Result{}, &again{fields: l.fields}
		}
	}
	st := status{fwd: reason, fwdStatus: l.fwdStatus, stored: l.storing, collapsed: joined}
	res := Result{Outcome: OriginFetch, Peer: l.peer, Stored: l.storing && !joined, Stale: l.stale}
	if l.peer != "" {
		res.Outcome, st.detail = SiblingHit, "sibling"
	}
	if l.confirmed {
		res.Outcome = Revalidated
	}
	switch {
	case !joined:
		res.Asked, res.FalseHits, res.SiblingErrors = l.asked, l.falseHits, l.siblingErrors
	case late && l.entry != nil:
		res.Outcome, res.Peer = LocalHit, ""
		st = status{hit: true, hasTTL: true, ttl: l.entry.freshFor(r.now)}
	default:
		res.Outcome, res.Peer = Collapsed, ""
	}
	var sent Result
	ok := true
	switch {
	case l.err != nil:
		fail := c.failure(l.err)
		st.detail, st.stored = fail.detail, false
		sent = c.refuse(w, r.Request, fail.status, st, fail.text)
		sent.Err, res.Outcome = l.err, GatewayError
	case l.answer != nil:
		sent = c.relay(w, r.Request, l.answer, st)
	case l.stale:
		if !joined {
			res.Outcome = LocalHit
		}
		st = status{hit: true, hasTTL: true, ttl: l.entry.freshFor(timeNow()), detail: "stale-if-error"}
		sent, ok = c.serveStored(w, r, l.obj, st, nil)
	case l.obj != nil:
		sent, ok = c.serveStored(w, r, l.obj, st, forwarded(st, l.via))
	default:
		sent, ok = c.serveArriving(w, r, l, st, forwarded(st, l.via))
	}
	res.Status, res.Bytes, res.Broken = sent.Status, sent.Bytes, sent.Broken
	if sent.Err != nil {
		res.Err = sent.Err
	}
	if !ok {
		return Result{}, &again{fields: l.fields}
	}
	return res, nil
}

// forwarded returns the Cache-Status of the caches that helped with an answer;
// with a hit none did.
func forwarded(st status, via []string) []string {
	if st.hit {
		return nil
	}
	return via
}
