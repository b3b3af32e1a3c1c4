package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/control"
	"github.com/summarycache/summarycache/gossip"
)

const (
	// controlTimeout is how long another peer may take to do what it is told.
	controlTimeout = 10 * time.Second
	// For so long an operator waits for a purge, here and by the others. What takes
	// longer goes on.
	purgeWait = 400 * time.Millisecond
)

// What one peer asks of another.
const (
	orderPurge = "purge"
	orderRow   = "row" // admin.ClusterRow
)

// obey does what another peer asks for.
func (n *Node) obey(_ context.Context, from, operation string, body []byte) (any, error) {
	switch operation {
	case orderRow:
		return admin.RowOf(n.Status()), nil
	case orderPurge:
	default:
		return nil, fmt.Errorf("%s does not know the operation %q", n.cfg.Name, operation)
	}
	var order admin.PurgeOrder
	if err := json.Unmarshal(body, &order); err != nil {
		return nil, fmt.Errorf("%s cannot read the order: %w", n.cfg.Name, err)
	}
	removed, err := n.purgeHere(order)
	if err != nil {
		return nil, err
	}
	n.log.Info("purged for another peer", "by", from, "url", order.URL, "prefix", order.Prefix, "removed", removed)
	return removed, nil
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

// Purge removes responses; see [admin.Source]. Everywhere, this peer comes first,
// so that nothing which the others may still bring back is newer than its purge.
func (n *Node) Purge(ctx context.Context, o admin.PurgeOrder) (r admin.PurgeReport, err error) {
	if o.Everywhere && n.cfg.Secret == nil {
		return r, control.ErrNoSecret
	}
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
		o.Everywhere = false
		r.Peers = append(r.Peers, n.purgeOthers(ctx, o)...)
	}
	return r, nil
}

// purgeOthers has all others purge. Those that take long are still told, after it
// has returned.
func (n *Node) purgeOthers(ctx context.Context, o admin.PurgeOrder) []admin.Purged {
	soon, cancel := context.WithTimeout(ctx, purgeWait/2)
	defer cancel()
	members, now := n.readings.peers.get(soon, n.gossip.Members) // those known last, if the exchange hangs
	if !now && members == nil {
		return []admin.Purged{{Peer: "all others", Error: "not told: the exchange hangs"}}
	}
	out := make([]admin.Purged, len(members))
	type result struct {
		i int
		p admin.Purged
	}
	results := make(chan result, len(members))
	for i, m := range members {
		out[i] = admin.Purged{Peer: m.Name, Error: fmt.Sprintf("no answer within %v: it is still being told, and the log says if that fails", purgeWait)}
		go func() { results <- result{i, n.purgeAt(context.WithoutCancel(ctx), m, o)} }()
	}
	late := time.NewTimer(purgeWait)
	defer late.Stop()
	for range members {
		select {
		case r := <-results:
			out[r.i] = r.p
		case <-late.C:
			return out
		}
	}
	return out
}

func (n *Node) purgeAt(ctx context.Context, m gossip.Member, o admin.PurgeOrder) admin.Purged {
	p := admin.Purged{Peer: m.Name}
	switch {
	case !m.Alive:
		p.Error = "not reached: the peer is dead; what it holds is still there when it comes back"
		return p
	case m.Service == "":
		p.Error = "not reached: the peer tells no address"
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if err := n.control.Call(ctx, n.peers, m.Name, m.Service, orderPurge, o, &p.Removed); err != nil {
		p.Error = err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			p.Error = fmt.Sprintf("no answer within %v", controlTimeout)
		}
		n.log.Warn("another peer did not purge", "member", m.Name, "url", o.URL, "err", err)
	}
	return p
}
