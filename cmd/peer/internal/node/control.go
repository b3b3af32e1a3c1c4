package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/control"
	"github.com/summarycache/summarycache/gossip"
)

// controlTimeout is how long another peer may take to do what it is told.
const controlTimeout = 10 * time.Second

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

func (n *Node) purgeHere(o admin.PurgeOrder) (int, error) {
	if o.Prefix {
		return n.proxy.PurgePrefix(o.URL)
	}
	return n.proxy.Purge(o.URL)
}

// Purge removes responses; see [admin.Source]. Everywhere, this peer comes first,
// so that nothing which the others may still bring back is newer than its purge.
func (n *Node) Purge(ctx context.Context, o admin.PurgeOrder) (r admin.PurgeReport, err error) {
	if o.Everywhere && n.cfg.Secret == nil {
		return r, control.ErrNoSecret
	}
	removed, err := n.purgeHere(o)
	if err != nil {
		return r, err
	}
	r.Peers = []admin.Purged{{Peer: n.cfg.Name, Removed: removed}}
	n.log.Info("purged", "url", o.URL, "prefix", o.Prefix, "everywhere", o.Everywhere, "removed", removed)
	if !o.Everywhere {
		return r, nil
	}
	o.Everywhere = false
	members := n.gossip.Members()
	others := make([]admin.Purged, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { others[i] = n.purgeAt(ctx, m, o) })
	}
	all.Wait()
	r.Peers = append(r.Peers, others...)
	return r, nil
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
