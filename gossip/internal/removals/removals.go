// Package removals has the removals of a node: it runs the engine of package invalidation, calls what listens, and
// waits for other members. Start with [New].
//
// It sees other members by name only, through the functions of [Config].
package removals

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/background"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// Config has the settings of [Removals], all required except Since.
type Config struct {
	Name  string    // of this peer
	Life  uint64    // its incarnation
	Since time.Time // see invalidation.Config
	Log   *slog.Logger

	Work   *background.Group // of the node, and ends with it
	Closed error             // is returned after that

	Send    func(to string, b []byte)                       // sends a datagram, which may be lost
	Request func(name string, frame []byte) ([]byte, error) // sends a recall, and returns the logs in answer
}

// Removals are the invalidations of a node. Its methods may be called at any time.
type Removals struct {
	cfg  Config
	sum  atomic.Uint32
	idle atomic.Bool // no remembered invalidation applies to any identity

	mu       sync.Mutex // guards the following fields
	engine   *invalidation.Engine
	queue    []invalidation.Pending // to be applied
	progress chan struct{}          // closed at the next change of the engine; nil if nobody waits
	recalled time.Time              // the last recall from a member that came back

	woken, due chan struct{} // wake run and apply

	listeners struct {
		sync.Mutex // held while one is called
		all        []func(invalidation.Target)
	}
}

// New returns the removals of a peer that knows no other yet. Then call [Removals.Start].
func New(cfg Config) *Removals {
	r := &Removals{cfg: cfg, woken: make(chan struct{}, 1), due: make(chan struct{}, 1)}
	r.engine = invalidation.New(invalidation.Config{
		Origin: uint64(exchange.IDOf(cfg.Name)), Life: cfg.Life, Since: cfg.Since,
	}, time.Now())
	r.idle.Store(true)
	return r
}

// Start starts the goroutines.
func (r *Removals) Start() {
	r.cfg.Work.Go(r.run)
	r.cfg.Work.Go(r.apply)
}

// An UnreachedError names the live members that have not applied an invalidation.
type UnreachedError struct {
	Members []string // by name, possibly including this peer
	Err     error    // why the wait ended
}

func (e *UnreachedError) Error() string {
	return fmt.Sprintf("gossip: not yet invalidated at %s: %v", strings.Join(e.Members, ", "), e.Err)
}

func (e *UnreachedError) Unwrap() error { return e.Err }

// Invalidate is Node.Invalidate, of package gossip.
func (r *Removals) Invalidate(ctx context.Context, targets ...invalidation.Target) error {
	if r.cfg.Work.Context().Err() != nil {
		return r.cfg.Closed
	}
	for _, t := range targets {
		if err := t.Check(); err != nil {
			return err
		}
	}
	if len(targets) == 0 {
		return nil
	}
	var last uint64
	r.With(func(e *invalidation.Engine) {
		for _, t := range targets {
			last = e.Issue(time.Now(), t)
		}
	})
	var waiting []string
	err := r.await(ctx, func(e *invalidation.Engine) bool {
		waiting = e.Waiting(last)
		if e.OwnApplied() < last {
			waiting = append([]string{r.cfg.Name}, waiting...)
		}
		return len(waiting) == 0
	})
	if err != nil && err != r.cfg.Closed {
		err = &UnreachedError{waiting, err}
	}
	return err
}

// With calls f, which changes the engine, and wakes the loop and all that wait for a change.
func (r *Removals) With(f func(*invalidation.Engine)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.engine)
	r.sum.Store(r.engine.Sum())
	r.idle.Store(r.engine.Idle())
	if r.progress != nil {
		close(r.progress)
		r.progress = nil
	}
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// await waits until done is true of the engine.
func (r *Removals) await(ctx context.Context, done func(*invalidation.Engine) bool) error {
	for {
		r.mu.Lock()
		end := done(r.engine)
		if r.progress == nil {
			r.progress = make(chan struct{})
		}
		progress := r.progress
		r.mu.Unlock()
		if end {
			return nil
		}
		select {
		case <-progress:
		case <-r.cfg.Work.Context().Done():
			return r.cfg.Closed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// OnInvalidation is Node.OnInvalidation, of package gossip.
func (r *Removals) OnInvalidation(f func(invalidation.Target)) {
	r.listeners.Lock()
	defer r.listeners.Unlock()
	r.listeners.all = append(r.listeners.all, f)
	if !r.idle.Load() {
		f(invalidation.Target{Kind: invalidation.Everything})
	}
}

// Concerning is Node.Concerning, of package gossip.
func (r *Removals) Concerning(identity string) (ids []invalidation.ID, ok bool) {
	if r.idle.Load() {
		return nil, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine.Concerning(identity)
}

// Applied is Node.Applied, of package gossip.
func (r *Removals) Applied(ids ...invalidation.ID) bool {
	if len(ids) == 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id invalidation.ID) bool { return !r.engine.Has(id) })
}

// Datagram handles a datagram of package invalidation.
func (r *Removals) Datagram(b []byte) {
	r.With(func(e *invalidation.Engine) { _ = e.HandleDatagram(time.Now(), b) }) // the engine counts malformed ones
}

// recallInterval is the least time between recalls from members that come back, to learn the
// invalidations of the other part of a cluster that was split. One of them is enough: if it lacks
// some, the comparison of sums shows it.
const recallInterval = 200 * time.Millisecond

// run passes the time to the engine and handles its outputs.
func (r *Removals) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.cfg.Work.Context().Done():
			return
		case <-r.woken:
		case <-timer.C:
		}
		r.mu.Lock()
		r.engine.Tick(time.Now())
		out, next := r.engine.Drain(), r.engine.Next()
		r.queue = append(r.queue, out.Apply...)
		r.mu.Unlock()
		if len(out.Apply) > 0 {
			select {
			case r.due <- struct{}{}:
			default:
			}
		}
		for _, d := range out.Datagrams { // the engine repeats lost ones
			r.cfg.Send(d.To, d.Data)
		}
		for _, name := range out.Recalls {
			r.cfg.Work.Go(func() { r.Recall(name) })
		}
		if !next.IsZero() {
			timer.Reset(max(0, time.Until(next)))
		}
	}
}

// apply calls the listeners for one invalidation after the other.
func (r *Removals) apply() {
	for {
		select {
		case <-r.cfg.Work.Context().Done():
			return
		case <-r.due:
		}
		r.mu.Lock()
		queue := r.queue
		r.queue = nil
		r.mu.Unlock()
		for _, s := range queue {
			if s.Target.Kind != 0 {
				r.cfg.Log.Debug("invalidated", "target", s.Target)
				r.listeners.Lock()
				for _, f := range r.listeners.all {
					f(s.Target)
				}
				r.listeners.Unlock()
			}
			r.With(func(e *invalidation.Engine) { e.Applied(s) })
		}
	}
}

// Recall fetches invalidations that this peer lacks from a member. It ends: each answer that
// announces more has entries, and continues where the last one ended.
func (r *Removals) Recall(name string) error {
	for {
		r.mu.Lock()
		known := r.engine.Recall()
		r.mu.Unlock()
		logs, err := r.cfg.Request(name, exchange.EndFrame(append(exchange.BeginFrame(nil, exchange.FrameRecall), known...), 0))
		more := false
		if err == nil {
			r.With(func(e *invalidation.Engine) { more, err = e.HandleLogs(time.Now(), logs) })
		}
		if err != nil || !more {
			return err
		}
	}
}

// Answer answers a recall.
func (r *Removals) Answer(recall []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine.HandleRecall(time.Now(), recall)
}

// PeerUp notes a live member, and returns when the newest of the invalidations arrived that are forgotten.
func (r *Removals) PeerUp(now time.Time, name string, life uint64) (forgotten time.Time) {
	r.With(func(e *invalidation.Engine) {
		e.PeerUp(now, name, uint64(exchange.IDOf(name)), life)
		forgotten = e.Forgotten()
	})
	return forgotten
}

// Returned recalls what a member knows that came back.
func (r *Removals) Returned(name string, now time.Time) {
	r.mu.Lock()
	due := now.Sub(r.recalled) >= recallInterval
	if due {
		r.recalled = now
	}
	r.mu.Unlock()
	if due {
		r.cfg.Work.Go(func() { r.Recall(name) })
	}
}

// Settled waits until this peer has applied all that it knows.
func (r *Removals) Settled(ctx context.Context) { _ = r.await(ctx, (*invalidation.Engine).Settled) }

// Sum returns a hash of what this peer knows.
func (r *Removals) Sum() uint32 { return r.sum.Load() }

// Stats returns the counters.
func (r *Removals) Stats() invalidation.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engine.Stats()
}
