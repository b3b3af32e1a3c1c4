package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A range of an object that is not stored is answered by slices (slices.go). If the object can't be sliced,
// there are two ways. If the range begins near the beginning of an object that is not known to be large, the
// whole object is fetched, as for any other request, and the range is sent as soon as it arrives. Otherwise
// the request is passed to the origin.
const (
	nearStart = 1 << 20  // bytes before a range that a client waits for, at most
	maxLarge  = 16 << 10 // URLs of objects known to be large
	largeTime = 10 * time.Minute
)

// asPart reports whether only a range should be requested for r.
func (c *Cache) asPart(r *request) bool {
	first, ok := rfc9111.RangeStart(r.Header)
	return r.Header["Range"] != nil && (!ok || first < 0 || first > nearStart ||
		r.cc.NoStore || r.Header["Authorization"] != nil || c.hitForMiss.has(r.url, r.now) || c.large.has(r.url, r.now))
}

// betterInPart reports whether an answer should not be fetched completely for the range for which
// the fetch was begun, and remembers that.
func (c *Cache) betterInPart(f *fetch, a *answer) bool {
	if f.r.Header["Range"] == nil || a.status != http.StatusOK {
		return false
	}
	if !c.mayStore(f, a) {
		c.hitForMiss.add(f.r.url, c.now(), hitForMissTime)
		return true
	}
	p := a.response().PartFor(f.r.Request, a.length)
	if p.Status != http.StatusPartialContent || a.length-p.Offset-p.Length <= unattendedRest {
		return false
	}
	c.large.add(f.r.url, c.now(), largeTime)
	return true
}

// head answers a HEAD for a response that may not be served as it is: by a sibling, if none is stored, or by the origin.
func (c *Cache) head(w http.ResponseWriter, r *request, stored *found, reason string) Result {
	if stored == nil {
		if res, ok := c.headElsewhere(w, r, reason); ok {
			return res
		}
	}
	return c.forwardHead(w, r, stored, reason)
}

// headElsewhere answers a HEAD for a response that is not stored, by a sibling that has it. It isn't
// ok if there is no such sibling.
func (c *Cache) headElsewhere(w http.ResponseWriter, r *request, reason string) (Result, bool) {
	f := &fetch{r: *r, began: c.tick()}
	s := c.sources(f)
	if s.siblings == nil || s.siblings.Left() == 0 {
		return Result{}, false
	}
	q := s.request
	q.Method, q.Origin = http.MethodHead, nil
	in := c.cfg.Siblings.Lookup(q)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	got, err := in.Next(ctx, nil)
	if err != nil || got == nil {
		return Result{}, false
	}
	a := s.accepted
	a.cancel = cancel
	res, _ := c.relay(w, r.Request, a, rfc9111.Status{Fwd: reason, FwdStatus: a.status, Detail: "sibling"})
	res.Outcome, res.Peer = SiblingHit, got.Peer
	res.Asked, res.FalseHits, res.SiblingErrors = in.Asked, in.FalseHits, in.Errors
	return res, true
}
