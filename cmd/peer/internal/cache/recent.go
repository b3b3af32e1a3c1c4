package cache

import (
	"sync"
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

func (r *recent[V]) empty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.cur == nil
}

// hitForMiss remembers the URLs whose last response could not be shared, so that
// requests for them don't wait for each other.
type hitForMiss struct{ recent[time.Duration] }

// hitForMissTime is for how long such a response is remembered.
const hitForMissTime = 30 * time.Second

func (h *hitForMiss) mark(url string, now moment) { h.set(url, now.steady+hitForMissTime) }

func (h *hitForMiss) is(url string, now moment) bool {
	t, ok := h.get(url)
	return ok && now.steady < t
}
