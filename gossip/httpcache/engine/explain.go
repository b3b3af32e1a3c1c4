package engine

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Verdict is how a request would be answered if it came now.
type Verdict string

const (
	WouldHit      Verdict = "hit"       // from the store, fresh
	WouldHitStale Verdict = "stale-hit" // from the store, stale, while it is validated
	WouldValidate Verdict = "validate"  // from the store, after a successful validation
	WouldRecode   Verdict = "recode"    // from the store, which has it without the content coding
	WouldFetch    Verdict = "fetch"     // by a sibling or the origin
	WouldPass     Verdict = "pass"      // by the origin: such requests are not answered from a cache
	WouldRefuse   Verdict = "refuse"    // 504: only-if-cached, and nothing is stored
)

// An Explanation says what the cache would do with a request, and why.
type Explanation struct {
	URL        string   `json:"url"` // canonical
	Verdict    Verdict  `json:"verdict"`
	Reason     string   `json:"reason"` // as in Cache-Status after fwd; "" = a hit
	Stored     []Stored `json:"stored"` // every response stored for the URL, all variants
	Identities []string `json:"-"`      // to look up in siblings' digests, likeliest first; none = siblings are not asked
}

// Stored describes a response in the store. The cache leaves Rule empty.
type Stored struct {
	Identity string `json:"identity"`
	Selected bool   `json:"selected"` // by the request
	Status   int    `json:"status"`
	Bytes    int64  `json:"bytes"` // of the body
	// Of a slice: where its bytes begin in the whole response, and how long that is; 0 = it is no slice.
	From  int64 `json:"from,omitempty"`
	Whole int64 `json:"whole,omitempty"`
	// The version: its validators from the origin, and when the origin made it.
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	Date         time.Time `json:"date"`

	Age      float64     `json:"age_seconds"`
	FreshFor float64     `json:"fresh_for_seconds"` // negative = for how long it has been stale
	Listed   bool        `json:"listed"`            // in this peer's digest
	Rule     string      `json:"rule,omitempty"`    // that gave it its lifetime; "" = the origin did
	Header   http.Header `json:"-"`                 // must not be changed
}

// Explain says what [Cache.Serve] would do with r. It changes nothing and does not count
// as a use of stored responses.
func (c *Cache) Explain(r *http.Request) Explanation {
	of := c.request(r)
	q := &of
	e := Explanation{URL: q.url, Verdict: WouldPass, Reason: "method", Stored: []Stored{}}
	best, miss := c.lookupBy(q, c.store.Peek)
	c.explainStored(q, &e)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return e
	case r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil:
		e.Reason = "bypass"
		return e
	}
	e.Verdict, e.Reason = WouldFetch, miss
	switch {
	case best != nil && c.discredited(best.entry):
		e.Verdict, e.Reason = WouldValidate, "stale"
	case best != nil:
		var use rfc9111.Use
		use, e.Reason = best.entry.reuse(q)
		e.Verdict = [...]Verdict{rfc9111.ServeFresh: WouldHit, rfc9111.ServeStale: WouldHitStale, rfc9111.StaleWhileRevalidate: WouldHitStale, rfc9111.Validate: WouldValidate}[use]
	}
	switch {
	case e.Verdict == WouldHit:
		return e
	case q.cc.OnlyIfCached && e.Verdict != WouldHitStale:
		e.Verdict = WouldRefuse
		return e
	case r.Method == http.MethodHead:
		if e.Verdict != WouldHitStale {
			e.Verdict = WouldPass
		}
		return e
	}
	if c.isDerived(q) {
		plain := r.Clone(r.Context())
		plain.Header["Accept-Encoding"] = []string{"identity"}
		from := c.Explain(plain)
		if e.Identities = from.Identities; from.Verdict == WouldHit && e.Verdict == WouldFetch {
			e.Verdict = WouldRecode
		}
		return e
	}
	if c.asksSiblings(q) {
		e.Identities = c.identities(q)
	}
	return e
}

// explainStored lists the responses stored for the URL.
func (c *Cache) explainStored(r *request, e *Explanation) {
	selected := map[string]bool{r.identity(nil): true}
	for _, fields := range c.variants.Rules(r.url) {
		selected[r.identity(fields)] = true
	}
	for _, id := range append([]string{r.plain}, c.variants.Identities(r.url)...) {
		f := c.describe(c.store.Peek(id))
		if f == nil {
			continue
		}
		obj, held := f.obj, f.entry
		e.Stored = append(e.Stored, Stored{
			Identity: id, Selected: selected[id], Status: held.Status, Bytes: obj.Size(), From: held.of.first, Whole: held.of.size,
			ETag: held.Header.Get("Etag"), LastModified: held.Header.Get("Last-Modified"), Date: held.Date,
			Age: held.age(r.now).Seconds(), FreshFor: held.freshFor(r.now).Seconds(), Listed: obj.Listed(), Header: held.Header,
		})
	}
	slices.SortStableFunc(e.Stored, func(a, b Stored) int { return cmp.Compare(a.From, b.From) })
}
