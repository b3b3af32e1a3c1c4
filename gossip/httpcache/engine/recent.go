package engine

import (
	"sync"
	"time"
)

// recent remembers the values of the keys set last, at least limit and at most twice as many. It
// has two generations, and drops the older one when the younger is full.
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

// recentURLs remembers about URLs that something holds until some time.
type recentURLs struct{ recent[time.Duration] }

// add says that it holds for the time d from now on.
func (u *recentURLs) add(url string, now moment, d time.Duration) { u.set(url, now.steady+d) }

func (u *recentURLs) has(url string, now moment) bool {
	t, ok := u.get(url)
	return ok && now.steady < t
}
