package cache

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// recent remembers the values of the keys set last: at least limit and at most
// twice as many. It keeps two generations and drops the older one when the
// younger is full.
type recent[V any] struct {
	mu       sync.RWMutex
	limit    int
	cur, old map[string]V
}

func (r *recent[V]) set(key string, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cur) >= r.limit {
		r.old, r.cur = r.cur, nil
	}
	if r.cur == nil {
		r.cur = make(map[string]V)
	}
	r.cur[key] = v
}

func (r *recent[V]) get(key string) (V, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if v, ok := r.cur[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	return v, ok
}

// graves remembers when URLs were invalidated or purged. A sibling may hold an
// older copy for as long as it is fresh; it must not bring it back.
type graves struct {
	recent[time.Time]
	bury     sync.Mutex
	prefixes atomic.Pointer[[]prefixGrave] // the latest last; replaced as a whole
}

type prefixGrave struct {
	prefix string
	at     time.Time
}

// maxPrefixGraves is how many purges by prefix are remembered: operators make
// them, one at a time.
const maxPrefixGraves = 1024

// setPrefix buries everything under a prefix.
func (g *graves) setPrefix(prefix string, now time.Time) {
	g.bury.Lock()
	defer g.bury.Unlock()
	var kept []prefixGrave
	if old := g.prefixes.Load(); old != nil {
		for _, p := range *old {
			if !strings.HasPrefix(p.prefix, prefix) {
				kept = append(kept, p)
			}
		}
	}
	kept = append(kept, prefixGrave{prefix, now})
	kept = kept[max(0, len(kept)-maxPrefixGraves):]
	g.prefixes.Store(&kept)
}

// buried reports whether a response generated at that time is one that was
// invalidated since.
func (g *graves) buried(url string, generated time.Time) bool {
	if t, ok := g.get(url); ok && !generated.After(t) {
		return true
	}
	prefixes := g.prefixes.Load()
	if prefixes == nil {
		return false
	}
	return slices.ContainsFunc(*prefixes, func(p prefixGrave) bool {
		return !generated.After(p.at) && strings.HasPrefix(url, p.prefix)
	})
}

// solo remembers the URLs whose last response could not be shared, so that
// requests for them don't wait for each other in vain.
type solo struct{ recent[time.Time] }

// soloFor is how long a response that can't be shared keeps its URL solo.
const soloFor = 30 * time.Second

func (s *solo) mark(url string, now time.Time) { s.set(url, now.Add(soloFor)) }

func (s *solo) is(url string, now time.Time) bool {
	t, ok := s.get(url)
	return ok && now.Before(t)
}
