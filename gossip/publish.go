package gossip

import (
	"fmt"
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
// sleeps.
func (h *host) publishLoop() {
	held := h.cfg.Holdings.set.Inside()
	changed := make(chan struct{}, 1)
	var more atomic.Int64 // changes until the loop is told
	held.OnChange(func() {
		if more.Add(-1) == 0 {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	timer := time.NewTimer(0) // for what changed before
	defer timer.Stop()
	since := time.Now()
	for waiting := true; ; { // changes wait for the timer
		var call func()
		told := false
		h.looks.end()
		select {
		case <-h.ctx.Done():
			return
		case call = <-h.publisher:
		case <-changed:
			told = true
		case <-timer.C:
		}
		h.looks.begin()
		switch {
		case call != nil:
			call()
			continue
		case told && !waiting:
			waiting, since = true, time.Now() // for so short a time that nothing shortens it
			timer.Reset(h.beginWait())
			continue
		}
		more.Store(1) // before the look, so that it sees what does not count
		select {
		case <-changed: // is among what is looked at now: it must not begin a wait without a change
		default:
		}
		many, wait := h.publish(held.Filter(), since)
		if waiting = wait > 0; waiting {
			more.Store(int64(many)) // with twice as many it may be worth a message
			timer.Reset(wait)
		}
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

// beginWait tells the engine of a first change, and returns when to call publish. Others may come with
// it, so that it waits as long as it would on average if the loop looked twice in the least interval.
func (h *host) beginWait() (wait time.Duration) {
	var least time.Duration
	h.with(func(e *exchange.Engine) {
		now := time.Now()
		e.PublishIn(now, 0) // nothing had changed until now
		wait, least = e.PublishIn(now, 1), e.Publishing().MinInterval
	})
	return max(least/4, min(wait, least/2))
}

// publish publishes the changes if that is due. If there are changes that wait for more, it returns how many, and when
// to call it again, otherwise 0: after half of the wait, or of what they have waited, since not all changes are
// told, and time alone can shorten the wait.
func (h *host) publish(filter *digest.CountingFilter, since time.Time) (changed int, next time.Duration) {
	changed = filter.Changed()
	var wait, least time.Duration
	h.with(func(e *exchange.Engine) {
		least = e.Publishing().MinInterval
		// A rebuilt filter is a new version without a change since it was frozen.
		if filter.Current().Version().Epoch == e.Self().Version.Epoch {
			wait = e.PublishIn(time.Now(), changed)
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
	return changed, min(wait, max(min(wait, time.Since(since))/2, least/2, 5*time.Millisecond))
}

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
