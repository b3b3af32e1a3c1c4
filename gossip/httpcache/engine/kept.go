package engine

import (
	"slices"
	"sync"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// A purge, or a new version, is for the requests that come after it. So the slices that an answer under way still needs are
// opened for it before they are removed.

// maxKept is how many slices are kept for an answer.
const maxKept = 256

// kept has the answers under way that go on in slices, and what is kept for them.
type kept struct {
	mu    sync.Mutex
	rests map[string][]*rest // by URL
}

type keptSlice struct {
	held *found
	view bodies.View
}

func (k *kept) add(g *rest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rests == nil {
		k.rests = make(map[string][]*rest)
	}
	k.rests[g.r.url] = append(k.rests[g.r.url], g)
}

func (k *kept) remove(g *rest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := slices.DeleteFunc(k.rests[g.r.url], func(o *rest) bool { return o == g })
	if k.rests[g.r.url] = left; len(left) == 0 {
		delete(k.rests, g.r.url)
	}
	for _, s := range g.kept {
		s.view.Close()
	}
}

// take returns the slice that is kept for an answer. The caller closes the view.
func (k *kept) take(g *rest, slice int64) (s keptSlice, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok = g.kept[slice]
	delete(g.kept, slice)
	return s, ok
}

// keep keeps the slices of a URL, which are about to be removed, for the answers that need them.
func (c *Cache) keep(url string) {
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	for _, g := range c.kept.rests[url] {
		q := asNobody(g.r)
		for q.slice = g.next.Load() + 1; (q.slice-1)*SliceSize < g.plan.Offset+g.plan.Length && len(g.kept) < maxKept; q.slice++ {
			if _, ok := g.kept[q.slice]; ok {
				continue
			}
			held, _ := c.choose(q)
			if held == nil || !held.entry.sameVersion(g.of) {
				continue
			}
			if view, err := c.store.Open(held.obj, held.about); err == nil {
				if g.kept == nil {
					g.kept = make(map[int64]keptSlice)
				}
				g.kept[q.slice] = keptSlice{held, view}
			}
		}
	}
}
