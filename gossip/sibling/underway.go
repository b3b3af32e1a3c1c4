package sibling

import (
	"context"
	"errors"
	"sync"
)

var (
	// ErrStalled is the cause ([context.Cause]) by which a request is canceled whose
	// body made no progress.
	ErrStalled = errors.New("sibling: body stalled")
	// ErrGone is the cause by which a request to a sibling is canceled that left the
	// cluster or died.
	ErrGone = errors.New("sibling: no longer a member")
)

// underway are the questions under way and the bodies being received, by sibling.
// It is safe for concurrent use.
type underway struct {
	mu sync.Mutex
	of map[*context.CancelCauseFunc]string // the sibling of each
}

// add returns cancel, which takes the question out again.
func (u *underway) add(peer string, cancel context.CancelCauseFunc) context.CancelCauseFunc {
	key := &cancel
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = make(map[*context.CancelCauseFunc]string)
	}
	u.of[key] = peer
	return func(cause error) {
		u.mu.Lock()
		delete(u.of, key)
		u.mu.Unlock()
		cancel(cause)
	}
}

// gone takes out what a sibling has under way, and returns it.
func (u *underway) gone(peer string) (all []context.CancelCauseFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for cancel, of := range u.of {
		if of == peer {
			all = append(all, *cancel)
			delete(u.of, cancel)
		}
	}
	return all
}

// Gone tells that a sibling is no longer a member of the cluster. What it was asked
// is canceled at once, bodies that it is sending included, so that another is asked.
func (c *Client) Gone(peer string) {
	for _, cancel := range c.underway.gone(peer) {
		cancel(ErrGone)
	}
}
