package gossip

import (
	"log/slog"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// publishFirst publishes the present contents of the filter. If the digest of a former life was
// saved, they become its next version, so that no peer has to fetch a snapshot.
func (n *Node) publishFirst() {
	filter, former := n.cfg.Holdings.filter, n.former
	n.former = nil
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

// publishLoop publishes changes of the filter when the engine decides so.
func (n *Node) publishLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-timer.C:
			n.publish(n.cfg.Holdings.filter)
			timer.Reset(max(n.cfg.Publish.For(len(n.liveMembers())).MinInterval/2, 5*time.Millisecond))
		case f := <-n.publisher:
			f()
		}
	}
}

func (n *Node) publish(filter *digest.CountingFilter) {
	changed := filter.Changed()
	due := false
	n.with(func(e *exchange.Engine) {
		// A rebuilt filter is a new version without a change since it was frozen.
		rebuilt := filter.Current().Version().Epoch != e.Self().Version.Epoch
		due = rebuilt || e.PublishDue(time.Now(), changed)
	})
	if !due {
		return
	}
	f, d := filter.AdvanceDelta()
	n.warnOfRefusal(f)
	n.update(func(e *exchange.Engine) { e.Publish(time.Now(), f, d) })
}

// warnOfRefusal logs that peers with the limits of this one refuse its digest, or that the digest is
// outgrown. Nothing else at this peer would show why others find none of its objects, or objects that
// it does not hold.
func (n *Node) warnOfRefusal(f *digest.Filter) {
	if err := n.digestLimits.Accept(f.Geometry(), f.Ones()); err != nil {
		n.limited.log(slog.LevelWarn, "refused digest", "the digest is too large: peers with the same limits refuse it", "err", err)
	}
	if h := n.cfg.Holdings; h.Outgrown() && uint64(h.filter.Len()) > 2*h.Planned() { // a program that replans has done so before
		n.limited.log(slog.LevelWarn, "outgrown", "the digest was planned for fewer objects, and claims more that this peer does not hold; see Holdings.Replan",
			"objects", h.filter.Len(), "planned", h.Planned())
	}
}
