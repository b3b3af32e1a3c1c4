package httpcache

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/planted"
)

// tombstones remember when URLs, tags and prefixes were invalidated. What was requested before that
// must not be stored. A Cache has two: of invalidations that reach all members of the cluster, and
// of those by this cache alone. A copy of a member that was asked after the former is newer than
// they are ([Cache.usable]). A sibling does not know of the latter, and may hold an older copy.
type tombstones struct {
	recent[time.Duration] // by the steady clock
	tags                  recent[time.Duration]

	mu       sync.RWMutex
	prefixes []prefixTombstone // the latest last
}

type prefixTombstone struct {
	prefix string
	at     time.Duration
}

// maxPrefixTombstones is the number of invalidations by prefix that are remembered. Only operators
// make these, one at a time.
const maxPrefixTombstones = 1024

// setPrefix invalidates everything under a prefix.
func (t *tombstones) setPrefix(prefix string, now moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefixes = slices.DeleteFunc(t.prefixes, func(p prefixTombstone) bool { return strings.HasPrefix(p.prefix, prefix) })
	t.prefixes = append(t.prefixes, prefixTombstone{prefix, now.steady})
	t.prefixes = t.prefixes[max(0, len(t.prefixes)-maxPrefixTombstones):]
}

// setTag invalidates everything that has a tag.
func (t *tombstones) setTag(tag string, now moment) {
	t.tags.set(tag, now.steady)
	t.tags.set(anyTag, now.steady)
}

// has reports whether a response with this URL and header, generated at that time, was invalidated
// since.
func (t *tombstones) has(url string, h http.Header, generated moment) bool {
	if at, ok := t.get(url); planted.Fault != "tombstones" && ok && generated.steady <= at {
		return true
	}
	if !t.tags.empty() {
		for _, tag := range Tags(h) {
			if at, ok := t.tags.get(tag); ok && generated.steady <= at {
				return true
			}
		}
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.ContainsFunc(t.prefixes, func(p prefixTombstone) bool {
		return generated.steady <= p.at && strings.HasPrefix(url, p.prefix)
	})
}
