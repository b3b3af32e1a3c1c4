package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// receive stores a response and delivers it. It delivers the origin's response at once, and a
// sibling's if it has a strong validator, so that another source can continue it. Any other
// response of a sibling is delivered when it is complete or long enough; if the sibling fails
// before that, nothing is delivered.
func (c *Cache) receive(f *fetch, a *answer) {
	w, err := c.store.Create(f.r.identity(rfc9111.VaryFields(a.header)), a.bodyLength())
	if err != nil {
		if f.r.slice > 0 {
			c.unsliced.add(f.r.url, c.now(), unslicedTime)
		}
		c.handOver(f, a)
		return
	}
	c.become(f, fetchReceives)
	res := c.receiving(f, a, w)
	w.Hold() // until all waiting requests have the body
	f.waiters.body.Store(w)
	c.deserted(f)
	early := a.sibling == nil || res.body.from.response().StrongValidator() != ""
	if early {
		c.share(f, res)
	}
	if err := c.pump(f, res, early); err == nil {
		c.complete(f, res)
	} else {
		c.brokeOff(f, a, res, err)
	}
}

// receiving returns the result of a fetch whose body is received into w.
func (c *Cache) receiving(f *fetch, a *answer, w *bodies.Stream) *result {
	body := c.newBody(f, a)
	e := newEntry(a.response(), a.received, c.via)
	e.given = a.given
	if f.r.slice > 0 {
		e.of.first, _, e.of.size = a.span()
	}
	res := newResult(f)
	res.fields = rfc9111.VaryFields(a.header)
	res.id, res.entry, res.body, res.into, res.length = f.r.identity(res.fields), &e, body, w, a.bodyLength()
	res.storing, res.fwdStatus, res.stale = true, a.status, a.stale
	res.from(a)
	c.noteReuse(f, &e)
	if f.r.reload() && a.sibling == nil && a.derived == nil {
		c.saw(&f.r, e.Response)
	}
	return res
}

// noteReuse keeps requests from waiting for each other if the response must be validated for
// each of them.
func (c *Cache) noteReuse(f *fetch, e *entry) {
	if now := c.now(); e.Control.NoCache || e.freshFor(now) <= 0 {
		c.hitForMiss.add(f.r.url, now, hitForMissTime)
	}
}

// share delivers a body that is arriving, to siblings as well, unless that is done. One that was begun beside another is
// delivered when it overtakes that.
func (c *Cache) share(f *fetch, res *result) {
	if f.result == nil && f.over.Load() == nil {
		c.deliver(f, res, fetchDelivers)
	}
}

const (
	unattendedRest = 16 << 20 // a body that no request waits for is only received if no more bytes than this are missing
	deliverSize    = 64 << 10 // bytes of a sibling's body that must arrive before any is delivered
)

// pump copies a body into the store. early means that it is delivered before much of it has come.
func (c *Cache) pump(f *fetch, res *result, early bool) error {
	buf := c.buffer()
	defer c.spare(buf)
	b, w := res.body, res.into
	for total, came := int64(0), false; ; {
		into := w.Free()
		if len(into) == 0 {
			into = buf
		}
		n, err := b.Read(into)
		total += int64(n)
		if !came && (err == io.EOF || total == res.length) {
			came = true
			c.replaced(f, res)
		}
		c.overtakes(f, total, err == io.EOF)
		if werr := w.Write(c.stopped, into[:n]); werr != nil {
			return werr
		}
		switch {
		case err == io.EOF:
			return w.End(nil)
		case err != nil:
			return err
		case early, total >= deliverSize:
			c.share(f, res)
		}
		if total > unattendedRest && (res.length < 0 || res.length-total > unattendedRest) && c.abandon(f) {
			return errUnattended
		}
	}
}

// replaced removes what a reload replaces, before its client has the last byte: whoever asks from then on gets nothing older,
// though the new version is not stored yet, or can't be.
func (c *Cache) replaced(f *fetch, res *result) {
	unwanted := f.r.reload() || f.stored != nil && f.stored.entry.freshFor(c.now()) > 0
	if unwanted && res.peer == "" && res.derived == nil && !c.late(res) && !c.outdated(f, res.entry.Response) {
		c.replacedBy(res.entry.Response, f.r.url, res.id, f.began.steady)
	}
}

// late reports whether the origin has sent what is stored after it sent this answer.
func (c *Cache) late(res *result) bool {
	now := c.describe(c.store.Peek(res.id))
	if now == nil || now.entry.given != nil {
		return false
	}
	d, known := now.entry.received.since(res.entry.received)
	return known && d > 0
}

// complete ends a fetch whose body has arrived: it is delivered, and then stored.
func (c *Cache) complete(f *fetch, res *result) {
	res.body.end(io.EOF)
	f.over.Store(nil)
	c.share(f, res)
	if f.here { // the client gets it first
		return
	}
	runtime.Gosched() // so that the clients get the rest before the disk is written to
	c.settle(f, res)
}

// settle ends a fetch whose body was delivered to its end.
func (c *Cache) settle(f *fetch, res *result) {
	c.commit(f, res)
	c.forget(f)
}

// brokeOff ends a body that no source can finish. If nothing of it was delivered, the next source is asked for the
// whole.
func (c *Cache) brokeOff(f *fetch, a *answer, res *result, err error) {
	w := res.into
	joined := res.body.end(err)
	overtaken := joined || errors.Is(err, errOvertaken)
	if f.result != nil || overtaken {
		c.forget(f) // first, so that a client that learns of it and asks again gets another fetch
	}
	if res.body.beside.fruitless >= maxFruitless {
		err = fmt.Errorf("%w: %w", errStandsStill, err)
	}
	w.End(err)
	w.Abort()
	switch {
	case f.result != nil:
		c.become(f, fetchCut)
	case overtaken: // the requests that wait join the other fetch
		w.Release()
		c.fail(f, &result{}, context.Canceled)
	case a.sibling == nil: // it was begun beside a body
		w.Release()
		c.fail(f, &result{}, errNoBetter)
	default:
		w.Release()
		f.src.siblings.Broken(a.sibling)
		c.become(f, fetchAsks)
	}
}

// commit stores a received body with its entry, unless its URL was invalidated, or a later answer was stored meanwhile.
func (c *Cache) commit(f *fetch, res *result) {
	c.hints.Learn(f.r.url, res.fields)
	e := res.entry
	text := c.texts.Get().(*bytes.Buffer)
	defer c.texts.Put(text)
	m := c.metaOf(res, e, text)
	m.Copied = res.peer != ""
	late := c.late(res)
	m.Wanted = func() bool { return !late && !c.tooOld(f, res) }
	obj, err := res.into.Commit(m)
	if err != nil {
		c.become(f, fetchUnstored)
		if !errors.Is(err, bodies.ErrUnwanted) {
			c.log.Warn("cannot store a response", "url", f.r.url, "error", err)
		}
		return
	}
	c.become(f, fetchStored)
	c.Stored.Add(1)
	if res.derived == nil { // otherwise the plain response is compared
		c.compareSome(f, obj, e)
	}
	if f.stored != nil && f.stored.obj.Key() != res.id {
		c.store.DeleteObject(f.stored.obj) // its successor varies by other fields
	}
}
