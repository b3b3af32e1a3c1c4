package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A large object is kept in slices: parts of [SliceSize] bytes, the last of which may be shorter, each an
// ordinary stored response with an identity of its own (gossip/PROTOCOL.md, section 15). So each is
// fetched, joined, advertised, asked of siblings, resumed, validated, evicted and invalidated by itself.
// A request looks for the whole response, and then for the slice with the first byte that it wants. That
// answers it, with the header of the whole; the slices after it are requests of the cache itself, one after
// another, whose bytes are sent as they arrive. The next [readAhead] are fetched meanwhile.
//
// Slices are put together if they have the same strong validator and length of the whole. So an object
// without such a validator, or whose origin sends something else than the bytes requested, is not sliced:
// for a time it is requested as it was before.
const (
	// SliceSize is the length of slices, in bytes.
	SliceSize = 1 << 20
	// DefaultLarge is the length in bytes from which objects are kept in slices.
	DefaultLarge = 8 << 20

	readAhead    = 2                // slices fetched beyond the one that is being sent
	sliceTries   = 3                // requests for a slice, at most, after the last byte that was sent
	maxUnsliced  = 16 << 10         // URLs of objects that can't be sliced
	unslicedTime = 10 * time.Minute // for which that is remembered
)

var (
	// errSliced ends the fetch of a whole object that turned out to be large.
	errSliced = errors.New("cache: the object is fetched in slices")
	// errUnsliced ends the fetch of a slice whose answer can't be stored as one.
	errUnsliced = errors.New("cache: the object can't be fetched in slices")
	// errVersion ends an answer whose next slice belongs to another version.
	errVersion = errors.New("cache: the object has changed, and its rest belongs to another version")
)

// A span says which bytes of a whole a slice has. The zero value is that of a whole.
type span struct{ first, size int64 } // size = that of the whole

// contentRange returns the Content-Range of a slice of n bytes.
func (s span) contentRange(n int64) string {
	return "bytes " + strconv.FormatInt(s.first, 10) + "-" + strconv.FormatInt(s.first+n-1, 10) + "/" + strconv.FormatInt(s.size, 10)
}

// whole returns the length of the whole response of which n bytes are stored under the entry.
func (e *entry) whole(n int64) int64 {
	if e.of.size > 0 {
		return e.of.size
	}
	return n
}

// here returns what of part p of the whole is among n stored bytes. It isn't ok if the first byte of p
// is not: then p begins in another slice.
func (e *entry) here(p rfc9111.Part, n int64) (_ rfc9111.Part, ok bool) {
	if e.of.size == 0 || p.Length <= 0 {
		return p, true
	}
	p.Offset -= e.of.first
	if planted.Fault == "slice-edge" && p.Offset == 0 && e.of.first > 0 {
		p.Offset++
	}
	p.Length = min(p.Length, n-p.Offset)
	return p, p.Offset >= 0 && p.Length > 0
}

// begins reports whether the answer to r begins in the slice that e describes, of n bytes. If it does
// not, r.aim is the slice where it does.
func (r *request) begins(e *entry, n int64) bool {
	p := e.PartFor(r.Request, e.whole(n))
	_, ok := e.here(p, n)
	if !ok {
		r.aim = p.Offset/SliceSize + 1
	}
	return ok
}

// rangeStart returns the first byte of a Range of one part; -1 = it names the last bytes. It isn't ok if
// there is no such field.
func rangeStart(h http.Header) (first int64, ok bool) {
	lines := h["Range"]
	if len(lines) != 1 {
		return 0, false
	}
	unit, set, _ := strings.Cut(lines[0], "=")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") || strings.Contains(set, ",") {
		return 0, false
	}
	from, to, found := strings.Cut(strings.TrimSpace(set), "-")
	if from == "" && to != "" {
		return -1, found
	}
	first, err := strconv.ParseInt(from, 10, 64)
	return first, found && err == nil && first >= 0
}

// slice returns the number, from 1, of the slice that answers r first if no whole response is stored;
// 0 = r is not answered by slices. Without a Range it is, if the first slice is stored or the object is known
// to be large.
func (c *Cache) slice(r *request) int64 {
	first, part := rangeStart(r.Header)
	part = part && r.Method == http.MethodGet
	known := c.large.has(r.url, r.now)
	if !part && !known && !c.variants.Has(r.url) {
		return 0
	}
	large := c.slicedFrom(r)
	switch {
	case large == 0:
		return 0
	case r.aim > 0:
		return r.aim
	case part:
		return 1 + max(0, first)/SliceSize
	case known:
		return 1
	}
	of := *r
	of.slice = 1
	for _, fields := range append([][]string{nil}, c.variants.Rules(r.url)...) {
		if obj, ok := c.store.Peek(of.identity(fields)); ok {
			if about, err := c.store.Describe(obj); err == nil && about.Value().(*entry).of.size >= large {
				return 1
			}
		}
	}
	return 0
}

// slicedFrom returns the length from which the object that r requests is kept in slices; 0 = it is not.
func (c *Cache) slicedFrom(r *request) int64 {
	if r.cc.NoStore || r.Header["Authorization"] != nil || c.hitForMiss.has(r.url, r.now) || c.unsliced.has(r.url, r.now) || c.isDerived(r) {
		return 0
	}
	if c.cfg.Large == nil {
		return DefaultLarge
	}
	return c.cfg.Large(r.Request)
}

// sliceRange returns the bytes of slice number n, counted from 1.
func sliceRange(n int64) (first, last int64) { return (n - 1) * SliceSize, n*SliceSize - 1 }

// ofSlice adds the fields to conditions that request a slice.
func ofSlice(n int64, conditions http.Header) http.Header {
	first, last := sliceRange(n)
	h := maps.Clone(conditions)
	if h == nil {
		h = http.Header{}
	}
	h["Range"] = []string{"bytes=" + strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(last, 10)}
	return h
}

// misfit reports whether an answer can't be used as that to a request for a slice. A 206 that can is described
// as a 200 from then on, of which it has a part. If it has all of the body, or the answer is a 200 or
// concerns the whole for another reason, the fetch is one of the whole.
func (c *Cache) misfit(f *fetch, a *answer) bool {
	r := &f.r
	if r.slice == 0 || a.status == http.StatusNotModified || a.status >= http.StatusInternalServerError {
		return false
	}
	first, to, size := a.span()
	switch {
	case a.status == http.StatusOK:
		if r.slice = 0; a.sibling == nil && (a.length < 0 || a.length > SliceSize) {
			c.unsliced.add(r.url, c.now(), unslicedTime)
		}
		return false
	case a.status == http.StatusPartialContent && size >= 0 && (a.length < 0 || a.length == to-first):
		from, last := sliceRange(r.slice)
		h := maps.Clone(a.header)
		delete(h, "Content-Range")
		if h["Accept-Ranges"] == nil { // nginx says so in answers of status 200 alone
			h["Accept-Ranges"] = []string{"bytes"}
		}
		described := rfc9111.NewResponse(http.StatusOK, h, a.delay, a.received.wall)
		obstacle := r.obstacle(described)
		if obstacle == rfc9111.RequestObstacle { // what finish wants is not stored, and goes to one client
			obstacle = 0
		}
		if all := first == 0 && to == size; obstacle == 0 && (all || described.StrongValidator() != "" && first == from && to == min(last+1, size)) {
			if all {
				r.slice, a.status, a.header = 0, http.StatusOK, h
			}
			a.described, a.length = described, to-first
			return false
		}
		if obstacle != 0 && a.sibling == nil {
			c.hitForMiss.add(r.url, c.now(), hitForMissTime)
		}
	case a.status != http.StatusPartialContent:
		if _, ok := rangeStart(r.Header); ok {
			return false // an error that concerns the client's range, too
		}
	}
	if a.sibling == nil {
		c.unsliced.add(r.url, c.now(), unslicedTime)
	}
	return true
}

// tooLarge reports whether the origin's answer to a request for a whole object shows that this should be
// requested in slices.
func (c *Cache) tooLarge(f *fetch, a *answer) bool {
	if a.sibling != nil || a.derived != nil || a.status != http.StatusOK || a.length <= SliceSize || f.part || f.r.slice > 0 {
		return false
	}
	large := c.slicedFrom(&f.r)
	return large > 0 && a.length >= large && strings.EqualFold(a.header.Get("Accept-Ranges"), "bytes") && a.response().StrongValidator() != "" &&
		c.mayStore(f, a)
}

// sliceElsewhere reports whether a digest says that a sibling has the first slice of the object that f
// requests as a whole. It is used if the origin fails, since it would cost each miss a lookup, and some
// a false hit.
func (c *Cache) sliceElsewhere(f *fetch) bool {
	if f.r.slice > 0 || f.part || f.sources.siblings == nil || c.slicedFrom(&f.r) == 0 {
		return false
	}
	q := f.sources.request
	first := f.r
	first.slice = 1
	q.Identities = c.identities(&first)[:1]
	if c.cfg.Siblings.Lookup(q).Left() == 0 {
		return false
	}
	c.large.add(f.r.url, c.now(), largeTime)
	return true
}

// mayBegin returns what of part p of an answer to r is among the n stored bytes that e describes. It isn't ok
// if the answer begins in another slice, or must not begin since all of it must be stored.
func (c *Cache) mayBegin(w http.ResponseWriter, r *request, e *entry, p rfc9111.Part, n int64) (here rfc9111.Part, ok bool) {
	here, ok = e.here(p, n)
	switch {
	case !ok:
		r.aim = p.Offset/SliceSize + 1
	case here.Length < p.Length && r.Method != http.MethodHead:
		ok = !atOnce(w) && (!r.cc.OnlyIfCached || c.holdsAfter(r, e, p))
	}
	return here, ok
}

// firstSlice makes the answer to a request for a whole the answer to one for its first slice.
func firstSlice(a *answer) *answer {
	n := min(a.length, SliceSize)
	a.header = maps.Clone(a.header)
	a.header["Content-Range"] = []string{span{0, a.length}.contentRange(n)}
	a.body = closing{io.LimitReader(a.body, n), a.body}
	a.status, a.length, a.described = http.StatusPartialContent, n, nil
	return a
}

// after sends what follows the slice that an answer began with: the rest of the part p of the whole that e
// describes, of which res.Bytes were sent. Its loop ends: each round sends bytes, or is one of the last
// [sliceTries] without.
func (c *Cache) after(w io.Writer, r *request, e *entry, p rfc9111.Part, res *Result) {
	end := p.Offset + p.Length
	origin := false
	for tries := 1; res.Err == nil && res.Bytes < p.Length; tries++ {
		at := p.Offset + res.Bytes
		n := at/SliceSize + 1
		for next := n + 1; next <= n+readAhead && (next-1)*SliceSize < end; next++ {
			c.ahead(r, next)
		}
		s := &slot{to: w, e: e, first: at, end: min(end, n*SliceSize), header: http.Header{}}
		q := r.slicePart(s.first, s.end)
		q.slice, q.origin = n, origin
		q.cc.NoStore = tries > 1 // the disk may be full, or bad: then this client alone gets the bytes
		held, _ := c.choose(q)
		if held != nil && (origin || !c.refresh(held, e)) {
			c.store.DeleteObject(held.obj)
		}
		got := c.get(s, q)
		if res.Bytes += s.sent; s.sent > 0 {
			tries = 0
		}
		switch {
		case r.Context().Err() != nil:
			res.Err = context.Cause(r.Context())
		case s.failed != nil: // the client
			res.Err = s.failed
		case s.first+s.sent == s.end:
		case s.differs && (origin || got.Outcome == OriginFetch):
			c.dropSlices(r.url, e)
			res.Err = errVersion
		case tries >= sliceTries:
			res.Err = cmp.Or(got.Err, io.ErrUnexpectedEOF)
		default:
			origin = s.differs // what is stored, or a sibling has, is of another version
		}
	}
}

// slicePart returns a request of the cache itself for the bytes from first to end, exclusive, which are in one
// slice, for the client of r.
func (r *request) slicePart(first, end int64) *request {
	q := asNobody(r)
	q.Request = q.WithContext(r.Context())
	q.Header["Range"] = []string{"bytes=" + strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(end-1, 10)}
	q.cc.OnlyIfCached = r.cc.OnlyIfCached
	return q
}

// ahead fetches a slice that is not stored, unless it is being fetched.
func (c *Cache) ahead(r *request, n int64) {
	q := asNobody(r)
	if q.slice = n; r.cc.OnlyIfCached {
		return
	}
	if held, _ := c.choose(q); held == nil {
		c.fetchUnasked(q, c.fetchKey(q, nil, nil), nil)
	}
}

// refresh reports whether a stored slice has the version that e describes. If it is stale and e is fresh, it is
// fresh, too: what confirms a response with a strong validator confirms all that have it (RFC 9111
// section 4.3.4).
func (c *Cache) refresh(held *found, e *entry) bool {
	if !held.entry.sameVersion(e) {
		return false
	}
	now := c.now()
	if held.entry.freshFor(now) > 0 || e.freshFor(now) <= 0 || held.entry.overdue(now) || e.given != nil {
		return true
	}
	fresh := newEntry(e.Response, e.received, c.via)
	fresh.of, fresh.given = held.entry.of, held.entry.given
	c.store.Update(held.obj, c.meta(&fresh, new(bytes.Buffer)))
	return true
}

// sameVersion reports whether two slices, or a slice and a whole, belong together.
func (e *entry) sameVersion(o *entry) bool {
	return planted.Fault == "slice-of-version" || e.of.size == o.of.size && e.SameBytes(o.Response) && e.StrongValidator() != ""
}

// holdsAfter reports whether all slices of part p are stored, in the version that e describes: a request that
// must be answered from the store is answered with all of it or not at all.
func (c *Cache) holdsAfter(r *request, e *entry, p rfc9111.Part) bool {
	q := *r
	for q.slice = p.Offset/SliceSize + 1; (q.slice-1)*SliceSize < p.Offset+p.Length; q.slice++ {
		held, _ := c.choose(&q)
		if held == nil || !held.entry.sameVersion(e) || held.entry.freshFor(r.now) <= 0 {
			return false
		}
	}
	return true
}

// dropSlices removes the slices of a version that the origin has replaced.
func (c *Cache) dropSlices(url string, e *entry) {
	for _, id := range c.variants.Identities(url) {
		if held := c.peek(id); held != nil && rfc9111.IsSlice(id) && held.entry.sameVersion(e) {
			c.store.DeleteObject(held.obj)
		}
	}
}

// A slot receives the bytes of a slice for an answer that was begun, if they belong to it. It
// implements [Refusable].
type slot struct {
	to         io.Writer
	e          *entry // the version
	first, end int64
	header     http.Header
	status     int
	differs    bool  // the answer is of another version
	whole      bool  // it is all of this version, since it could be neither stored nor requested in slices
	skip       int64 // bytes of that before first
	sent       int64 // bytes
	failed     error // of to
}

func (s *slot) Header() http.Header { return s.header }
func (s *slot) Refused()            {}

func (s *slot) WriteHeader(status int) {
	if status >= 200 && s.status == 0 {
		s.status = status
		fits := status == http.StatusPartialContent && (planted.Fault == "slice-of-version" || s.e.HasRest(s.header, s.first, s.end, s.e.of.size))
		if length := s.header.Get("Content-Length"); status == http.StatusOK && (length == "" || length == strconv.FormatInt(s.e.of.size, 10)) {
			s.whole = s.e.StrongValidator() != "" && s.e.SameBytes(rfc9111.NewResponse(status, s.header, 0, time.Now()))
			s.skip = s.first
		}
		s.differs = !fits && !s.whole && status < http.StatusInternalServerError
	}
}

// useless reports whether nothing that is written belongs to the answer.
func (s *slot) useless() bool {
	return !s.whole && (s.status != http.StatusPartialContent || s.differs)
}

// errEnough ends the answer with a whole when the slot has its bytes.
var errEnough = errors.New("cache: the rest is not wanted")

func (s *slot) Write(p []byte) (n int, err error) {
	if s.useless() {
		return 0, errVersion
	}
	all := len(p)
	before := min(int64(all), s.skip)
	s.skip -= before
	p = p[before:]
	p = p[:min(int64(len(p)), s.end-s.first-s.sent)]
	if n, err = s.to.Write(p); err != nil {
		s.sent, s.failed = s.sent+int64(n), err
		return n, err
	}
	if s.sent += int64(n); s.whole && s.first+s.sent == s.end {
		return all, errEnough
	}
	return all, nil
}

// ReadFrom is used for stored bodies.
func (s *slot) ReadFrom(body io.Reader) (n int64, err error) {
	if s.useless() {
		return 0, errVersion
	}
	if s.whole {
		return io.Copy(struct{ io.Writer }{s}, body)
	}
	if to, ok := s.to.(io.ReaderFrom); ok {
		n, err = to.ReadFrom(body)
	} else {
		n, err = io.Copy(s.to, body)
	}
	if s.sent += n; !unread(err) {
		s.failed = err
	}
	return n, err
}

func (s *slot) Flush() {
	if w, ok := s.to.(http.ResponseWriter); ok {
		http.NewResponseController(w).Flush()
	}
}
