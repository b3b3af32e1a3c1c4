package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A rest is what an answer lacks that was begun: its source broke off, the disk failed, the client was too slow for a body
// that passes through, or the answer began with a slice. The cache requests that of itself, as any client would, until
// the client has all of it. So an answer may have the bytes of several fetches, all of one version: by a strong validator,
// or since what was sent is compared with the beginning of what comes, by the checksums of its blocks.
type rest struct {
	c    *Cache
	to   io.Writer
	r    *request     // the client's
	of   *entry       // the version that was begun
	size int64        // of the whole; -1 = unknown
	plan rfc9111.Part // the bytes of the whole that the client gets; Length -1 = to the end
	res  Result       // with the number of bytes that it has

	from int64       // the byte of the whole at which sums begin
	sums bodies.Sums // of bytes that include those that were sent from there on

	next atomic.Int64        // the slice that is being sent
	kept map[int64]keptSlice // for this answer, by number; guarded by Cache.kept

	past   bool // neither the store nor another request's fetch is used: the disk may be full or bad, the client slow
	origin bool // no sibling is asked: one had another version
	inOne  bool // all that is left is requested at once, for this client alone
	tries  int  // rounds without a byte, at most; 0 = restTries
	final  bool // nobody has it
	err    error
}

const (
	restTries     = 3 // rounds without a byte, at most
	disagreeTime  = time.Minute
	disagreeTries = 8 // of those, where servers disagree: each may be answered by the one that has the version
)

// errClient wraps an error of the client.
var errClient = errors.New("cache: the client does not take its answer")

// unread reports whether a body could not be read from the store, though another source may have it.
func unread(err error) bool {
	return errors.Is(err, bodies.ErrCorrupt) || errors.Is(err, bodies.ErrBehind)
}

// restOf returns the rest of an answer to r with the part p of a whole, which began with n bytes that e describes. sums are those
// of the n bytes, as far as they are known.
func (c *Cache) restOf(w io.Writer, r *request, e *entry, n int64, p rfc9111.Part, res Result, sums bodies.Sums) *rest {
	own := *r // so that r, of which most answers have no rest, need not be on the heap
	r.open = nil
	return &rest{c: c, to: w, r: &own, of: e, size: e.whole(n), plan: p, res: res, from: e.of.first, sums: sums}
}

func (g *rest) at() int64 { return g.plan.Offset + g.res.Bytes }

// goOn sends the rest. A sibling gets none that is not stored, since it finds another source itself. The loop ends: each
// round sends bytes, or is one of the last few without.
func (g *rest) goOn() Result {
	defer g.release()
	if g.r.cc.OnlyIfCached && g.res.Err != nil {
		return g.res
	}
	why := g.res.Err
	broke := why != nil
	if to, ok := g.to.(http.Flusher); ok && broke { // the client has what was sent, whatever comes
		to.Flush()
	}
	g.past = errors.Is(why, bodies.ErrBehind)
	if g.sliced() {
		g.next.Store(g.at() / SliceSize)
		g.c.kept.add(g)
		defer g.c.kept.remove(g)
	}
	for tries := 1; ; tries++ {
		if errors.Is(why, errStandsStill) {
			break
		}
		before := g.res.Bytes
		why = g.round(tries)
		if g.res.Bytes > before {
			tries = 0
		}
		switch {
		case why == nil && (g.plan.Length < 0 || g.res.Bytes == g.plan.Length):
			if g.res.Err = nil; broke {
				g.c.BodiesResumed.Add(1)
			}
			return g.res
		case why == nil:
			continue
		case g.r.Context().Err() != nil:
			g.res.Err = context.Cause(g.r.Context())
			return g.res
		case errors.Is(why, errClient):
			g.res.Err = errors.Unwrap(why)
			return g.res
		}
		broke = true
		switch {
		case tries >= max(g.tries, restTries), g.r.cc.OnlyIfCached, g.final:
		case unread(why):
			if !g.past { // no source was asked
				g.past, g.inOne, tries = true, g.sliced(), tries-1
			}
			continue
		default:
			continue
		}
		break
	}
	g.res.Err = why
	g.c.BodiesCut.Add(1)
	g.c.log.Info("no source could finish a body", "url", g.r.url, "error", why)
	return g.res
}

func (g *rest) sliced() bool { return g.of.of.size > 0 }

// round sends what one source has of the rest.
func (g *rest) round(tries int) error {
	c, q, end := g.c, asNobody(g.r), g.plan.Offset+g.plan.Length
	q.Request = q.WithContext(g.r.Context())
	q.cc.OnlyIfCached = g.r.cc.OnlyIfCached
	q.alone = g.origin || errors.Is(g.err, bodies.ErrGone) // a fetch that is over, and whose body is gone, may be joined again and again
	q.origin, q.open = g.origin || tries > 1, g.r.open
	switch {
	case g.inOne && g.r.open.left() && g.r.open.at <= g.at():
		return g.copy(g.r.open, g.r.open.at, g.r.open.length)
	case g.inOne:
		return g.allLeft(q)
	case g.sliced():
		q.slice = g.at()/SliceSize + 1
		if g.next.Store(q.slice); tries == 1 {
			if s, ok := c.kept.take(g, q.slice); ok {
				return g.takeFrom(s.held, s.view)
			}
		}
		for next := q.slice + 1; next <= q.slice+readAhead && (next-1)*SliceSize < end; next++ {
			c.ahead(g.r, next)
		}
		fallthrough
	default:
		q.cc.NoStore = g.past
		q.cc.NoCache = g.past && tries >= restTries
	}
	v := &walk{c: c, r: *q, rest: g}
	g.err = nil
	v.run(g.look)
	return cmp.Or(g.err, v.res.Err)
}

// look sends from the store, if that has the version.
func (g *rest) look(v *walk) step {
	c, q := g.c, &v.r
	if !q.cc.NoStore {
		held, _ := c.choose(q)
		if held == nil && q.slice > 0 {
			held, _ = c.choose(q.whole())
		}
		switch {
		case held == nil, c.discredited(held.entry):
		case g.fits(held.entry.Response, held.entry.of, held.obj.Size()):
			g.refresh(held)
			g.err = g.takeStored(held)
			if d, _ := g.of.received.since(held.entry.received); g.err != errVersion || d <= 0 && held.entry.given == nil {
				return nil
			} // otherwise it only looked the same, and is the version before
		case held.entry.of.size > 0: // what is left of another version
			c.keep(q.url)
			c.store.DeleteObject(held.obj)
		}
	}
	if q.cc.OnlyIfCached {
		g.err = bodies.ErrGone
		return nil
	}
	return join
}

// fits reports whether a response has the version that was begun, by its header. of says where it is in the whole, and
// length is that of its body.
func (g *rest) fits(resp *rfc9111.Response, of place, length int64) bool {
	if of.size > 0 {
		length = of.size
	}
	mine := representation{g.of.Response, g.size}
	if g.of.StrongValidator() == "" || !g.sliced() && g.at() <= g.from+g.sums.Size {
		return g.at() <= g.from+g.sums.Size && mine.same(representation{resp, length})
	}
	ok := mine.SameBytes(resp) && (length < 0 || g.size < 0 || length == g.size)
	if ok {
		g.release()
	}
	return ok
}

// release closes the origin's first answer, which is not needed any more.
func (g *rest) release() {
	g.r.open.release()
	g.r.open = nil
}

// send sends what a fetch has brought.
func (g *rest) send(v *walk, got *result) {
	switch a := got.answer; {
	case got.err == errUnsliced, got.err == errSliced, got.entry != nil && got.entry.of.size > 0 && !g.sliced():
		g.past, g.inOne = true, g.sliced()
		g.err, g.tries = cmp.Or(got.err, errSliced), disagreeTries
	case got.err != nil:
		g.err = got.err
	case got.obj != nil && g.fits(got.entry.Response, got.entry.of, got.obj.obj.Size()):
		g.err = g.takeStored(got.obj)
	case got.into != nil && g.fits(got.entry.Response, got.entry.of, got.length):
		body, ok := got.into.Follow(g.r.Context())
		if !ok {
			g.err = bodies.ErrGone
			return
		}
		defer body.Close()
		end := got.length
		if end >= 0 {
			end += got.entry.of.first
		}
		first := got.entry.of.first
		g.err = g.copy(body, first, end)
		if g.err != errVersion {
			g.know(first, body.Sums())
		}
	case a != nil && a.status != http.StatusPartialContent && g.fits(a.response(), place{}, a.bodyLength()):
		g.err = g.copy(a.body, 0, a.length)
	default:
		g.err = errVersion
	}
	if !v.joined {
		got.close()
	}
	if errors.Is(g.err, errVersion) {
		g.differs(v.f)
	}
}

// allLeft requests all that is left from the origin at once, and sends it.
func (g *rest) allLeft(q *request) error {
	src := &sources{c: g.c, f: &fetch{r: *q}} // without siblings
	last := strconv.FormatInt(g.plan.Offset+g.plan.Length-1, 10)
	a, err := src.next(g.r.Context(), http.Header{"Range": {"bytes=" + strconv.FormatInt(g.at(), 10) + "-" + last}, "If-Range": {g.of.StrongValidator()}})
	if err != nil {
		return err
	}
	g.c.pace(a)
	defer a.close()
	first, end, _ := a.span()
	switch {
	case first > g.at(), a.status == http.StatusPartialContent && (end <= g.at() || !g.of.HasRest(a.header, first, end, g.size)):
		return errVersion
	case a.status != http.StatusPartialContent && !g.fits(a.response(), place{}, a.bodyLength()):
		return errVersion
	}
	return g.copy(a.body, first, end)
}

// differs notes that a source has another version. If it is a sibling, the origin is asked next. If the origin's first
// answer is still open, or another of its servers may have the version, that is asked for all that is left.
func (g *rest) differs(f *fetch) {
	c, got := g.c, f.result
	if !g.origin && got.peer != "" {
		g.origin = true
		return
	}
	switch {
	case !g.sliced():
		g.final = true
	case g.tries == 0:
		g.inOne, g.tries = true, disagreeTries
		c.disagreed(g.r)
	}
}

// takeStored sends what a stored response has of the rest.
func (g *rest) takeStored(held *found) error {
	view, err := g.c.store.Open(held.obj, held.about)
	if err != nil {
		return err
	}
	return g.takeFrom(held, view)
}

// takeFrom sends what a stored response has of the rest, and closes its view.
func (g *rest) takeFrom(held *found, view bodies.View) error {
	defer view.Close()
	first, n := held.entry.of.first, held.obj.Size()
	if at := g.at() - first; g.compares(first) {
		body, err := view.Source(0, n)
		if err != nil {
			return err
		}
		if err = g.copy(body, first, first+n); !errors.Is(err, errVersion) {
			g.know(first, view.Sums())
		}
		return err
	} else if n -= at; n > 0 {
		n = g.upTo(n)
		body, err := view.Source(at, n)
		if err != nil {
			return err
		}
		done, err := g.c.writeBody(g.to, g.r, body, n)
		if g.res.Bytes += done; err != nil && err != io.ErrUnexpectedEOF && !unread(err) {
			return fmt.Errorf("%w: %w", errClient, err)
		}
		g.from, g.sums = first, view.Sums()
		return err
	}
	return errVersion
}

// know takes the checksums of a body that has the version, from byte first of the whole on, unless those that are known say more.
func (g *rest) know(first int64, sums bodies.Sums) {
	if first != g.from || sums.Size > g.sums.Size {
		g.from, g.sums = first, sums
	}
}

// upTo returns how many of the n next bytes the client gets; -1 = all, however many there are.
func (g *rest) upTo(n int64) int64 {
	if left := g.plan.Length - g.res.Bytes; g.plan.Length >= 0 && (n < 0 || left < n) {
		return left
	}
	return n
}

// compares reports whether there are sent bytes that a body which begins at byte first of the whole must be compared with.
func (g *rest) compares(first int64) bool {
	return first <= g.from && g.at() > g.from && g.at() <= g.from+g.sums.Size
}

// A source notes whether reading it failed.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != io.EOF {
		s.err = err
	}
	return n, err
}

// Ready reports whether Read returns without waiting; false = unknown.
func (s *source) Ready() bool {
	r, ok := s.Reader.(interface{ Ready() bool })
	return ok && r.Ready()
}

// copy sends what a body has of the rest. It begins at byte first of the whole and ends before byte end, -1 = unknown.
func (g *rest) copy(body io.Reader, first, end int64) error {
	from := &source{Reader: body}
	var in interface {
		io.Reader
		Ready() bool
	} = from
	skip := g.at() - first
	if g.compares(first) {
		if _, err := io.CopyN(io.Discard, from, g.from-first); err != nil {
			return cmp.Or(from.err, io.ErrUnexpectedEOF)
		}
		in, skip = g.sums.Check(from, 0, math.MaxInt64), g.at()-g.from
	}
	_, err := io.CopyN(io.Discard, in, skip)
	if err == nil {
		n := int64(-1)
		if end >= 0 {
			n = end - g.at()
		}
		n, err = g.c.copyArriving(g.to, in, g.upTo(n), func() {})
		g.res.Bytes += n
	}
	switch {
	case err == nil:
		return nil
	case from.err != nil:
		return from.err
	case errors.Is(err, bodies.ErrDiffers) && !errors.Is(err, io.ErrUnexpectedEOF):
		return errVersion
	case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", errClient, err)
}

// refresh makes a stored slice fresh if it is stale and the version that was begun is fresh: what confirms a response with a
// strong validator confirms all that have it (RFC 9111 section 4.3.4). The first slice that fits ends the wait for that.
func (g *rest) refresh(held *found) {
	c, e := g.c, g.of
	now := c.now()
	if held.entry.freshFor(now) > 0 || e.freshFor(now) <= 0 || held.entry.overdue(now) || e.given != nil || held.entry.of.size == 0 {
		return
	}
	c.store.Update(held.obj, c.meta(held.entry.renewed(e.Response, e.received, c.via), new(bytes.Buffer)))
}

// disagreed notes that the origin gave two versions of an object: it is not kept in slices for a time, and no further object
// of the same host for a shorter one.
func (c *Cache) disagreed(r *request) {
	now := c.now()
	c.unsliced.add(r.url, now, unslicedTime)
	c.unsliced.add(r.URL.Host, now, disagreeTime)
	for _, id := range c.variants.Identities(r.url) {
		if rfc9111.IsSlice(id) {
			c.retire(id, false)
		}
	}
}
