package gossip

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// invalidations runs the engine of package invalidation for a node.
type invalidations struct {
	sum  atomic.Uint32
	idle atomic.Bool // no remembered invalidation applies to any identity

	mu       sync.Mutex // guards engine, queue and progress
	engine   *invalidation.Engine
	queue    []invalidation.Step // to be applied
	progress chan struct{}       // closed at the next change of the engine; nil if nobody waits

	woken, due chan struct{} // wake invalidateLoop and applyInvalidations

	listeners struct {
		sync.Mutex // held while one is called
		all        []func(invalidation.Target)
	}
}

func (v *invalidations) init(cfg Config, life uint64, key ed25519.PrivateKey) {
	v.engine = invalidation.New(invalidation.Config{
		Origin: uint64(exchange.IDOf(cfg.Name)), Life: life, Key: key, Since: cfg.HeldSince,
	}, time.Now())
	v.idle.Store(true)
	v.woken, v.due = make(chan struct{}, 1), make(chan struct{}, 1)
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

// Invalidate removes the targets at every member, this one first, and returns when all live members
// have removed them ([Node.OnInvalidation]). If ctx ends before that, the error is an
// [*UnreachedError]. Members that are late, or dead now, remove them as soon as they can.
//
// From the call on, this peer gets no object of before the call from a sibling, if it follows the
// rule of [Node.Concerning]. From the return on, this is true for all members.
//
// The cluster remembers some 65,000 invalidations of the last hour. A peer that was away for longer
// removes everything.
func (n *Node) Invalidate(ctx context.Context, targets ...invalidation.Target) error {
	if n.ctx.Err() != nil {
		return ErrClosed
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
	n.invalidations.with(func(e *invalidation.Engine) {
		for _, t := range targets {
			last = e.Issue(time.Now(), t)
		}
	})
	var waiting []string
	err := n.await(ctx, func(e *invalidation.Engine) bool {
		waiting = e.Waiting(last)
		if e.OwnApplied() < last {
			waiting = append([]string{n.cfg.Name}, waiting...)
		}
		return len(waiting) == 0
	})
	if err != nil && err != ErrClosed {
		err = &UnreachedError{waiting, err}
	}
	return err
}

// with calls f, which changes the engine, and wakes the loop and all that wait for a change.
func (v *invalidations) with(f func(*invalidation.Engine)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f(v.engine)
	v.sum.Store(v.engine.Sum())
	v.idle.Store(v.engine.Idle())
	if v.progress != nil {
		close(v.progress)
		v.progress = nil
	}
	select {
	case v.woken <- struct{}{}:
	default:
	}
}

// await waits until done is true of the engine.
func (n *Node) await(ctx context.Context, done func(*invalidation.Engine) bool) error {
	v := &n.invalidations
	for {
		v.mu.Lock()
		end := done(v.engine)
		if v.progress == nil {
			v.progress = make(chan struct{})
		}
		progress := v.progress
		v.mu.Unlock()
		if end {
			return nil
		}
		select {
		case <-progress:
		case <-n.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// OnInvalidation registers f to be called for each invalidation by this peer or another, one at a
// time. All such functions are called in the same order. After f has returned, the program must not
// serve any object of the target that it held before, nor store one whose fetch was under way. If
// there were invalidations before, f is called at once, for everything.
func (n *Node) OnInvalidation(f func(invalidation.Target)) {
	v := &n.invalidations
	v.listeners.Lock()
	defer v.listeners.Unlock()
	v.listeners.all = append(v.listeners.all, f)
	if !v.idle.Load() {
		f(invalidation.Target{Kind: invalidation.Everything})
	}
}

// Concerning returns the remembered invalidations that apply to the object of an identity. The
// object may be fetched only from siblings that have applied all of them ([Node.Applied]). If ok is
// false, there are too many to name, and it may be fetched from no sibling. Concerning is quick.
func (n *Node) Concerning(identity string) (ids []invalidation.ID, ok bool) {
	v := &n.invalidations
	if v.idle.Load() {
		return nil, true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.engine.Concerning(identity)
}

// Applied reports whether this peer has applied all of these invalidations, and so removed their
// targets.
func (n *Node) Applied(ids ...invalidation.ID) bool {
	if len(ids) == 0 {
		return true
	}
	v := &n.invalidations
	v.mu.Lock()
	defer v.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id invalidation.ID) bool { return !v.engine.Has(id) })
}

// datagram handles a datagram of package invalidation.
func (v *invalidations) datagram(b []byte) {
	v.with(func(e *invalidation.Engine) { _ = e.HandleDatagram(time.Now(), b) }) // the engine counts malformed ones
}

// recallInterval is the least time between recalls from members that come back, to learn the
// invalidations of the other part of a cluster that was split. One of them is enough: if it lacks
// some, the comparison of sums shows it.
const recallInterval = 200 * time.Millisecond

// invalidateLoop passes the time to the engine and handles its outputs.
func (n *Node) invalidateLoop() {
	v := &n.invalidations
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-v.woken:
		case <-timer.C:
		}
		v.mu.Lock()
		v.engine.Tick(time.Now())
		out, next := v.engine.Drain(), v.engine.Next()
		v.queue = append(v.queue, out.Apply...)
		v.mu.Unlock()
		if len(out.Apply) > 0 {
			select {
			case v.due <- struct{}{}:
			default:
			}
		}
		table := *n.members.Load()
		for _, d := range out.Datagrams { // the engine repeats lost ones
			if m := table[d.To]; m != nil && n.transport.write(d.Data, m.info.Load().addr) == nil {
				n.meters.out.packet(Invalidations, len(d.Data))
			}
		}
		for _, name := range out.Recalls {
			n.wg.Go(func() { n.recall(name) })
		}
		if !next.IsZero() {
			timer.Reset(max(0, time.Until(next)))
		}
	}
}

// applyInvalidations calls the listeners for one invalidation after the other.
func (n *Node) applyInvalidations() {
	v := &n.invalidations
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-v.due:
		}
		v.mu.Lock()
		queue := v.queue
		v.queue = nil
		v.mu.Unlock()
		for _, s := range queue {
			if s.Target.Kind != 0 {
				n.log.Debug("invalidated", "target", s.Target)
				v.listeners.Lock()
				for _, f := range v.listeners.all {
					f(s.Target)
				}
				v.listeners.Unlock()
			}
			v.with(func(e *invalidation.Engine) { e.Applied(s) })
		}
	}
}

// recall fetches invalidations that this peer lacks from a member. It ends: each answer that
// announces more has entries, and continues where the last one ended.
func (n *Node) recall(name string) error {
	v := &n.invalidations
	addr, ok := n.addressOf(name)
	if !ok {
		return ErrUnreachable
	}
	for {
		v.mu.Lock()
		known := v.engine.Recall()
		v.mu.Unlock()
		frame := exchange.EndFrame(append(exchange.BeginFrame(nil, exchange.FrameRecall), known...), 0)
		c := incoming{of: &n.digests}
		t, payload, err := n.request(name, addr, frame, &c)
		c.release() // it is read at once
		if err == nil && t != exchange.FrameLogs {
			err = fmt.Errorf("%w: %v in answer to recall", exchange.ErrMalformed, t)
		}
		more := false
		if err == nil {
			v.with(func(e *invalidation.Engine) { more, err = e.HandleLogs(time.Now(), payload) })
		}
		if err != nil || !more {
			return err
		}
	}
}

const catchUpWait = 2 * time.Second

// catchUp waits until this peer has fetched the invalidations that one other member knows, and
// applied them. If others know more, the comparison of sums shows it later.
func (n *Node) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpWait)
	defer cancel()
	done := make(chan struct{})
	n.wg.Go(func() {
		defer close(done)
		n.inLoop(n.takeMembers)
		for name, m := range *n.members.Load() {
			if m.up.Load() && n.recall(name) == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
		}
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	_ = n.await(ctx, (*invalidation.Engine).Settled)
}
