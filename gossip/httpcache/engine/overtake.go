package engine

import (
	"errors"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// Beside a body that makes too little progress, another fetch of the same response begins, from the remaining siblings
// and the origin. It takes the place of the first as soon as it is further: then the first ends, and its clients go on
// with the other one, as those of any body that breaks off (rest.go). If it is slower or fails, it ends itself, so a slow
// source is not lost where there is no better one. If the origin turns out to have another version, requests that come
// from then on get that.

const (
	otherPatience = 4               // multiplies what the slow source was waited for: an origin that always pauses at the same place costs one request
	floorTime     = 5 * time.Second // for which a sibling may be below the lowest floor, if no other source has the body
	maxMeanwhile  = 256 << 10       // bytes that a source may send while another fetch does not overtake it
)

// beside is the fetch beside a body.
type beside struct {
	f          *fetch // nil = none is under way
	at         int64  // bytes that the body had when it began
	fruitless  int    // how many have ended since the body's last byte
	superseded bool   // one has shown that the origin has another version by now
}

// errNoBetter ends a fetch beside a body which it can't overtake.
var errNoBetter = errors.New("cache: no other source has the same")

// lookBeside begins another fetch. b.mu is held.
func (b *body) lookBeside() {
	c, f := b.c, b.f
	r := asNobody(&f.r)
	next := &fetch{key: f.key, r: *r, began: c.tick(), src: f.src}
	next.ctx = detached{stopped: c.stopped, values: f.r.Context()}
	next.ctx.cancelable()
	next.over.Store(b)
	next.waiters.join(true) // for the clients of b
	b.beside.f, b.beside.at = next, b.at
	if !c.work.Go(func() {
		c.run(next)
		b.ended(next)
		c.leave(next, true)
	}) {
		b.beside.f = nil // the body ends, too
		next.ctx.cancel()
	}
}

// ended notes that a fetch beside the body has ended, if it is still beside it.
func (b *body) ended(next *fetch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.beside.f != next {
		return
	}
	if b.fruitless(); b.crawls() {
		b.drop() // its clients learn that there is no source, or get a stale copy
	}
}

// crawls reports whether a sibling has been below the lowest floor for so long that it is no better than none. b.mu is held.
func (b *body) crawls() bool {
	took := b.c.now().steady - b.from.received.steady
	return b.from.sibling != nil && took > floorTime && float64(b.at) < sharedFloor*took.Seconds()
}

// fruitless makes the body wait longer before another fetch begins. b.mu is held.
func (b *body) fruitless() {
	b.beside.f = nil
	b.beside.fruitless++
	b.may.most = min(2*b.may.most, b.c.tuning.Load().BetweenBytesTimeout)
	b.may.left = b.may.most + b.may.waited()
	b.wake()
}

// advanced notes that bytes have arrived. b.mu is held.
func (b *body) advanced() {
	b.beside.fruitless = 0
	if next := b.beside.f; next != nil && b.at-b.beside.at > maxMeanwhile {
		next.ctx.cancel()
	}
	b.wake()
}

// better reports whether an answer to f may overtake the body b, or has shown that the origin has another version. If
// not, the answer is closed, and f ends unless another source may be asked.
func (c *Cache) better(f *fetch, b *body, a *answer) bool {
	switch {
	case a.sibling == nil && b.from.given != nil && f.src.plainly(a, b.from.response()):
		a.close()
		return false
	case a.passing(), a.status == http.StatusNotModified:
		a.close()
		c.fail(f, newResult(f), errNoBetter)
		return false
	case c.mayStore(f, a) && b.from.representation().same(a.representation()):
		return true
	case a.sibling != nil:
		a.close()
		return false
	}
	b.mu.Lock()
	b.beside.superseded = true
	if b.fruitless(); b.at == 0 || b.from.sibling != nil {
		b.drop() // no byte was sent, or a slow sibling is wrong or out of date
	}
	at := b.at
	b.mu.Unlock()
	if by := b.from.given; by != nil && at > 0 && b.f.delivered() && b.f.outcome.derived == nil {
		c.judge(&f.ctx, &f.r, by.by, other, f)
	}
	if c.replace(b.f, f); c.mayStore(f, a) {
		return true
	}
	a.close()
	c.fail(f, newResult(f), errNoBetter)
	return false
}

// overtakes ends the body that f was begun beside, if f has more of it.
func (c *Cache) overtakes(f *fetch, at int64, whole bool) {
	b := f.over.Load()
	if b == nil {
		return
	}
	b.mu.Lock()
	further := b.err == nil && b.beside.f == f && (at > b.at || whole)
	if further {
		b.err, b.beside.f = errOvertaken, nil
	}
	b.mu.Unlock()
	if !further {
		return
	}
	c.BodiesTakenOver.Add(1)
	c.replace(b.f, f)
	if b.from.sibling != nil {
		b.from.cancel(sibling.ErrStalled)
	} else {
		b.from.cancel(errOvertaken)
	}
	b.mu.Lock()
	b.wake()
	b.mu.Unlock()
}

// replace puts a fetch in the place of the one that it was begun beside.
func (c *Cache) replace(f, next *fetch) {
	next.over.Store(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fetches[f.key] == f {
		c.forgetLocked(f)
		c.fetches[f.key] = next
	}
}
