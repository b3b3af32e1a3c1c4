package peering

import (
	"context"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// CoalescePath is the path of requests to owners, at the address of lookup requests.
const CoalescePath = "/.well-known/summarycache-fetching"

// A Peer is a living member of the cluster.
type Peer struct{ Name, Addr string }

// CoalescerConfig describes this peer and the others. All fields except Admit are needed.
type CoalescerConfig struct {
	Name   string                       // of this peer
	Others func() []Peer                // the other living members
	Key    func(identity string) uint64 // the same at all peers
	HTTP   http.RoundTripper            // to other peers
	// Admit returns an error if a request does not come from the peer that it names; nil = all
	// requests are believed.
	Admit func(r *http.Request, name string) error
}

// A Coalescer is what NewCoalescer of package sibling returns.
type Coalescer interface {
	http.Handler // answers the other peers
	InFlight(ctx context.Context, identity string, fetch time.Duration) (Peer, bool)
	Joined()
	Served(request http.Header)
	Invalidated(t invalidation.Target, n int)
	Counts() (asked, found, sent uint64) // lookups of owners, also at this peer; those that found another peer; messages
}
