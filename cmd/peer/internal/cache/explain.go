package cache

import (
	"net/http"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Verdict is how a request would be answered if it came now.
type Verdict string

const (
	WouldHit      Verdict = "hit"       // from the store, fresh
	WouldHitStale Verdict = "stale-hit" // from the store, stale, while it is validated
	WouldValidate Verdict = "validate"  // from the store, once somebody said that it is still good
	WouldRecode   Verdict = "recode"    // from the store, where it is without the content coding
	WouldFetch    Verdict = "fetch"     // from a sibling or the origin
	WouldPass     Verdict = "pass"      // by the origin: no cache answers such requests
	WouldRefuse   Verdict = "refuse"    // 504: only-if-cached, and nothing is here
)

// An Explanation says what the cache would do with a request, and why.
type Explanation struct {
	URL        string // canonical
	Verdict    Verdict
	Reason     string   // as Cache-Status would have it for fwd; "" = a hit
	Stored     []Stored // every response held for the URL, whatever it varies by
	Identities []string // that siblings' digests would be asked for, likeliest first; none = siblings are not asked
}

// Stored describes one response in the store.
type Stored struct {
	Identity string
	Selected bool // by the request
	Status   int
	Bytes    int64 // of the body
	Age      time.Duration
	FreshFor time.Duration // negative = for how long it has been stale
	Listed   bool          // in this peer's digest
	Date     time.Time     // when the origin made it
	Header   http.Header   // the caller must not change it
}

// Explain says what [Cache.Serve] would do with r. It changes nothing and counts
// as no use of what is stored.
func (c *Cache) Explain(r *http.Request) Explanation {
	of := c.request(r)
	q := &of
	e := Explanation{URL: q.url, Verdict: WouldPass, Reason: "method"}
	best := c.explainStored(q, &e)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return e
	case r.Header["If-Match"] != nil, r.Header["If-Unmodified-Since"] != nil:
		e.Reason = "bypass"
		return e
	}
	e.Verdict, e.Reason = WouldFetch, "uri-miss"
	switch {
	case best != nil && c.discredited(best):
		e.Verdict, e.Reason = WouldValidate, "stale"
	case best != nil:
		var use rfc9111.Use
		use, e.Reason = best.reuse(q)
		e.Verdict = [...]Verdict{rfc9111.ServeFresh: WouldHit, rfc9111.ServeStale: WouldHitStale, rfc9111.StaleWhileRevalidate: WouldHitStale, rfc9111.Validate: WouldValidate}[use]
	case len(c.variants.Rules(q.url)) > 0:
		e.Reason = "vary-miss"
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

// explainStored lists what is stored for the URL and returns what r selects.
func (c *Cache) explainStored(r *request, e *Explanation) (best *entry) {
	selected := map[string]bool{r.plain: true}
	for _, fields := range c.variants.Rules(r.url) {
		selected[r.identity(fields)] = true
	}
	for _, id := range append([]string{r.plain}, c.variants.Identities(r.url)...) {
		obj, ok := c.store.Peek(id)
		if !ok {
			continue
		}
		v, err := c.store.Open(obj, store.Describe)
		if err != nil {
			continue
		}
		v.Close()
		held := v.Value().(*entry)
		e.Stored = append(e.Stored, Stored{
			Identity: id, Selected: selected[id], Status: held.Status, Bytes: obj.Size(), Age: held.age(r.now),
			FreshFor: held.freshFor(r.now), Listed: obj.Listed(), Date: held.Date, Header: held.Header,
		})
		if selected[id] && (best == nil || best.Date.Before(held.Date)) {
			best = held
		}
	}
	return best
}
