package sibling

import (
	"context"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Cluster invalidates objects at all caches. A [gossip.Node] is one.
type Cluster interface {
	Invalidate(context.Context, ...invalidation.Target) error
	Concerning(identity string) (ids []invalidation.ID, ok bool)
	Applied(ids ...invalidation.ID) bool
}

// removeWait is how long a request that changes an object waits for its removal at all peers.
const removeWait = time.Second

// removeChanged removes the objects that a request with that answer makes out of date (RFC 9111
// section 4.4). identity is that of its URL. Peers that are slow remove them later.
func removeChanged(c Cluster, r *http.Request, status int, h http.Header, identity string) {
	urls := rfc9111.Invalidated(r, r.URL, status, h)
	if c == nil || len(urls) == 0 {
		return
	}
	targets := []invalidation.Target{{Kind: invalidation.Identity, Name: identity}}
	for _, url := range urls[1:] {
		targets = append(targets, invalidation.Target{Kind: invalidation.Identity, Name: rfc9111.Identity(url, nil, nil)})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), removeWait)
	defer cancel()
	_ = c.Invalidate(ctx, targets...)
}
