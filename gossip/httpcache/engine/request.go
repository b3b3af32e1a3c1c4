package engine

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Serve answers r, whose URL is absolute and whose header has no connection
// fields. The response is written to w; a Result with Broken set asks the caller
// to close the client's connection, since the answer was cut short.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request) Result {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return c.pass(w, r, "method", nil)
	case r.ContentLength != 0, r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil:
		return c.pass(w, r, "bypass", nil)
	}
	q := c.request(r)
	return c.get(w, &q)
}

// A walk is a request's through the steps, if the store does not answer it at once. Each step returns the next one; the
// last returns nil. A request from the cache itself for the rest of an answer takes the same steps (rest.go).
type walk struct {
	c      *Cache
	w      http.ResponseWriter // nil = the bytes are for rest
	r      request
	rest   *rest
	stored *found // a stale copy, to be validated; nil = none
	reason string // why r is no hit
	f      *fetch
	joined bool // f is that of another request
	late   bool // f had a result by then
	rounds int
	res    Result
}

type step func(*walk) step

// maxRounds bounds how often a request waits for a fetch whose result turns out to be of no use to it. After half of
// that it joins none.
const maxRounds = 6

// get answers a GET or HEAD.
func (c *Cache) get(w http.ResponseWriter, r *request) Result {
	if r.cc.OnlyIfCached {
		return c.getHere(w, r)
	}
	res, stored, reason := c.hit(w, r)
	if res.Outcome == LocalHit {
		return res
	}
	v := c.walks.Get().(*walk)
	*v = walk{c: c, w: w, r: *r, stored: stored, reason: reason}
	defer v.end()
	v.run(missed)
	return v.res
}

// end gives back what v has.
func (v *walk) end() {
	c := v.c
	v.r.open.release()
	*v = walk{}
	c.walks.Put(v)
}

// run takes the steps. It ends: no step but look can come again in a round, and look bounds their number.
func (v *walk) run(s step) {
	for s != nil {
		s = s(v)
	}
}

// look looks into the store again, since a fetch was of no use.
func look(v *walk) step {
	c, r := v.c, &v.r
	r.now = c.now()
	if v.rounds++; v.rounds >= maxRounds { // each time the origin has another version, and then stalls
		v.staleOrError(rfc9111.Status{Fwd: v.reason}, errSuperseded)
		return nil
	}
	r.alone = r.alone || v.rounds >= maxRounds/2
	if v.rest != nil {
		return v.rest.look(v)
	}
	res, stored, reason := c.hit(v.w, r)
	if res.Outcome == LocalHit {
		v.res = res
		return nil
	}
	v.stored, v.reason = stored, reason
	return missed
}

// missed decides how a response is fetched that is not stored, or must be validated.
func missed(v *walk) step {
	c, r := v.c, &v.r
	switch {
	case r.Method == http.MethodHead:
		v.res = c.head(v.w, r, v.stored, v.reason)
		return nil
	case (v.stored == nil || v.rounds > 0) && r.slice == 0 && c.asPart(r):
		// Without a copy, or after its validation brought a new version that is better fetched in part.
		v.res = c.pass(v.w, r.Request, "partial", nil)
		return nil
	case v.stored != nil && v.stored.entry.overdue(r.now):
		r.origin = true
	}
	return join
}

// join makes the request a follower of a fetch of the same response, if there is one.
func join(v *walk) step {
	c, r := v.c, &v.r
	key := c.fetchKey(r, v.stored, r.fields)
	if r.alone || r.cc.NoStore || r.reload() || c.hitForMiss.has(r.url, r.now) {
		key = ""
	}
	if v.f, v.joined = c.newFetch(r, key, v.stored); v.joined {
		v.late = v.f.delivered() // the response has arrived, but is not in the store yet
		return await
	}
	return lead
}

// lead begins a fetch.
func lead(v *walk) step {
	c, r, f := v.c, &v.r, v.f
	if v.late = false; f.key != "" && (v.rest == nil || r.slice > 0 && v.rounds == 0) { // has another fetch ended?
		if now, _ := c.choose(r); now != nil && (v.stored == nil || now.obj != v.stored.obj) {
			c.forget(f)
			c.deliver(f, &result{err: context.Canceled}, fetchFailed) // followers look up again
			c.leave(f, false)
			return look
		}
	}
	if v.w != nil {
		f.interim.begin(v.w, r.Request)
	}
	if v.rest == nil && r.slice == 0 && f.ctx.end == nil && c.cfg.MayStay(r.Context()) {
		return c.leadHere(v)
	}
	c.runBeside(f)
	return await
}

// await waits for the result of the fetch.
func await(v *walk) step {
	next := step(send)
	select {
	case <-v.f.ready():
	case <-v.r.Context().Done():
	}
	if v.r.Context().Err() != nil {
		v.res = Result{Outcome: ClientGone, Err: context.Cause(v.r.Context())}
		next = nil
	}
	if !v.joined {
		v.f.interim.end()
	}
	if next == nil {
		if !v.joined {
			v.f.leave()
		}
		v.c.leave(v.f, v.joined)
	}
	return next
}

// send answers with the result of the fetch.
func send(v *walk) step {
	c, r, got := v.c, &v.r, v.f.result
	defer c.leave(v.f, v.joined)
	if v.joined && v.unfit(got) {
		return look
	}
	switch got.err {
	case context.Canceled: // another fetch has taken the place of this
		return look
	case errSliced, errUnsliced:
		if v.rest == nil {
			return look
		}
	}
	if v.rest != nil {
		v.rest.send(v, got)
		return nil
	}
	if !v.joined && got.open != nil {
		r.open.release()
		r.open = got.open
	}
	if in, ok := v.w.(*ownWriter); ok {
		in.peer, in.stale = got.peer, got.stale
	}
	r.now = c.now()
	res, st := got.describe(r, v.reason, v.joined, v.late)
	via := got.via
	if st.Hit {
		via = nil // no other cache helped
	}
	v.res = res
	var sent Result
	ok := true
	switch {
	case got.err != nil:
		v.giveUp(st, got.err)
		return nil
	case got.answer != nil:
		sent, ok = c.relay(v.w, r.Request, got.answer, st)
	case got.obj != nil:
		sent, ok = c.serveStored(v.w, r, got.obj, st, via)
	default:
		if sent, ok = c.serveArriving(v.w, r, got, st, via); !ok {
			c.forget(v.f) // the body passed through, or it is stored, or it was given up
		}
	}
	if ok {
		v.res.Status, v.res.Bytes, v.res.Broken, v.res.Err = sent.Status, sent.Bytes, sent.Broken, sent.Err
		return nil
	}
	return v.nothingSent(got, st, sent.Err)
}

// nothingSent decides how a request goes on whose answer broke off before its first byte: any version will do. A nil err
// means that the body can't be followed any more.
func (v *walk) nothingSent(got *result, st rfc9111.Status, err error) step {
	r := &v.r
	var timeout net.Error
	late := errors.As(err, &timeout) && timeout.Timeout()
	switch {
	case err == nil, errors.Is(err, errOvertaken):
	case r.Context().Err() != nil:
		v.res = Result{Outcome: ClientGone, Err: err}
		return nil
	case errors.Is(err, errSuperseded):
		r.origin = true
	case unread(err): // the disk must not be used
		r.cc.NoStore, r.cc.NoCache, r.slice = true, true, 0
	case errors.Is(err, errStandsStill), v.rounds >= maxRounds/2, late && v.rounds > 0, got.answer != nil && got.peer == "":
		v.staleOrError(st, err)
		return nil
	}
	if got.fields != nil {
		r.fields = got.fields
	}
	return look
}

// staleOrError answers a request whose answer broke off before its first byte: with a stale copy, if one may be served while
// the origin can't be reached, or with the error.
func (v *walk) staleOrError(st rfc9111.Status, err error) {
	c, r := v.c, &v.r
	if v.rest != nil {
		v.rest.err = err
		return
	}
	r.now = c.now()
	if hit, _ := c.lookup(r); hit != nil && !c.discredited(hit.entry) && hit.entry.StaleOnError(&r.cc, 0, hit.entry.age(r.now)) {
		st := rfc9111.Status{Hit: true, HasTTL: true, TTL: hit.entry.freshFor(r.now), Detail: "stale-if-error"}
		if sent, ok := c.serveStored(v.w, r, hit, st, nil); ok {
			sent.Outcome, sent.Stale = LocalHit, true
			sent.Asked, sent.FalseHits, sent.SiblingErrors = v.res.Asked, v.res.FalseHits, v.res.SiblingErrors
			v.res = sent
			return
		}
	}
	v.giveUp(st, err)
}

// giveUp refuses a request that no source has answered.
func (v *walk) giveUp(st rfc9111.Status, err error) {
	sent := v.c.unanswered(v.w, v.r.Request, st, err)
	v.res.Status, v.res.Bytes, v.res.Said, v.res.Outcome, v.res.Err = sent.Status, sent.Bytes, sent.Said, sent.Outcome, err
}

// unfit reports whether a follower can't use the result, and notes what it says of the next one.
func (v *walk) unfit(got *result) bool {
	r := &v.r
	switch {
	case got.err == errSliced, got.err == errUnsliced:
	case got.answer != nil, got.alone:
		r.alone = true
	case got.err == context.Canceled, IsClients(got.err):
	case got.err == nil && !v.c.selects(got, r):
		r.fields = got.fields
	case got.body != nil:
		err := got.body.moving(r.Context())
		if err == nil {
			return false
		}
		v.c.forget(v.f) // no other request should join it
		r.fields, r.origin = got.fields, r.origin || err == errSuperseded
	default:
		return false
	}
	return true
}

// getHere answers a request that is only-if-cached, as those of siblings are: from the store, or with a response that
// is arriving, for which it may wait. The loop ends: each round but the last waits, or is the one after that.
func (c *Cache) getHere(w http.ResponseWriter, r *request) Result {
	if !peering.UpToDate(r.Header, c.cfg.Cluster) {
		return c.NotCachedHere(w, r.Request)
	}
	for waited, sure := false, false; ; {
		if res, _, _ := c.hit(w, r); res.Outcome == LocalHit {
			c.servedSibling(r)
			return res
		}
		if res, ok := c.attach(w, r); ok {
			c.servedSibling(r)
			return res
		}
		switch {
		case !waited && c.awaitAnswer(r):
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
	res := c.refuse(w, r, http.StatusGatewayTimeout, rfc9111.Status{Detail: "only-if-cached"}, "no fresh copy here")
	res.Outcome = NotCached
	return res
}

// servedSibling reports the answer to a sibling's request to the coalescer.
func (c *Cache) servedSibling(r *request) {
	if c.cfg.Coalescer != nil {
		c.cfg.Coalescer.Served(r.Header)
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
	if use == rfc9111.Validate || use == rfc9111.StaleWhileRevalidate {
		c.asStored(r, stored)
	}
	if use == rfc9111.Validate {
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
