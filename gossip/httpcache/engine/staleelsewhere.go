package engine

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// If the origin is down and no stored response may be served stale, all siblings are asked for a
// stale copy. Stale copies are in no digest, so all siblings must be asked. That costs nothing while
// origins are up, which is nearly always. A digest of stale objects would double the traffic of
// digests all the time, and stale objects in the usual digest would cause false hits. These
// constants bound the cost.
//
// While the origin answers, siblings are not asked for responses that they may serve by
// stale-while-revalidate: that would cost a request to each sibling at every miss, and save only
// the wait for the origin's answer.
const (
	staleAtOnce  = 16              // siblings asked at a time for one response
	staleLookups = 64              // responses at a time for which siblings are asked
	staleTime    = 2 * time.Second // for all siblings
	staleNowhere = 5 * time.Second // after which siblings are asked again for a URL that none had
	maxNowhere   = 16 << 10        // URLs that no sibling had
)

// staleElsewhere returns a sibling's response that may be served in place of the
// origin's, if the origin can't be reached (status 0) or answered with an error. nil = there is none.
// Config.SiblingMaxAge does not forbid it, as it does not forbid a stale response of this cache: it
// bounds what is served without asking the origin, and the origin can't be asked.
// With conditions, the response may be the requested rest of a body.
func (c *Cache) staleElsewhere(ctx context.Context, s *sources, status int, conditions http.Header) *answer {
	r := &s.f.r
	if c.cfg.Others == nil || s.header == nil || r.cc.StaleIfError == 0 || c.nowhere.has(r.url, r.now) {
		return nil
	}
	select {
	case c.staleSlots <- struct{}{}:
		defer func() { <-c.staleSlots }()
	default:
		return nil
	}
	header := s.header.Clone()
	header["Cache-Control"] = []string{header.Get("Cache-Control") + ", stale-if-error=3600"}
	asking, stop := context.WithTimeout(ctx, staleTime)
	defer stop()
	var (
		found atomic.Pointer[answer]
		asked atomic.Int64
		all   sync.WaitGroup
	)
	others := c.cfg.Others()
	for range min(staleAtOnce, len(others)) {
		all.Go(func() {
			for i := asked.Add(1); asking.Err() == nil && int(i) <= len(others); i = asked.Add(1) {
				a := c.staleAt(ctx, asking, s, others[i-1], header, status, conditions)
				if a == nil {
					continue
				}
				if !found.CompareAndSwap(nil, a) {
					a.close()
				}
				stop()
			}
		})
	}
	all.Wait()
	if found.Load() == nil && ctx.Err() == nil {
		c.nowhere.add(r.url, r.now, staleNowhere)
	}
	return found.Load()
}

// errElsewhere ends the request to a sibling when another has answered, or time is up.
var errElsewhere = errors.New("cache: no longer wanted")

// staleAt asks one sibling, until asking ends. The answer ends with ctx.
func (c *Cache) staleAt(ctx, asking context.Context, s *sources, other sibling.Peer, header http.Header, status int, conditions http.Header) *answer {
	r := &s.f.r
	ctx, cancel := context.WithCancelCause(ctx)
	inTime := context.AfterFunc(asking, func() { cancel(errElsewhere) })
	var a *answer
	in := c.cfg.Siblings.Lookup(sibling.LookupRequest{
		URL: r.URL, Host: r.Host, Header: header,
		Accept: func(got *sibling.Answer) bool {
			a = c.fromSibling(got)
			resp, ok := s.usable(a, got.Request.Header)
			return ok && resp.StaleOnError(&r.cc, status, resp.InitialAge)
		},
	})
	in.Only(other)
	got, err := in.Next(ctx, conditions)
	if err != nil || got == nil || !inTime() {
		if got != nil {
			got.Body.Close()
		}
		cancel(nil)
		return nil
	}
	a.cancel = cancel
	return a
}

// takeStale delivers a sibling's stale response, and reports whether there is one.
func (c *Cache) takeStale(f *fetch, status int) bool {
	switch status {
	case 0, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return false
	}
	var conditions http.Header
	if f.r.slice > 0 {
		conditions = ofSlice(f.r.slice, nil)
	}
	a := c.staleElsewhere(&f.ctx, f.src, status, conditions)
	if a == nil {
		return false
	}
	if c.misfit(f, a) {
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
