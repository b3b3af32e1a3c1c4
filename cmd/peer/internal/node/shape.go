package node

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
)

const (
	planCheck = 2 * time.Second // between two looks at whether the digest is still large enough
	planRoom  = 2               // a digest that is planned anew is made for so many times what is held
)

// shape is what the digest is made for.
type shape struct {
	changing sync.Mutex    // held while the digest is rebuilt
	planned  atomic.Uint64 // objects
	replans  atomic.Uint64
}

// shapeDigest makes the digest as the configuration plans it.
func (n *Node) shapeDigest() error {
	g, err := digest.GeometryFor(n.cfg.Objects, n.cfg.FalsePositives)
	if err != nil {
		return err
	}
	g.Seed = digest.SeedFrom(n.cfg.Secret)
	filter, err := digest.NewCountingFilter(g, uint64(n.started.Unix()))
	if err != nil {
		return err
	}
	n.holdings = gossip.NewHoldings(filter)
	n.shape.planned.Store(n.cfg.Objects)
	return nil
}

// watchPlan plans the digest anew whenever the peer has outgrown it.
func (n *Node) watchPlan() {
	ticker := time.NewTicker(planCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			n.replan()
		case <-n.stopped:
			return
		}
	}
}

// replan gives the digest a new geometry if it holds more than it was planned
// for, so that its false positives stay what they may be. The others answer from
// the digest before until they have a snapshot of this one: no lookup fails in between.
// A digest never shrinks while the peer runs; a sparse one costs next to nothing
// for the room that it has.
func (n *Node) replan() {
	filter := n.holdings.Filter()
	held, planned := uint64(filter.Len()), n.shape.planned.Load()
	if held <= planned {
		return
	}
	n.shape.changing.Lock()
	defer n.shape.changing.Unlock()
	g, err := digest.GeometryFor(planRoom*held, n.cfg.FalsePositives)
	if err == nil {
		g.Seed = filter.Geometry().Seed
		err = filter.Rebuild(g, n.keys(g.Seed))
	}
	if err != nil { // more objects than a digest can have
		n.log.Error("the digest cannot be planned anew", "objects", held, "planned", planned, "err", err)
		return
	}
	n.shape.planned.Store(planRoom * held)
	n.shape.replans.Add(1)
	n.log.Info("planned a larger digest: the peer holds more objects than planned", "objects", held, "planned", planned,
		"now", planRoom*held, "bits", g.Bits, "epoch", filter.Current().Version().Epoch)
}

// keys are what stands for the listed objects in digests.
func (n *Node) keys(seed uint64) iter.Seq[digest.Key] {
	return func(yield func(digest.Key) bool) {
		for identity := range n.proxy.Advertised() {
			if !yield(digest.KeyOfString(seed, identity)) {
				return
			}
		}
	}
}
