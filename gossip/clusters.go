package gossip

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// otherClusters are those of which this peer has refused something.
type otherClusters struct {
	refused atomic.Int64 // packets and streams

	mu    sync.Mutex
	named map[string]bool // those that are logged
}

// maxClusters bounds the names that are logged: strangers can make them up.
const maxClusters = 64

// noteCluster counts a refusal if err says that a peer is of another cluster, and logs each cluster once: what is wrong
// stays so until somebody changes it. member and at are what is known of the peer. If at is an ip:port, no member is
// there any more.
func (g *group) noteCluster(err error, member, at string) bool {
	var other *secrets.ClusterError
	if !errors.As(err, &other) {
		return false
	}
	if ap, err := netip.ParseAddrPort(at); err == nil {
		g.transport.screen.Displaced("", ap)
	}
	o := &g.otherClusters
	o.refused.Add(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.named == nil {
		o.named = make(map[string]bool)
	}
	if !o.named[other.Theirs] && len(o.named) < maxClusters {
		o.named[other.Theirs] = true
		g.log.Warn("refused a peer of another cluster", "at", at, "member", member, "theirs", other.Theirs,
			"ours", other.Ours)
	}
	return true
}
