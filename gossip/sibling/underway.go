package sibling

import (
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
	of map[*exchange]struct{}
}

func (u *underway) add(e *exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = make(map[*exchange]struct{})
	}
	u.of[e] = struct{}{}
}

func (u *underway) remove(e *exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, e)
}

// with returns what a sibling has under way.
func (u *underway) with(peer string) (all []*exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for e := range u.of {
		if e.from.Peer == peer {
			all = append(all, e)
		}
	}
	return all
}

// Gone tells that a sibling is no longer a member of the cluster. What it was asked
// is canceled at once, bodies that it is sending included, so that another is asked.
func (c *Client) Gone(peer string) {
	for _, e := range c.underway.with(peer) {
		e.end(ErrGone)
	}
}
