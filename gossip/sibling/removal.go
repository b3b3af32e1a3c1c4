package sibling

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// invalidatedField names, in a lookup request, the invalidations that match its object
// (PROTOCOL.md, section 12.3).
const invalidatedField = "Summarycache-Invalidated"

// A Cluster invalidates objects at all caches. A [gossip.Node] is one.
type Cluster interface {
	Invalidate(context.Context, ...invalidation.Target) error
	Concerning(identity string) (ids []invalidation.ID, ok bool)
	Applied(ids ...invalidation.ID) bool
}

// NameInvalidations writes the invalidations that match an identity ([gossip.Node.Concerning])
// into the header of a lookup request for its object. It returns false if no sibling may be asked.
// c nil = there are no invalidations.
func NameInvalidations(h http.Header, c Cluster, identity string) bool {
	if c == nil {
		return true
	}
	ids, ok := c.Concerning(identity)
	if len(ids) > 0 {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = id.String()
		}
		h[invalidatedField] = []string{strings.Join(names, ", ")}
	}
	return ok
}

// UpToDate reports whether this cache has applied all invalidations that the header of a lookup
// request names. If not, the request must be answered as a miss, since the object here may
// be an invalidated one. c nil = none was applied.
func UpToDate(h http.Header, c Cluster) bool {
	if h[invalidatedField] == nil {
		return true
	}
	var ids []invalidation.ID
	for m := range rfc9111.Members(h[invalidatedField]) {
		id, ok := invalidation.ParseID(m)
		if !ok || len(ids) >= invalidation.MaxConcerning {
			return false
		}
		ids = append(ids, id)
	}
	return len(ids) == 0 || c != nil && c.Applied(ids...)
}

// removeWait is how long a request that changes an object waits for its removal at all peers.
const removeWait = time.Second

// removeChanged removes the objects that a request with that answer makes out of date (RFC 9111
// section 4.4). identity is that of its URL. Peers that are slow remove them later.
func removeChanged(c Cluster, r *http.Request, status int, h http.Header, identity string) {
	urls := rfc9111.Invalidated(r.Method, r.URL, status, h)
	if c == nil || len(urls) == 0 {
		return
	}
	ids := []string{identity}
	for _, url := range urls[1:] {
		ids = append(ids, rfc9111.Identity(url, nil, nil))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), removeWait)
	defer cancel()
	_ = c.Invalidate(ctx, targets(ids)...)
}

// targets returns the targets of an invalidation of these identities.
func targets(identities []string) []invalidation.Target {
	all := make([]invalidation.Target, len(identities))
	for i, identity := range identities {
		all[i] = invalidation.Target{Kind: invalidation.Identity, Name: identity}
	}
	return all
}
