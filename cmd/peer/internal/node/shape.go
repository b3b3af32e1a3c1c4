package node

import (
	"time"

	"github.com/summarycache/summarycache/gossip"
)

// planCheck is the time between two checks whether the digest is still large enough.
const planCheck = 2 * time.Second

// shapeDigest makes the digest as the configuration plans it.
func (n *Node) shapeDigest() (err error) {
	n.holdings, err = gossip.PlanHoldings(n.config().Objects, n.config().FalsePositives, n.config().Secret)
	return err
}

// replan gives the digest a new geometry if it holds more objects than planned, so that
// its false positives stay within the configured rate. The other peers use the previous digest
// until they have a snapshot of the new one, so no lookup fails meanwhile. A digest never shrinks
// while the peer runs: a sparse one costs hardly more than a small one.
func (n *Node) replan() {
	if !n.holdings.Outgrown() {
		return
	}
	filter, before := n.holdings.Filter(), n.holdings.Planned()
	held := filter.Len()
	if err := n.holdings.Replan(n.proxy.Advertised()); err != nil { // more objects than a digest can have
		n.log.Error("the digest cannot be planned anew", "objects", held, "planned", before, "err", err)
		return
	}
	n.replans.Add(1)
	n.log.Info("planned a larger digest: the peer holds more objects than planned", "objects", held, "planned", before,
		"now", n.holdings.Planned(), "bits", filter.Geometry().Bits, "epoch", filter.Current().Version().Epoch)
}
