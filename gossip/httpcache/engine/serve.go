package engine

import (
	"context"
	"errors"
	"net/http"

	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Serve answers r, whose URL is absolute and whose header has no connection
// fields. The response is written to w; a Result with Broken set asks the caller
// to close the client's connection, since the answer was cut short.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request) Result {
	c.made()
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return c.pass(w, r, "method", nil)
	case r.ContentLength != 0, r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil:
		return c.pass(w, r, "bypass", nil)
	}
	q := c.request(r)
	return c.get(w, &q)
}

// maxJoins bounds how often a request waits for a fetch whose result turns out to be of no
// use to it.
const maxJoins = 3

// again says how a request continues after a fetch whose result it could not use.
type again struct {
	fields   []string // join a fetch for the variant that these fields select, not for a guessed one
	alone    bool     // join no fetch
	origin   bool     // ask no sibling
	part     bool     // request only the client's range
	pastDisk bool     // ask the origin, and hand its answer over without storing it
	first    *answer  // of the origin, which the fetch of the first slice uses; nil = none
}

// get answers a GET or HEAD: from the store, or by fetches, of which most requests need one.
func (c *Cache) get(w http.ResponseWriter, r *request) Result {
	if r.cc.OnlyIfCached {
		return c.getHere(w, r)
	}
	how := again{origin: r.origin}
	defer func() {
		if how.first != nil {
			how.first.close()
		}
	}()
	for joins := 1; ; joins++ {
		res, stored, reason := c.hit(w, r)
		switch {
		case res.Outcome == LocalHit || atOnce(w):
			return res
		case r.Method == http.MethodHead:
			return c.head(w, r, stored, reason)
		case stored != nil && stored.entry.overdue(r.now):
			how.origin = true
		case r.Header["Range"] != nil && stored == nil && r.slice == 0 && (how.part || c.asPart(r)):
			how.part, how.alone, reason = true, true, "partial"
		}
		if how.pastDisk {
			past := *r
			past.cc.NoStore, past.cc.NoCache = true, true
			past.slice = 0
			r, stored = &past, nil
		}
		res, more := c.fetch(w, r, stored, reason, how)
		how.first = nil
		if more == nil {
			return res
		}
		more.origin = more.origin || how.origin
		how = *more
		if planted.Fault != "age-of-arrival" {
			r.now = c.now()
		}
		switch {
		case joins >= 2*maxJoins: // each time the origin has another representation, and then stalls
			return c.insteadOf(w, r, Result{}, rfc9111.Status{Fwd: reason}, errSuperseded)
		case joins >= maxJoins:
			how.alone = true
		}
	}
}

// getHere answers a request that is only-if-cached, as those of siblings are: from the store, or with a response that
// is arriving, for which it may wait. The loop ends: each round but the last waits, or is the one after that.
func (c *Cache) getHere(w http.ResponseWriter, r *request) Result {
	if planted.Fault != "lagging-sibling" && !sibling.UpToDate(r.Header, c.cfg.Cluster) {
		return c.NotCachedHere(w, r.Request)
	}
	for waited, sure := false, false; ; {
		switch res, _, _ := c.hit(w, r); {
		case res.Outcome == LocalHit:
			c.servedSibling(r)
			return res
		case atOnce(w):
			return res
		}
		if res, ok := c.attach(w, r); ok {
			c.servedSibling(r)
			return res
		}
		switch {
		case !waited && c.await(r):
			waited, sure, r.now = true, false, c.now()
		case !sure: // an arriving response may have been stored after the lookup
			sure = true
		default:
			return c.NotCachedHere(w, r.Request)
		}
	}
}

// NotCachedHere answers that there is no fresh copy here (504).
func (c *Cache) NotCachedHere(w http.ResponseWriter, r *http.Request) Result {
	res := c.made().refuse(w, r, http.StatusGatewayTimeout, rfc9111.Status{Detail: "only-if-cached"}, "no fresh copy here")
	res.Outcome = NotCached
	return res
}

// servedSibling reports the answer to a sibling's request to the coalescer.
func (c *Cache) servedSibling(r *request) {
	if c.cfg.Coalescer == nil {
		return
	}
	for _, identity := range c.identities(r) {
		c.cfg.Coalescer.Served(identity, r.Header)
	}
}

// hit answers r with a stored response, if one may be served as it is: then the outcome is LocalHit. Otherwise it
// returns the response that is to be validated, nil = none, and why r is no hit.
func (c *Cache) hit(w http.ResponseWriter, r *request) (res Result, stored *found, reason string) {
	stored, reason = c.lookup(r)
	if stored == nil || c.discredited(stored.entry) {
		return res, nil, reason
	}
	use, reason := stored.entry.reuse(r)
	if use == rfc9111.Validate || use != rfc9111.ServeFresh && atOnce(w) {
		return res, stored, reason
	}
	if use == rfc9111.StaleWhileRevalidate {
		c.fetchUnasked(r, stored.obj.Key(), stored)
	}
	st := rfc9111.Status{Hit: true, HasTTL: true, TTL: stored.entry.freshFor(r.now)}
	res, ok := c.serveStored(w, r, stored, st, nil)
	if !ok { // it left the store before it was opened
		return Result{}, nil, "miss"
	}
	res.Outcome, res.Stale = LocalHit, use != rfc9111.ServeFresh
	return res, nil, ""
}

// fetch answers r by a fetch: one of its own, or one that is under way. If r can't use
// the result, it returns how to continue.
func (c *Cache) fetch(w http.ResponseWriter, r *request, stored *found, reason string, how again) (Result, *again) {
	key := c.fetchKey(r, stored, how.fields)
	if how.alone || r.cc.NoStore || r.cc.NoCache || c.hitForMiss.has(r.url, r.now) {
		key = ""
	}
	f, joined := c.newFetch(r, key, stored)
	defer c.leave(f, joined)
	defer func() {
		if how.first != nil {
			how.first.close()
		}
	}()
	if !joined {
		if key != "" { // another fetch may have ended between the lookup and newFetch
			if now, _ := c.lookup(r); now != nil && (stored == nil || now.obj != stored.obj) {
				c.forget(f)
				c.deliver(f, &result{err: context.Canceled}, fetchFailed) // followers look up again
				return Result{}, &again{}
			}
		}
		f.origin, f.part = how.origin, how.part
		if r.slice == 1 { // otherwise what was found meanwhile needs a whole, or nothing
			f.first, how.first = how.first, nil
		}
		f.interim.begin(w, r.Request)
		c.lead(f)
	}
	late := joined && f.delivered() // the response has arrived, but is not in the store yet
	gone := false
	select {
	case <-f.ready():
	case <-r.Context().Done():
		gone = true
	}
	if !joined {
		f.interim.end()
	}
	if gone {
		if !joined {
			f.leave()
		}
		return Result{Outcome: ClientGone, Err: context.Cause(r.Context())}, nil
	}
	return c.respond(w, r, f, reason, joined, late)
}

// fetchKey returns the identity by which requests for the same response find the same fetch. For
// an unknown URL it is the plain one. If the response then varies, requests that don't select it
// use the fields by which it varies.
func (c *Cache) fetchKey(r *request, stored *found, fields []string) string {
	if stored != nil {
		return stored.obj.Key()
	}
	if rules := c.variants.Rules(r.url); fields == nil && len(rules) > 0 {
		fields = rules[0]
	}
	if c.isDerived(r) {
		fields = byCoding(fields)
	}
	return r.identity(fields)
}

// unfit returns how a follower continues that can't use the result; nil = it can.
func (c *Cache) unfit(r *request, f *fetch) *again {
	switch got := f.result; {
	case got.err == errSliced, got.err == errUnsliced:
		return &again{}
	case got.answer != nil, got.alone:
		return &again{alone: true}
	case got.err == context.Canceled, IsClients(got.err), got.err == errPart && r.Header["Range"] == nil:
		return &again{}
	case got.err == nil && !c.selects(got, r):
		return &again{fields: got.fields}
	case got.body != nil:
		if err := got.body.moving(r.Context()); err != nil {
			c.forget(f) // no other request should join it
			return &again{fields: got.fields, origin: err == errSuperseded}
		}
	}
	return nil
}

// describe returns the outcome of an answer to r with the result, and its Cache-Status.
func (got *result) describe(r *request, reason string, joined, late bool) (Result, rfc9111.Status) {
	st := rfc9111.Status{Fwd: reason, FwdStatus: got.fwdStatus, Stored: got.storing, Collapsed: joined, Detail: got.obstacle.String()}
	res := Result{Outcome: OriginFetch, Peer: got.peer, Stale: got.stale}
	if got.peer != "" {
		res.Outcome, st.Detail = SiblingHit, "sibling"
	}
	if got.stale {
		st.Detail = "stale-if-error"
	}
	if got.confirmed {
		res.Outcome = Revalidated
	}
	if d := got.derived; d != nil && d.from.st.Hit {
		res.Outcome, st = LocalHit, d.from.st
		if d.recoded && st.Detail == "" {
			st.Detail = "recoded"
		}
	}
	staleHere := got.stale && got.obj != nil
	res.Said = st
	switch {
	case !joined:
		res.Asked, res.FalseHits, res.SiblingErrors = got.asked, got.falseHits, got.siblingErrors
		if staleHere {
			res.Outcome = LocalHit
		}
	case late && got.entry != nil:
		res.Outcome, res.Peer = LocalHit, ""
		st = rfc9111.Status{Hit: true, HasTTL: true, TTL: got.entry.freshFor(r.now)}
	default:
		res.Outcome, res.Peer = Collapsed, ""
	}
	if staleHere {
		st = rfc9111.Status{Hit: true, HasTTL: true, TTL: got.entry.freshFor(r.now), Detail: "stale-if-error"}
	}
	return res, st
}

// respond answers r with the result of a fetch. late means that there was a result before r joined.
func (c *Cache) respond(w http.ResponseWriter, r *request, f *fetch, reason string, joined, late bool) (Result, *again) {
	got := f.result
	if joined {
		if more := c.unfit(r, f); more != nil {
			return Result{}, more
		}
	}
	switch got.err {
	case errPart:
		return Result{}, &again{part: true}
	case errSliced, errUnsliced:
		return Result{}, &again{first: got.answer}
	}
	if in, ok := w.(*inside); ok {
		in.peer = got.peer
	}
	r.now = c.now()
	res, st := got.describe(r, reason, joined, late)
	via := got.via
	if st.Hit {
		via = nil // no other cache helped
	}
	var sent Result
	ok := true
	switch {
	case got.err != nil:
		return c.unanswered(w, r, res, st, got.err), nil
	case got.answer != nil:
		sent, ok = c.relay(w, r.Request, got.answer, st)
	case got.obj != nil:
		sent, ok = c.serveStored(w, r, got.obj, st, via)
	default:
		if sent, ok = c.serveArriving(w, r, got, st, via); !ok {
			c.forget(f) // the body passed through, or it is stored, or it was given up
		}
	}
	res.Status, res.Bytes, res.Broken = sent.Status, sent.Bytes, sent.Broken
	if sent.Err != nil {
		res.Err = sent.Err
	}
	switch {
	case ok:
		return res, nil
	case sent.Err == nil:
		return Result{}, &again{fields: got.fields}
	case errors.Is(sent.Err, errSuperseded):
		return Result{}, &again{fields: got.fields, origin: true}
	case unread(sent.Err): // no byte was sent: any version will do, but the disk must not be used
		return Result{}, &again{pastDisk: true}
	case r.Context().Err() != nil:
		return Result{Outcome: ClientGone, Err: sent.Err}, nil
	}
	return c.insteadOf(w, r, res, st, sent.Err), nil
}

// insteadOf answers a request whose answer broke off before its first byte: with a stale copy,
// if one may be served while the origin can't be reached, or with the error.
func (c *Cache) insteadOf(w http.ResponseWriter, r *request, res Result, st rfc9111.Status, err error) Result {
	r.now = c.now()
	if hit, _ := c.lookup(r); hit != nil && !c.discredited(hit.entry) && hit.entry.StaleOnError(&r.cc, 0, hit.entry.age(r.now)) {
		st := rfc9111.Status{Hit: true, HasTTL: true, TTL: hit.entry.freshFor(r.now), Detail: "stale-if-error"}
		if sent, ok := c.serveStored(w, r, hit, st, nil); ok {
			sent.Outcome, sent.Stale = LocalHit, true
			sent.Asked, sent.FalseHits, sent.SiblingErrors = res.Asked, res.FalseHits, res.SiblingErrors
			return sent
		}
	}
	return c.unanswered(w, r, res, st, err)
}

// unanswered refuses a request that no source has answered.
func (c *Cache) unanswered(w http.ResponseWriter, r *request, res Result, st rfc9111.Status, err error) Result {
	fail := c.failure(err)
	st.Detail, st.Stored = fail.detail, false
	sent := c.refuse(w, r.Request, fail.status, st, fail.text)
	res.Status, res.Bytes, res.Said = sent.Status, sent.Bytes, st
	return failed(res, err)
}
