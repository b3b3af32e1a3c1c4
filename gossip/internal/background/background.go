// Package background has goroutines for which their owner waits when it ends. None begins after that.
package background

import (
	"context"
	"sync"
)

// A Group has the goroutines of an owner that callers use while it is closed. Make one with [New].
type Group struct {
	mu      sync.Mutex // held while one begins, so that none does once Stop has returned
	running sync.WaitGroup
	ctx     context.Context
	stop    context.CancelCauseFunc
}

// New returns a Group without goroutines.
func New() *Group {
	g := new(Group)
	g.ctx, g.stop = context.WithCancelCause(context.Background())
	return g
}

// Context ends when the Group is stopped.
func (g *Group) Context() context.Context { return g.ctx }

// Go runs f in a goroutine, unless the Group is stopped; it reports which.
func (g *Group) Go(f func()) bool {
	if !g.Enter() {
		return false
	}
	go func() {
		defer g.Leave()
		f()
	}()
	return true
}

// Enter makes Wait wait for the calling goroutine until it calls Leave, unless the Group is stopped; it reports which.
func (g *Group) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false
	}
	g.running.Add(1)
	return true
}

// Leave ends what Enter began.
func (g *Group) Leave() { g.running.Done() }

// Stop ends the context, with that cause, and lets no goroutine begin any more. It does not wait.
func (g *Group) Stop(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop(cause)
}

// Wait waits until all goroutines have ended. The Group must have been stopped.
func (g *Group) Wait() { g.running.Wait() }
