package sibling

import (
	"context"
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
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

// Remove removes objects, by identity, here and at all siblings. It returns when that is done,
// usually within a second. From then on neither a sibling nor a load that began before brings
// back an old object. If ctx ends earlier, the error is a [*gossip.UnreachedError] that names the
// peers that are late; they remove the objects as soon as they can. See [gossip.Node.Invalidate].
func (c *Cache) Remove(ctx context.Context, identities ...string) error {
	return c.Invalidate(ctx, targets(identities)...)
}

// Invalidate is Remove for all objects that targets select, such as those with a prefix.
func (c *Cache) Invalidate(ctx context.Context, targets ...invalidation.Target) error {
	if c.cluster == nil {
		return errZero
	}
	return c.cluster.Invalidate(ctx, targets...)
}

// Set stores a value until it expires; the zero Time = for ever. It removes the old value at all
// siblings, like Remove, and returns the error of that; siblings find the new value here. After
// concurrent calls at two peers, either value may be found.
func (c *Cache) Set(ctx context.Context, identity string, value []byte, expires time.Time) error {
	err := c.Remove(ctx, identity)
	if c.Store != nil && int64(len(value)) <= c.maxBytes() {
		c.put(c.gate.enter(identity), identity, identity, &Object{Body: value, Expires: expires})
	}
	return err
}

// A gate keeps objects out of the store that were being fetched when they were invalidated. The
// seed must be set.
type gate struct {
	seed maphash.Seed
	mu   sync.RWMutex // read-locked while an object is stored, locked while objects are removed
	all  uint64       // number of invalidations of more than one object
	eras [4096]uint64 // number of invalidations of one object, by hash of the identity
}

// A pass lets the object of an identity into the store, unless it was invalidated after the pass
// was issued.
type pass struct{ all, era uint64 }

// era returns the counter of the invalidations of an identity.
func (g *gate) era(identity string) *uint64 {
	return &g.eras[maphash.String(g.seed, identity)%uint64(len(g.eras))]
}

// enter issues a pass. It must be called before the object is requested.
func (g *gate) enter(identity string) pass {
	era := g.era(identity)
	g.mu.RLock()
	defer g.mu.RUnlock()
	return pass{g.all, *era}
}

// put stores an object under id, which is identity or a variant of it, unless it was invalidated
// after p was issued.
func (c *Cache) put(p pass, identity, id string, o *Object) bool {
	era := c.gate.era(identity)
	c.gate.mu.RLock()
	defer c.gate.mu.RUnlock()
	if p != (pass{c.gate.all, *era}) {
		return false
	}
	c.Store.Put(id, o)
	return true
}

// invalidated removes the objects that t selects from this cache. Objects here have no tags, so
// a tag removes them all. Those that should only become stale are removed as well.
func (c *Cache) invalidated(t invalidation.Target) {
	c.count(&c.stats.n.Invalidations)
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.flights.forget(t.Matches)
	n := 0
	defer func() { c.coalescer.Invalidated(t, n) }()
	drop := func(identity string) {
		if _, ok := c.Store.Get(identity); ok {
			n++
		}
		c.Store.Drop(identity)
	}
	if t.Kind == invalidation.Identity {
		*c.gate.era(t.Name)++
		drop(t.Name)
		url, _ := rfc9111.SplitIdentity(t.Name)
		for _, id := range c.variants.Identities(url) {
			drop(id)
		}
		return
	}
	c.gate.all++
	for identity := range c.Store.Identities() {
		if t.Matches(identity) {
			drop(identity)
		}
	}
}
