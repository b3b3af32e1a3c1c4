package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// For so long an operator waits for a purge, here and by the others. What takes
// longer goes on.
const purgeWait = 400 * time.Millisecond

// orderRow asks for an [admin.ClusterRow].
const orderRow = "row"

// handleCommand does what another peer asks for.
func (n *Node) handleCommand(_ context.Context, _, operation string, _ []byte) (any, error) {
	if operation != orderRow {
		return nil, fmt.Errorf("%s does not know the operation %q", n.cfg.Name, operation)
	}
	return admin.RowOf(n.Status()), nil
}

// errPurging means that a purge is not done yet, and goes on.
var errPurging = fmt.Errorf("not done within %v: it goes on, and the log says when it is done", purgeWait)

// purgeHere removes responses of this peer. It does not wait for a purge that takes
// long, as it does while a part hangs that hears of what is removed: errPurging.
func (n *Node) purgeHere(o admin.PurgeOrder) (int, error) {
	type result struct {
		removed int
		err     error
	}
	done := make(chan result, 1)
	begun := time.Now()
	go func() {
		purge := n.proxy.Purge
		if o.Prefix {
			purge = n.proxy.PurgePrefix
		}
		removed, err := purge(o.URL)
		if took := time.Since(begun); took >= purgeWait {
			n.log.Warn("a purge took long", "url", o.URL, "prefix", o.Prefix, "removed", removed, "took", took)
		}
		done <- result{removed, err}
	}()
	late := time.NewTimer(purgeWait)
	defer late.Stop()
	select {
	case r := <-done:
		return r.removed, r.err
	case <-late.C:
		return 0, errPurging
	}
}

// Purge removes responses; see [admin.Source]. Everywhere, it is an invalidation.
func (n *Node) Purge(ctx context.Context, o admin.PurgeOrder) (r admin.PurgeReport, err error) {
	removed, err := n.purgeHere(o)
	own := admin.Purged{Peer: n.cfg.Name, Removed: removed}
	switch {
	case errors.Is(err, errPurging):
		own.Error = err.Error()
	case err != nil:
		return r, err
	}
	r.Peers = []admin.Purged{own}
	n.log.Info("purged", "url", o.URL, "prefix", o.Prefix, "everywhere", o.Everywhere, "removed", removed)
	if o.Everywhere {
		r.Peers = append(r.Peers, n.purgeOthers(ctx, o)...)
	}
	return r, nil
}

// purgeOthers has all others purge, and waits for those that live. One that is late, or
// dead, hears of it after it has returned.
func (n *Node) purgeOthers(ctx context.Context, o admin.PurgeOrder) []admin.Purged {
	target, err := n.proxy.Target(o.URL, o.Prefix)
	if err != nil {
		return []admin.Purged{{Peer: "all others", Error: err.Error()}} // purgeHere has read it
	}
	soon, cancel := context.WithTimeout(ctx, purgeWait)
	defer cancel()
	err = n.gossip.Invalidate(soon, target)
	var late *gossip.UnreachedError
	if err != nil && !errors.As(err, &late) {
		return []admin.Purged{{Peer: "all others", Error: err.Error()}}
	}
	soon, cancel = context.WithTimeout(ctx, purgeWait/2)
	defer cancel()
	members, now := n.readings.peers.get(soon, n.gossip.Members) // those known last, if the exchange hangs
	if !now && members == nil {
		return []admin.Purged{{Peer: "all others", Error: "not known: the exchange hangs"}}
	}
	out := make([]admin.Purged, len(members))
	for i, m := range members {
		out[i] = admin.Purged{Peer: m.Name}
		switch {
		case !m.Alive:
			out[i].Error = "not reached: the peer is dead, and hears of it when it comes back"
		case late != nil && slices.Contains(late.Members, m.Name):
			out[i].Error = fmt.Sprintf("not done within %v: it is still being told", purgeWait)
		}
	}
	return out
}

// An invalidator is the cluster as the cache sees it. The node is there once gossip is.
type invalidator struct{ *gossip.Node }

// applied removes what was invalidated, by whichever peer.
func (n *Node) applied(t invalidation.Target) {
	if removed := n.proxy.Invalidated(t); removed > 0 {
		n.log.Info("removed what was invalidated", "target", t, "removed", removed)
	}
}
