package engine

import (
	"net/http"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A request is a GET or HEAD on its way through the cache.
type request struct {
	*http.Request        // with an absolute URL and without connection fields
	plain         string // the identity of a response that does not vary
	url           string // canonical; the end of plain
	cc            rfc9111.Directives
	now           moment // its arrival, or the end of its latest wait

	slice      int64    // it is for this slice, counted from 1; 0 = for the whole
	startSlice int64    // the slice in which its answer begins, once that is known; 0 = it is not
	origin     bool     // no sibling is asked
	alone      bool     // it joins no fetch
	fields     []string // those that select the variant, if an answer has shown that; nil = they are guessed
	open       *opened  // the origin's answer with all of the object, of which a slice is requested; nil = none
}

func (c *Cache) request(r *http.Request) request {
	q := request{Request: r, plain: rfc9111.PlainIdentity(r.URL), cc: rfc9111.RequestDirectives(r.Header), now: c.now()}
	_, q.url, _ = strings.Cut(q.plain, " ")
	return q
}

// variant returns the identity of a whole response to r that varies by these fields.
func (r *request) variant(fields []string) string {
	if len(fields) > 0 {
		return rfc9111.Identity(r.url, fields, r.Header)
	}
	return r.plain
}

// identity returns the identity of a response to r that varies by these fields, or of the slice of it that r is for.
func (r *request) identity(fields []string) string {
	id := r.variant(fields)
	if r.slice > 0 {
		id = rfc9111.SliceIdentity(id, (r.slice-1)*SliceSize, r.slice*SliceSize-1)
	}
	return id
}

// whole returns r as a request for the whole response.
func (r *request) whole() *request {
	q := *r
	q.slice = 0
	return &q
}

// reload reports whether nothing will do but what the origin has now (RFC 9111 section 5.2.1). Browsers send either.
func (r *request) reload() bool { return r.cc.NoCache || r.cc.MaxAge == 0 }

// obstacle returns why the response to r is not stored; 0 = it is.
func (r *request) obstacle(resp *rfc9111.Response) rfc9111.Obstacle {
	return resp.Obstacle(r.directives(resp), r.Header["Authorization"] != nil)
}

// mayStore reports whether the response to r may be stored.
func (r *request) mayStore(resp *rfc9111.Response) bool {
	return resp.Storable(r.directives(resp), r.Header["Authorization"] != nil)
}

// directives returns those that decide whether a response is stored.
func (r *request) directives(resp *rfc9111.Response) *rfc9111.Directives {
	if resp.Status != http.StatusBadRequest && resp.Status != http.StatusRequestURITooLong {
		return &r.cc
	}
	cc := r.cc
	cc.Blameless = rfc9111.Blameless(r.Request)
	return &cc
}

// unshared returns why what a 304 to r made of a stored response is for r alone; 0 = it is not. If
// it varies otherwise than before, its identity is another.
func (r *request) unshared(before, e *entry) rfc9111.Obstacle {
	switch {
	case !r.mayStore(e.Response):
		return r.obstacle(e.Response)
	case !slices.Equal(rfc9111.VaryFields(e.Header), rfc9111.VaryFields(before.Header)):
		return rfc9111.VaryObstacle
	}
	return 0
}

// found is a stored response.
type found struct {
	obj   bodies.Object
	entry *entry
	about bodies.Described // what was read of it; nil = nothing
}

// lookup returns the stored response that r selects or, if there is none, the slice of it that answers r
// first. It sets r.slice to the slice that is returned, or that must be fetched. If there is none either,
// miss says why.
func (c *Cache) lookup(r *request) (best *found, miss string) { return c.lookupBy(r, c.store.Get) }

// lookupBy is lookup with the store's Get or, if that is not to count as a use, Peek.
func (c *Cache) lookupBy(r *request, get func(string) (bodies.Object, bool)) (best *found, miss string) {
	r.slice = 0
	if best, miss = c.chooseBy(r, get); best != nil {
		return best, miss
	}
	for range 2 {
		if r.slice = c.slice(r); r.slice == 0 {
			break
		}
		if best, _ = c.chooseBy(r, get); best == nil || r.begins(best.entry, best.obj.Size()) {
			break
		}
		best = nil
	}
	return best, miss
}

// choose returns the stored response, or the slice, that r selects; of several, the one generated last
// (RFC 9111 section 4). One without Vary is for requests that select no other, since origins leave it out of errors and
// redirects (section 4.1). If there is none, miss says why.
func (c *Cache) choose(r *request) (best *found, miss string) { return c.chooseBy(r, c.store.Get) }

// chooseBy is choose with the store's Get or Peek.
func (c *Cache) chooseBy(r *request, get func(string) (bodies.Object, bool)) (best *found, miss string) {
	rules := c.variants.Rules(r.url)
	for _, fields := range rules {
		f := c.describe(get(r.identity(fields)))
		if f != nil && (best == nil || best.entry.Date.Before(f.entry.Date)) {
			best = f
		}
	}
	if best == nil {
		best = c.describe(get(r.identity(nil)))
	}
	if best == nil && len(rules) > 0 {
		return nil, "vary-miss"
	}
	return best, "uri-miss"
}

// reuse says how a stored response may be used for r and, if that is no hit, why.
func (e *entry) reuse(r *request) (use rfc9111.Use, reason string) {
	if e.overdue(r.now) {
		return rfc9111.Validate, "stale"
	}
	age := e.age(r.now)
	use, reason = e.Reuse(&r.cc, age)
	switch {
	case !r.cc.OnlyIfCached:
	case use == rfc9111.StaleWhileRevalidate:
		use = rfc9111.Validate // siblings validate themselves
	case use == rfc9111.Validate && r.cc.StaleIfError != rfc9111.Unset && e.StaleOnError(&r.cc, 0, age):
		use = rfc9111.ServeStale // for a sibling whose origin is down
	}
	return use, reason
}

// peek returns the response stored under an identity.
func (c *Cache) peek(id string) *found { return c.describe(c.store.Get(id)) }

// describe returns what is known of a stored response, if it is there; nil = it is not.
func (c *Cache) describe(obj bodies.Object, ok bool) *found {
	if !ok {
		return nil
	}
	about, err := c.store.Describe(obj)
	if err != nil {
		return nil
	}
	return &found{obj, about.Value().(*entry), about}
}

// identities returns the identities under which a sibling may list the response that r
// selects: by the fields that stored responses for the URL vary by or, if there are none, by likely
// ones. Identities by cookies are left out, since siblings never get a client's cookies
// and can't select by them.
func (c *Cache) identities(r *request) []string {
	rules := c.variants.Rules(r.url)
	ids := make([]string, 0, 2*(4+len(rules)))
	for _, fields := range rules {
		if !slices.Contains(fields, "Cookie") {
			ids = append(ids, r.identity(fields))
		}
	}
	ids = append(ids, r.identity(nil))
	if len(rules) == 0 {
		if r.slice == 0 && !c.hints.Known(r.url) {
			ids = append(ids, anyVariant(r.url))
		}
		for _, fields := range c.hints.Guesses(r.url) {
			if slices.Contains(fields, "Cookie") {
				continue
			}
			ids = append(ids, r.identity(fields))
		}
	}
	if r.slice > 0 && !c.large.has(r.url, r.now) { // nobody keeps a large one whole: it would cost a false hit for each slice
		ids = append(ids, c.identities(r.whole())...)
	}
	return ids
}

// anyVariant is advertised with each response that varies. With it, a cache that does not know yet
// by which fields the responses of a host vary finds a sibling that may have the right one.
func anyVariant(url string) string { return "GET " + url + "\n*" }

// withAnyVariant returns a function that calls tell with an identity, and also with anyVariant if
// the response varies. It does not do that for responses that vary by cookies, since siblings are
// not asked for them. Neither does it for those that vary as every cache guesses, which are most:
// digests would be twice as large for nothing. Nor for slices: their object is known.
func withAnyVariant(tell func(string)) func(string) {
	return func(identity string) {
		tell(identity)
		if rfc9111.IsSlice(identity) {
			return
		}
		if url, fields := rfc9111.SplitIdentity(identity); len(fields) > 0 && !slices.Contains(fields, "Cookie") && !rfc9111.AlwaysGuessed(fields) {
			tell(anyVariant(url))
		}
	}
}
