package engine

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// tombstones remember when URLs, tags, prefixes and patterns were invalidated. What was requested before that
// must not be stored. A Cache has two: of invalidations that reach all members of the cluster, and
// of those by this cache alone. A copy of a member that was asked after the former is newer than
// they are ([Cache.usable]). A sibling does not know of the latter, and may hold an older copy.
type tombstones struct {
	recent[time.Duration] // by the steady clock
	tags                  recent[time.Duration]

	mu   sync.RWMutex
	wide []wideTombstone // the latest last
}

// A wideTombstone is that of a prefix or a pattern.
type wideTombstone struct {
	name    string
	pattern bool // see [invalidation.Glob]; otherwise it is a prefix
	at      time.Duration
}

func (w *wideTombstone) selects(url string) bool {
	if w.pattern {
		return invalidation.Glob(w.name, url)
	}
	return strings.HasPrefix(url, w.name)
}

// maxWideTombstones is the number of invalidations by prefix or pattern that are remembered. Only
// operators make these, one at a time.
const maxWideTombstones = 1024

// setWide invalidates every URL that w selects.
func (t *tombstones) setWide(w wideTombstone) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wide = slices.DeleteFunc(t.wide, func(old wideTombstone) bool {
		return old.pattern == w.pattern && (old.name == w.name || !w.pattern && strings.HasPrefix(old.name, w.name))
	})
	t.wide = append(t.wide, w)
	t.wide = t.wide[max(0, len(t.wide)-maxWideTombstones):]
}

// setTag invalidates everything that has a tag.
func (t *tombstones) setTag(tag string, now moment) {
	t.tags.set(tag, now.steady)
	t.tags.set(anyTag, now.steady)
}

// has reports whether a response with this URL and header, generated at that time, was invalidated
// since. A header that is not known yet (nil) may have any tag.
func (t *tombstones) has(url string, h http.Header, generated moment) bool {
	if at, ok := t.get(url); ok && generated.steady <= at {
		return true
	}
	if !t.tags.empty() {
		tags := []string{anyTag}
		if h != nil {
			tags = Tags(h)
		}
		for _, tag := range tags {
			if at, ok := t.tags.get(tag); ok && generated.steady <= at {
				return true
			}
		}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.ContainsFunc(t.wide, func(w wideTombstone) bool { return generated.steady <= w.at && w.selects(url) })
}
