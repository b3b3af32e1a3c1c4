package gossip

import (
	"log/slog"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// publishFirst publishes what the filter holds already. If the digest of a former life was
// saved, it is the next version of that, so that nobody has to fetch a snapshot.
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

// publishLoop checks whether the filter changed, and publishes when the engine
// decides to.
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
	n.mu.Lock()
	// A rebuilt filter is a new version without a change since it was frozen.
	rebuilt := filter.Current().Version().Epoch != n.engine.Self().Version.Epoch
	due := rebuilt || n.engine.PublishDue(time.Now(), changed)
	n.mu.Unlock()
	if !due {
		return
	}
	f, d := filter.AdvanceDelta()
	n.warnOfRefusal(f)
	n.tell(func(e *exchange.Engine) { e.Publish(time.Now(), f, d) })
}

// warnOfRefusal logs that peers with the limits of this one refuse its digest. Without that,
// nothing here would say why nobody finds anything at it.
func (n *Node) warnOfRefusal(f *digest.Filter) {
	if err := n.digestLimits.Accept(f.Geometry(), f.Ones()); err != nil {
		n.quiet.log(slog.LevelWarn, "refused digest", "the digest is too large: peers with the same limits refuse it", "err", err)
	}
	if h := n.cfg.Holdings; h.Outgrown() && uint64(h.filter.Len()) > 2*h.Planned() { // nobody is about to replan
		n.quiet.log(slog.LevelWarn, "outgrown", "more is held than the digest was planned for: it claims the more that is not; see Holdings.Replan",
			"objects", h.filter.Len(), "planned", h.Planned())
	}
}
