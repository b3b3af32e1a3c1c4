package gossip

import (
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// publishFirst publishes the present contents of the filter. If the digest of a former life was
// saved, they become its next version, so that no peer has to fetch a snapshot.
func (n *Node) publishFirst() {
	filter, former := n.cfg.Holdings.Filter(), n.former
	n.former = nil
	n.cfg.Holdings.set.Settle()
	n.replans = n.cfg.Holdings.set.Replans()
	now := time.Now()
	if former != nil {
		f, d, err := filter.Follow(former)
		if err == nil {
			n.log.Info("continuing the digest from before the restart", "version", f.Version(), "changed", d.Len())
			n.engine.Continue(now, former, f, d)
			return
		}
		n.log.Debug("beginning a new digest", "err", err)
	}
	f, d := filter.AdvanceDelta()
	n.warnOfRefusal(f)
	n.engine.Publish(now, f, d)
}

// publishLoop publishes changes of the filter when the engine decides so. While nothing changes, it
// sleeps.
func (n *Node) publishLoop() {
	filter := n.cfg.Holdings.Filter()
	changed := make(chan struct{}, 1)
	filter.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	timer := time.NewTimer(0) // for what changed before
	defer timer.Stop()
	first := changed // nil while changes wait for the timer
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-first:
			first = nil
			timer.Reset(n.beginWait())
		case <-timer.C:
			if wait := n.publish(filter); wait > 0 {
				timer.Reset(wait)
			} else {
				first = changed
			}
		case f := <-n.publisher:
			f()
		}
	}
}

// beginWait tells the engine of a first change, and returns when to call publish. Others may come with
// it, so that it waits as long as it would on average if the loop looked twice in the least interval.
func (n *Node) beginWait() (wait time.Duration) {
	n.with(func(e *exchange.Engine) {
		now := time.Now()
		e.PublishIn(now, 0) // nothing had changed until now
		wait = e.PublishIn(now, 1)
	})
	least := n.cfg.Publish.For(len(n.liveMembers())).MinInterval
	return max(least/4, min(wait, least/2))
}

// publish publishes the changes if that is due. If there are changes that wait for more, it returns when
// to call it again, otherwise 0.
func (n *Node) publish(filter *digest.CountingFilter) time.Duration {
	changed := filter.Changed()
	wait := time.Duration(0)
	n.with(func(e *exchange.Engine) {
		// A rebuilt filter is a new version without a change since it was frozen.
		if filter.Current().Version().Epoch == e.Self().Version.Epoch {
			wait = e.PublishIn(time.Now(), changed)
		}
	})
	switch {
	case wait == 0:
		f, d := filter.AdvanceDelta()
		n.warnOfRefusal(f)
		n.update(func(e *exchange.Engine) { e.Publish(time.Now(), f, d) })
		return 0
	case changed == 0:
		return 0
	}
	return min(wait, max(n.cfg.Publish.For(len(n.liveMembers())).MinInterval/2, 5*time.Millisecond))
}

// warnOfRefusal logs that peers with the limits of this one refuse its digest, that its keys are no
// hashes, or that the digest is outgrown, and since when it is larger. Nothing else at this peer would show why
// others find none of its objects, or objects that it does not hold. The publishing goroutine calls it.
func (n *Node) warnOfRefusal(f *digest.Filter) {
	if err := n.digestLimits.Accept(f.Geometry(), f.Ones()); err != nil {
		n.log.Warn("the digest is too large: peers with the same limits refuse it", "err", err)
	}
	if err := f.Crowded(); err != nil {
		n.log.Warn("the digest claims objects that this peer does not hold: its keys are not uniform", "err", err)
	}
	held := n.cfg.Holdings.set
	if is := held.Replans(); is != n.replans {
		n.replans = is
		n.log.Info("planned a larger digest: the peer holds more objects than planned", "objects", held.Len(),
			"now", held.Planned(), "bits", f.Geometry().Bits, "epoch", f.Version().Epoch)
	}
	if planned := held.Planned(); held.Outgrown() && uint64(held.Len()) > 2*planned {
		n.log.Warn("the digest cannot be planned anew: it claims objects that this peer does not hold",
			"objects", held.Len(), "planned", planned)
	}
}
