package engine

import (
	"net/http"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// What the origin has shown a client of this cache is not undone by a sibling: after a reload, a HEAD, a 304 or an answer
// that may not be stored, older copies of siblings are refused. Which of two is older shows in the dates that the origin
// gave them, not in any other clock; a copy with the same validator is the same version, whatever its date. A copy of the
// same second without a validator may be the same, and is accepted. An invalidation in the whole cluster ends this, since
// siblings then have nothing older.

const (
	maxSeen   = 16 << 10 // URLs of which that is remembered
	seenOfURL = 4        // variants of a URL, at most
)

// A sight is the version of a response that the origin has shown last.
type sight struct {
	id       string // the identity
	date     time.Time
	etag, lm string
}

// saw notes an answer of the origin to r that is not what a sibling may have.
func (c *Cache) saw(r *request, resp *rfc9111.Response) {
	if resp.Status >= http.StatusInternalServerError || c.cfg.Siblings == nil {
		return
	}
	now := sight{r.variant(rfc9111.VaryFields(resp.Header)), resp.Date, resp.ETag, resp.Header.Get("Last-Modified")}
	before, _ := c.seen.get(r.url)
	all := slices.DeleteFunc(slices.Clone(before), func(s sight) bool { return s.id == now.id })
	c.seen.set(r.url, append(all, now)[max(0, len(all)+1-seenOfURL):])
}

// olderThanSeen reports whether a sibling's response to r is older than what the origin has shown.
func (c *Cache) olderThanSeen(r *request, resp *rfc9111.Response) bool {
	all, ok := c.seen.get(r.url)
	if !ok {
		return false
	}
	id := r.variant(rfc9111.VaryFields(resp.Header))
	lm := resp.Header.Get("Last-Modified")
	return slices.ContainsFunc(all, func(s sight) bool {
		switch {
		case s.id != id && s.id != r.plain, s.etag != "" && s.etag == resp.ETag, s.etag == "" && resp.ETag == "" && lm != "" && lm == s.lm:
			return false
		}
		return resp.Date.Before(s.date) || resp.Date.Equal(s.date) && (s.etag != resp.ETag || s.lm != lm)
	})
}
