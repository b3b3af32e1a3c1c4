package engine

import (
	"context"
	"sync"
)

// A background has the goroutines of a cache, which may go on while requests come and the cache is closed.
type background struct {
	mu      sync.Mutex // held while one begins, so that none does once endBackground waits
	running sync.WaitGroup
	stopped context.Context // ends with the cache
	stop    context.CancelCauseFunc
}

// inBackground runs f, unless the cache is closed; it reports which.
func (b *background) inBackground(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped.Err() != nil {
		return false
	}
	b.running.Go(f)
	return true
}

// endBackground stops what runs, and waits for it.
func (b *background) endBackground() {
	b.mu.Lock()
	b.stop(errStopped)
	b.mu.Unlock()
	b.running.Wait()
}
