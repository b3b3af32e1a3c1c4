package engine

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// If the origin is down and no stored response may be served stale, the other siblings are looked up for a stale copy, as
// candidates are: one after another, and two at a time if the first takes long. Stale copies are in no digest, so it may
// take a request to each. That costs nothing while origins are up, which is nearly always. A digest of stale objects would
// double the traffic of digests all the time, and stale objects in the usual digest would cause false hits.
//
// While the origin answers, siblings are not asked for responses that they may serve by
// stale-while-revalidate: that would cost a request to each sibling at every miss, and save only
// the wait for the origin's answer.
const (
	staleTime    = 2 * time.Second // for all siblings
	staleNowhere = 5 * time.Second // after which siblings are asked again for a URL that none had
	maxNowhere   = 16 << 10        // URLs that no sibling had
)

// errElsewhere ends the request to a sibling when time is up.
var errElsewhere = errors.New("cache: no longer wanted")

// staleElsewhere returns a sibling's response that may be served in place of the
// origin's, if the origin can't be reached (status 0) or answered with an error. nil = there is none.
// Config.SiblingMaxAge does not forbid it, as it does not forbid a stale response of this cache: it
// bounds what is served without asking the origin, and the origin can't be asked.
func (c *Cache) staleElsewhere(s *sources, status int) *answer {
	r := &s.f.r
	if c.cfg.Others == nil || s.header == nil || r.cc.StaleIfError == 0 || c.nowhere.has(r.url, r.now) {
		return nil
	}
	var conditions http.Header
	if r.slice > 0 {
		conditions = ofSlice(r.slice, nil)
	}
	q := s.request
	q.Header = q.Header.Clone()
	q.Header["Cache-Control"] = []string{q.Header.Get("Cache-Control") + ", stale-if-error=3600"}
	q.Origin, q.InFlight = nil, nil
	q.Accept = func(got *sibling.Answer) bool {
		s.accepted = c.fromSibling(got)
		resp, ok := s.usable(s.accepted, got.Request.Header)
		return ok && resp.StaleOnError(&r.cc, status, resp.InitialAge)
	}
	in := c.cfg.Siblings.Lookup(q)
	in.Only(c.cfg.Others()...)
	ctx, cancel := context.WithCancelCause(&s.f.ctx)
	late := time.AfterFunc(staleTime, func() { cancel(errElsewhere) })
	got, _ := in.Next(ctx, conditions)
	if got != nil && late.Stop() {
		s.accepted.cancel = cancel
		return s.accepted
	}
	if cancel(nil); got != nil {
		got.Body.Close()
	}
	c.nowhere.add(r.url, r.now, staleNowhere)
	return nil
}

// takeStale delivers a sibling's stale response, and reports whether there is one.
func (c *Cache) takeStale(f *fetch, status int) bool {
	switch status {
	case 0, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return false
	}
	a := c.staleElsewhere(f.src, status)
	if a == nil {
		return false
	}
	if c.otherThanSlice(f, a) {
		a.close()
		return false
	}
	a.stale = true
	if c.outdated(f, a.response()) || !f.r.mayStore(a.response()) {
		c.handOver(f, a)
	} else {
		c.receive(f, a)
	}
	return f.result != nil
}
