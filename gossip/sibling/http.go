package sibling

import (
	"context"

	"github.com/summarycache/summarycache/gossip/peering"
)

// PeerOf returns the peer that a request is for or that answered it; "" = the request is not for
// a peer, or the origin answered.
func PeerOf(ctx context.Context) string { return peering.PeerOf(ctx) }
