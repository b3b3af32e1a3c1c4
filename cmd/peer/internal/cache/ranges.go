package cache

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Range of what is not here is answered in one of two ways. If it begins near the
// beginning of an object that is not known to be large, the whole is fetched, as for any
// other request, and the range is sent as soon as it arrives. Else it is asked of siblings
// and the origin as a range, and passed on; an object that turns out to be of moderate size
// is then fetched whole in the background. So a digest lists only what is held as a whole:
// parts of objects are neither stored nor advertised.
const (
	nearStart = 1 << 20  // bytes that a client waits for of what it does not want
	maxLarge  = 16 << 10 // URLs known to be large
	largeTime = 10 * time.Minute
)

// errPart ends a fetch of the whole that was begun for a range: what comes can't be shared,
// or is so large that it isn't fetched for the sake of a part.
var errPart = errors.New("cache: to be asked for in part")

// asPart reports whether r, which has a Range, is to be asked for in part.
func (c *Cache) asPart(r *request) bool {
	spec := r.Header.Get("Range")
	unit, set, _ := strings.Cut(spec, "=")
	first, _, _ := strings.Cut(strings.TrimSpace(set), "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return err != nil || n > nearStart || strings.Contains(set, ",") || !strings.EqualFold(strings.TrimSpace(unit), "bytes") ||
		r.cc.NoStore || r.Header["Authorization"] != nil || c.hitForMiss.is(r.url, r.now) || c.large.is(r.url, r.now)
}

// ofPart are the fields that ask for what the client wants a part of.
func ofPart(h http.Header) http.Header {
	part := http.Header{"Range": h["Range"]}
	if v := h["If-Range"]; v != nil {
		part["If-Range"] = v
	}
	return part
}

// betterInPart reports whether an answer is not worth fetching whole for the range that the
// fetch was begun for, and remembers that.
func (c *Cache) betterInPart(f *fetch, a *answer) bool {
	if f.part || f.r.Header["Range"] == nil || a.status != http.StatusOK {
		return false
	}
	if !c.mayStore(f, a) {
		c.hitForMiss.mark(f.r.url, c.now())
		return true
	}
	p := a.response().PartFor(f.r.Request, a.length)
	if p.Status != http.StatusPartialContent || a.length-p.Offset-p.Length <= unattendedRest {
		return false
	}
	c.large.set(f.r.url, c.now().steady+largeTime)
	return true
}

// complete fetches the whole of what an answer of the origin is a part of, in the
// background, if it may be kept and is of moderate size.
func (c *Cache) complete(r *request, a *answer) {
	_, size, _ := strings.Cut(a.header.Get("Content-Range"), "/")
	n, err := strconv.ParseInt(size, 10, 64)
	switch whole := rfc9111.NewResponse(http.StatusOK, a.header, a.delay, a.received.wall); {
	case err != nil:
		return
	case n > unattendedRest:
		c.large.set(r.url, c.now().steady+largeTime)
		return
	case r.obstacle(whole) != 0:
		return
	}
	c.fetchUnasked(r, c.fetchKey(r, nil, nil), nil)
}

// headElsewhere answers a HEAD for what is not here by a sibling that has it. It isn't ok
// if no such sibling is known.
func (c *Cache) headElsewhere(w http.ResponseWriter, r *request, reason string) (Result, bool) {
	f := &fetch{r: *r, began: c.now()}
	s := c.sources(f)
	if s.inquiry == nil || s.inquiry.Left() == 0 {
		return Result{}, false
	}
	q := s.question
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
