package engine

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// writeWait is how long the answer to a write waits, at most, until its URL is removed everywhere.
// A slower peer removes it after the answer.
const writeWait = time.Second

// invalidate removes every stored response of canonical URLs, here and at all other peers.
func (c *Cache) invalidate(ctx context.Context, urls []string) {
	targets := make([]invalidation.Target, len(urls))
	for i, url := range urls {
		targets[i] = TargetOf(url)
		remove := c.Invalidated
		if c.cfg.Cluster == nil {
			remove = c.Purge
		}
		c.Invalidations.Add(uint64(remove(targets[i])))
	}
	if c.cfg.Cluster == nil || len(urls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWait)
	defer cancel()
	if err := c.cfg.Cluster.Invalidate(ctx, targets...); err != nil {
		c.log.Warn("a write did not reach all peers in time; they may serve the old version until they receive the invalidation", "url", urls[0], "err", err)
	}
}

// Written removes what a request that this cache did not pass on makes out of date, once it is answered.
func (c *Cache) Written(r *http.Request, u *url.URL, status int, h http.Header) {
	c.invalidate(r.Context(), c.cfg.Invalidates(r, u, status, h))
}

// TargetOf returns the target of an invalidation of a canonical URL. With another kind it is one of all
// URLs that begin with it, or match it.
func TargetOf(url string) invalidation.Target {
	return invalidation.Target{Kind: invalidation.Identity, Name: rfc9111.Identity(url, nil, nil)}
}

// Invalidated carries out an invalidation by this peer or another that Config.Cluster carries to
// all: it removes the responses or, if the invalidation is soft, makes them stale. It returns their
// number. Responses being fetched are not stored.
func (c *Cache) Invalidated(t invalidation.Target) int {
	n := c.remove(t, false)
	if c.cfg.Coalescer != nil {
		c.cfg.Coalescer.Invalidated(t, n)
	}
	return n
}

// Purge is Invalidated for this cache alone. Siblings keep their copies, but older ones are refused
// here. How old they are follows from the clock and Age, which has whole seconds. So a sibling's
// copy is also refused if it was generated less than a second or two after the purge.
func (c *Cache) Purge(t invalidation.Target) int { return c.remove(t, true) }

func (c *Cache) remove(t invalidation.Target, alone bool) (n int) {
	tombstones := &c.invalidated
	if alone {
		tombstones = &c.purged
	}
	if t.Kind == invalidation.Tag {
		tombstones.setTag(t.Name, c.tick())
		for _, label := range [...]string{t.Name, anyTag} {
			for o := range c.store.Labelled(label) {
				n += c.retire(o.Key(), t.Soft)
			}
		}
		return n
	}
	url, ours := strings.CutPrefix(t.Name, rfc9111.Identity("", nil, nil))
	switch {
	case t.Kind == invalidation.Identity && ours:
		url, _ = rfc9111.SplitIdentity(t.Name)
		tombstones.set(url, c.tick().steady)
		if !alone {
			c.seen.set(url, nil)
		}
		for _, id := range append(c.variants.Identities(url), rfc9111.Identity(url, nil, nil)) {
			n += c.retire(id, t.Soft)
		}
		return n
	case t.Kind == invalidation.Identity: // this cache stores no such identities
		return 0
	case t.Kind == invalidation.Pattern && ours:
	case t.Kind == invalidation.Prefix && ours:
	case t.Kind == invalidation.Pattern, t.Kind == invalidation.Prefix && !strings.HasPrefix(rfc9111.Identity("", nil, nil), t.Name):
		return 0
	default:
		url = ""
	}
	w := wideTombstone{url, t.Kind == invalidation.Pattern, c.tick().steady}
	tombstones.setWide(w)
	for id := range c.store.Keys() {
		if of, _ := rfc9111.SplitIdentity(id); w.selects(of) {
			n += c.retire(id, t.Soft)
		}
	}
	return n
}

// replacedBy removes what is stored under an identity of url, in all parts and codings, of a version before resp, which
// was requested at that time. What was requested earlier is not stored any more.
func (c *Cache) replacedBy(resp *rfc9111.Response, url, id string, began time.Duration) {
	c.reloaded.set(url, reload{began, c.tick().steady})
	for _, other := range append(c.variants.Identities(url), rfc9111.Identity(url, nil, nil)) {
		f, tagged := c.describe(c.store.Peek(other)), resp.ETag != "" || !resp.LastModified.IsZero()
		if f != nil && bare(other) == bare(id) && !(tagged && f.entry.SameBytes(resp)) {
			c.retire(other, false)
		}
	}
}

// bare returns an identity without the lines that say which coding, and which slice.
func bare(id string) string {
	lines := strings.Split(id, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "Accept-Encoding:") || strings.HasPrefix(line, "slice:")
	}), "\n")
}

// retire removes the response of an identity or, if soft is set, makes it stale. It returns 1 if it
// did, otherwise 0.
func (c *Cache) retire(id string, soft bool) int {
	for range 8 { // another round follows if the object was changed meanwhile
		f := c.peek(id)
		if f == nil || !soft {
			if rfc9111.IsSlice(id) {
				url, _ := rfc9111.SplitIdentity(id)
				c.keep(url)
			}
			if c.store.Delete(id) {
				return 1
			}
			return 0
		}
		now := c.now()
		if f.entry.age(now) >= f.entry.Lifetime { // by its header: for how long its sibling is believed is another matter
			return 0
		}
		e := *f.entry.Response
		e.InitialAge = e.Lifetime // and from now on, whatever a clock says later of the time before
		stale := f.entry.renewed(&e, now, c.via)
		if _, err := c.store.Update(f.obj, c.meta(stale, new(bytes.Buffer))); err == nil {
			return 1
		}
	}
	return c.retire(id, false)
}
