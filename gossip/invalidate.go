package gossip

import (
	"context"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/removals"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// An UnreachedError names the live members that have not applied an invalidation.
type UnreachedError = removals.UnreachedError

// Invalidate removes the targets at every member, this one first, and returns when all live members
// have removed them ([Node.OnInvalidation]). If ctx ends before that, or
// there are peers beyond Limits.Members, which get nothing from this one, the error is an [*UnreachedError]. Members
// that are late, or dead now, remove them as soon as they can.
//
// From the call on, this peer gets no object of before the call from a sibling, if it follows the
// rule of [Node.Concerning]. From the return on, this is true for all members.
//
// The cluster remembers some 65,000 invalidations of the last hour. A peer that was away for longer
// removes everything.
func (n *Node) Invalidate(ctx context.Context, targets ...invalidation.Target) error {
	if n.made(); ctx == nil {
		return errNoContext
	}
	err := n.removals.Invalidate(ctx, targets...)
	if names := n.refusals(); err == nil && len(names) > 0 {
		return &UnreachedError{Members: names, Err: ErrMembers}
	}
	return err
}

// OnInvalidation registers f to be called for each invalidation by this peer or another, one at a
// time. All such functions are called in the same order. After f has returned, the program must not
// serve any object of the target that it held before, nor store one whose fetch was under way. If
// there were invalidations before, f is called at once, for everything.
func (n *Node) OnInvalidation(f func(invalidation.Target)) {
	if n.made(); f == nil {
		panic("gossip: OnInvalidation without a function: nothing would remove what is invalidated")
	}
	n.removals.OnInvalidation(f)
}

// Concerning returns the remembered invalidations that apply to the object of an identity. The
// object may be fetched only from siblings that have applied all of them ([Node.Applied]). If ok is
// false, there are too many to name, and it may be fetched from no sibling. Concerning is quick.
func (n *Node) Concerning(identity string) (ids []invalidation.ID, ok bool) {
	return n.made().removals.Concerning(identity)
}

// Applied reports whether this peer has applied all of these invalidations, and so removed their
// targets.
func (n *Node) Applied(ids ...invalidation.ID) bool { return n.made().removals.Applied(ids...) }

const catchUpWait = 2 * time.Second

// catchUp waits until this peer has fetched the invalidations that one other member knows, and
// applied them. If others know more, the comparison of sums shows it later.
func (n *Node) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpWait)
	defer cancel()
	done := make(chan struct{})
	if !n.work.Go(func() {
		defer close(done)
		n.inLoop(n.handleMemberEvents)
		for name, m := range *n.members.Load() {
			if m.up.Load() && n.removals.Recall(name) == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
		}
	}) {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	n.removals.Settled(ctx)
}
