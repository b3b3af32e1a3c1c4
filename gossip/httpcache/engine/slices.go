package engine

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

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
	maxUnsliced  = 16 << 10         // URLs of objects that can't be sliced
	unslicedTime = 10 * time.Minute // for which that is remembered
)

var (
	// errSliced ends the fetch of a whole object of which siblings have slices.
	errSliced = errors.New("cache: the object is fetched in slices")
	// errUnsliced ends the fetch of a slice whose answer can't be stored as one.
	errUnsliced = errors.New("cache: the object can't be fetched in slices")
	// errVersion ends an answer whose next slice belongs to another version.
	errVersion = errors.New("cache: the object has changed, and its rest belongs to another version")
)

// A place says which bytes of a whole a slice has. The zero value is that of a whole.
type place struct{ first, size int64 } // size = that of the whole

// whole returns the length of the whole response of which n bytes are stored under the entry.
func (e *entry) whole(n int64) int64 {
	if e.of.size > 0 {
		return e.of.size
	}
	return n
}

// here returns what of part p of the whole is among the n stored bytes that e describes. It isn't ok if the first byte
// of p is not: then r begins in another slice.
func (r *request) here(e *entry, p rfc9111.Part, n int64) (_ rfc9111.Part, ok bool) {
	if e.of.size == 0 || p.Length <= 0 {
		return p, true
	}
	at := p.Offset - e.of.first
	if at < 0 || at >= n {
		r.startSlice = p.Offset/SliceSize + 1
		return p, false
	}
	p.Offset, p.Length = at, min(p.Length, n-at)
	return p, true
}

// begins reports whether the answer to r begins in the slice that e describes, of n bytes.
func (r *request) begins(e *entry, n int64) bool {
	_, ok := r.here(e, e.PartFor(r.Request, e.whole(n)), n)
	return ok
}

// slice returns the number, from 1, of the slice that answers r first if no whole response is stored;
// 0 = r is not answered by slices. Without a Range it is, if the first slice is stored or the object is known
// to be large.
func (c *Cache) slice(r *request) int64 {
	first, part := rfc9111.RangeStart(r.Header)
	part = part && r.Method == http.MethodGet
	known := c.large.has(r.url, r.now)
	if !part && !known && !c.variants.Has(r.url) {
		return 0
	}
	large := c.slicedFrom(r)
	switch {
	case large == 0:
		return 0
	case r.startSlice > 0:
		return r.startSlice
	case part:
		return 1 + max(0, first)/SliceSize
	case known:
		return 1
	}
	of := *r
	of.slice = 1
	if held, _ := c.chooseBy(&of, c.store.Peek); held != nil && held.entry.of.size >= large {
		return 1
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

// otherThanSlice reports whether an answer can't be used as that to a request for a slice. A 206 that can is described
// as a 200 from then on, of which it has a part. If it has all of the body, or the answer is a 200 or
// concerns the whole for another reason, the fetch is one of the whole.
func (c *Cache) otherThanSlice(f *fetch, a *answer) bool {
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
		for _, name := range []string{"Content-Range", "Content-Digest", "Content-Md5"} { // they are of the part
			delete(h, name)
		}
		if h["Accept-Ranges"] == nil { // nginx says so in answers of status 200 alone
			h["Accept-Ranges"] = []string{"bytes"}
		}
		described := rfc9111.NewResponse(http.StatusOK, h, a.delay, a.received.wall)
		obstacle := r.obstacle(described)
		if obstacle == rfc9111.RequestObstacle { // what the rest of an answer asks for is not stored, and goes to one client
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
		if _, ok := rfc9111.RangeStart(r.Header); ok {
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
	if a.sibling != nil || a.derived != nil || a.status != http.StatusOK || a.length <= SliceSize || f.r.slice > 0 {
		return false
	}
	large := c.slicedFrom(&f.r)
	return large > 0 && a.length >= large && strings.EqualFold(a.header.Get("Accept-Ranges"), "bytes") && !c.unsliced.has(f.r.URL.Host, c.now()) && a.response().StrongValidator() != "" &&
		c.mayStore(f, a)
}

// sliceElsewhere reports whether a digest says that a sibling has the first slice of the object that f
// requests as a whole. It is used if the origin fails, since it would cost each miss a lookup, and some
// a false hit.
func (c *Cache) sliceElsewhere(f *fetch) bool {
	if f.r.slice > 0 || f.src.siblings == nil || c.slicedFrom(&f.r) == 0 {
		return false
	}
	q := f.src.request
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
func (c *Cache) mayBegin(r *request, e *entry, p rfc9111.Part, n int64) (here rfc9111.Part, ok bool) {
	if here, ok = r.here(e, p, n); ok && here.Length < p.Length && r.Method != http.MethodHead {
		ok = !r.cc.OnlyIfCached || c.holdsAfter(r, e, p)
	}
	return here, ok
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

// sameVersion reports whether two slices, or a slice and a whole, belong together.
func (e *entry) sameVersion(o *entry) bool {
	return e.of.size == o.of.size && e.SameBytes(o.Response) && e.StrongValidator() != ""
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
