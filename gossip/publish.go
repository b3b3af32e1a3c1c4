package gossip

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// publishFirst publishes the present contents of the filter. If the digest of a former life was
// saved, they become its next version, so that no peer has to fetch a snapshot.
func (h *host) publishFirst() {
	held, former := h.cfg.Holdings.set.Inside(), h.former
	h.former = nil
	held.Settle()
	h.replans = held.Replans()
	now := time.Now()
	if former != nil {
		f, d, err := held.Follow(former)
		if err == nil {
			h.log.Info("continuing the digest from before the restart", "version", f.Version(), "changed", d.Len())
			h.engine.Continue(now, former, f, d)
			return
		}
		h.log.Debug("beginning a new digest", "err", err)
	}
	f, d := held.Filter().AdvanceDelta()
	h.warnOfRefusal(f)
	h.engine.Publish(now, f, d)
}

// publishLoop publishes changes of the filter when the engine decides so. While nothing changes, it
// sleeps. The first change after that sets its timer and wakes nobody.
func (h *host) publishLoop() {
	held := h.cfg.Holdings.set.Inside()
	timer := time.NewTimer(0) // for what changed before
	defer timer.Stop()
	var idle atomic.Bool  // no changes wait
	var more atomic.Int64 // changes until something is done
	begun := time.Now()
	var since atomic.Int64 // nanoseconds from then until the first of those that wait
	held.OnChange(func() {
		switch {
		case more.Add(-1) != 0:
		case idle.Load():
			since.Store(int64(time.Since(begun)))
			timer.Reset(time.Duration(h.firstWait.Load()))
		default:
			h.lookAtHoldings()
		}
	})
	for {
		var call func()
		h.publishing.end()
		select {
		case <-h.ctx.Done():
			return
		case call = <-h.publisher:
		case <-h.changed:
		case <-timer.C:
		}
		h.publishing.begin()
		if call != nil {
			call()
			continue
		}
		idle.Store(true) // before the look, so that it sees what does not count
		more.Store(1)
		if many, wait := h.publish(held.Filter(), begun.Add(time.Duration(since.Load()))); wait > 0 {
			idle.Store(false)
			more.Store(int64(many)) // with twice as many it may be worth a message
			timer.Reset(wait)
		}
	}
}

// lookAtHoldings makes publishLoop look whether changes are to be published now.
func (h *host) lookAtHoldings() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// SetPublishing replaces [Advanced].Publish of a running node. It applies from the next change of the holdings on. An
// error means that an interval is negative, and that nothing has changed.
func (n inside) SetPublishing(p exchange.Publishing) error {
	if min(p.MinInterval, p.Interval) < 0 {
		return fmt.Errorf("gossip: publish %+v: want no interval below 0", p)
	}
	n.made().with(func(e *exchange.Engine) { e.SetPublishing(p) })
	return nil
}

// publish publishes the changes if that is due; the first came at since. If there are changes that wait for more, it
// returns how many, and when to call it again, otherwise 0. Others may come with a first change, so that this waits as
// long as it would on average if publishLoop looked twice in the least interval.
func (h *host) publish(filter *digest.CountingFilter, since time.Time) (changed int, next time.Duration) {
	changed = filter.Changed()
	var wait time.Duration
	var alone bool
	h.with(func(e *exchange.Engine) {
		now := time.Now()
		alone = e.Alone()
		h.firstWait.Store(int64(e.Publishing().MinInterval / 4))
		// A rebuilt filter is a new version without a change since it was frozen.
		if filter.Current().Version().Epoch == e.Self().Version.Epoch {
			e.PublishIn(since, 0)                        // nothing had changed until then
			if wait = e.PublishIn(now, changed); alone { // nobody reads it
				wait = max(wait, e.Publishing().Interval-now.Sub(since))
			}
		}
	})
	switch {
	case wait == 0:
		f, d := filter.AdvanceDelta()
		h.warnOfRefusal(f)
		h.update(func(e *exchange.Engine) { e.Publish(time.Now(), f, d) })
		return 0, 0
	case changed == 0:
		return 0, 0
	}
	if alone {
		return math.MaxInt, wait // whatever comes: see memberChanged
	}
	return changed, min(wait, max(time.Since(since), longLook)) // not all are told, and time alone can shorten a wait
}

// longLook is a wait without a look in between.
const longLook = time.Second / 4

// warnOfRefusal logs that peers with the limits of this one refuse its digest, that its keys are no
// hashes, or that the digest is outgrown, and since when it is larger. Nothing else at this peer would show why
// others find none of its objects, or objects that it does not hold. The publishing goroutine calls it.
func (h *host) warnOfRefusal(f *digest.Filter) {
	if err := h.digestLimits.Accept(f.Geometry(), f.Ones()); err != nil {
		h.log.Warn("the digest is too large: peers with the same limits refuse it", "err", err)
	}
	held := h.cfg.Holdings.set.Inside()
	if err := held.Crowded(); err != nil {
		h.log.Warn("the digest claims objects that this peer does not hold: its keys are not uniform", "err", err)
	}
	if is := held.Replans(); is != h.replans {
		h.replans = is
		h.log.Info("planned a larger digest: the peer holds more objects than planned", "objects", held.Len(),
			"now", held.Planned(), "bits", f.Geometry().Bits, "epoch", f.Version().Epoch)
	}
	if planned := held.Planned(); held.Outgrown() && uint64(held.Len()) > 2*planned {
		h.log.Warn("the digest cannot be planned anew: it claims objects that this peer does not hold",
			"objects", held.Len(), "planned", planned)
	}
}
