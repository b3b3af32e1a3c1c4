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
	of map[string]map[*context.CancelCauseFunc]struct{}
}

// add returns cancel, which takes the question out again.
func (u *underway) add(peer string, cancel context.CancelCauseFunc) context.CancelCauseFunc {
	key := &cancel
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = make(map[string]map[*context.CancelCauseFunc]struct{})
	}
	if u.of[peer] == nil {
		u.of[peer] = make(map[*context.CancelCauseFunc]struct{})
	}
	u.of[peer][key] = struct{}{}
	return func(cause error) {
		u.mu.Lock()
		delete(u.of[peer], key)
		if len(u.of[peer]) == 0 {
			delete(u.of, peer)
		}
		u.mu.Unlock()
		cancel(cause)
	}
}

// Gone tells that a sibling is no longer a member of the cluster. What it was asked
// is canceled at once, bodies that it is sending included, so that another is asked.
func (c *Client) Gone(peer string) {
	c.underway.mu.Lock()
	all := c.underway.of[peer]
	delete(c.underway.of, peer)
	c.underway.mu.Unlock()
	for cancel := range all {
		(*cancel)(ErrGone)
	}
}
