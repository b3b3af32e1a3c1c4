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

// invalidatedField names, in a question, the invalidations that concern its object
// (PROTOCOL.md, section 12.3).
const invalidatedField = "Summarycache-Invalidated"

// A Cluster is the other caches, as far as concerns what must not be served any more: a
// [gossip.Node].
type Cluster interface {
	Invalidate(context.Context, ...invalidation.Target) error
	Concerning(identity string) (ids []invalidation.ID, ok bool)
	Applied(ids ...invalidation.ID) bool
}

// NameInvalidations says in the header of a question for the object of an identity what
// [gossip.Node.Concerning] returns. It is false if nobody may be asked. c nil = nothing is
// invalidated.
func NameInvalidations(h http.Header, c Cluster, identity string) bool {
	if c == nil {
		return true
	}
	ids, ok := c.Concerning(identity)
	if len(ids) > 0 {
		var b strings.Builder
		for i, id := range ids {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(id.String())
		}
		h[invalidatedField] = []string{b.String()}
	}
	return ok
}

// UpToDate reports whether all has been removed here that a question's header says was
// invalidated; else the question is to be answered as a miss, since what is here may be
// that. c nil = nothing was.
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

// removeWait is for how long a request that changes an object waits until it is removed
// everywhere.
const removeWait = time.Second

// removeChanged has what a request that was answered so makes out of date removed (RFC 9111
// section 4.4). identity is that of its URL. A peer that takes too long removes it later.
func removeChanged(r *http.Request, status int, h http.Header, identity string, remove func(context.Context, ...invalidation.Target) error) {
	urls := rfc9111.Invalidated(r.Method, r.URL, status, h)
	if len(urls) == 0 {
		return
	}
	ids := []string{identity}
	for _, url := range urls[1:] {
		ids = append(ids, rfc9111.Identity(url, nil, nil))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), removeWait)
	defer cancel()
	_ = remove(ctx, targets(ids)...)
}

// targets are what an invalidation of these identities is for.
func targets(identities []string) []invalidation.Target {
	all := make([]invalidation.Target, len(identities))
	for i, identity := range identities {
		all[i] = invalidation.Target{Kind: invalidation.Identity, Name: identity}
	}
	return all
}

// Remove removes objects, by identity, here and at all siblings, and returns when it is
// done: within a second, mostly. From then on no sibling brings back what was
// there before, nor does a load that began before. If ctx ends before, the error is a
// [*gossip.UnreachedError] that names the peers that are late; they remove when they hear of it.
// See [gossip.Node.Invalidate]. A Cache that NewCache has not made removes here alone.
func (c *Cache) Remove(ctx context.Context, identities ...string) error {
	return c.Invalidate(ctx, targets(identities)...)
}

// Invalidate is Remove of all that targets say, such as those with a prefix.
func (c *Cache) Invalidate(ctx context.Context, targets ...invalidation.Target) error {
	if c.Store == nil {
		return ErrNoCache
	}
	if c.node != nil {
		return c.node.Invalidate(ctx, targets...)
	}
	for _, t := range targets {
		if err := t.Check(); err != nil {
			return err
		}
		c.invalidated(t)
	}
	return nil
}

// Set keeps a value until it expires; the zero Time = for ever. What was there before is
// removed at all siblings, as by Remove, whose error it returns; they find the new one
// here. Of two calls at once, at two peers, either may be the one that is found.
func (c *Cache) Set(ctx context.Context, identity string, value []byte, expires time.Time) error {
	if c.Store == nil {
		return ErrNoCache
	}
	err := c.Remove(ctx, identity)
	if int64(len(value)) <= c.maxBytes() {
		c.put(c.gate.enter(identity), identity, identity, &Object{Body: value, Expires: expires})
	}
	return err
}

// A gate keeps objects out that were on their way when they were invalidated. The zero
// value is ready.
type gate struct {
	once sync.Once
	seed maphash.Seed
	mu   sync.RWMutex // read-locked while an object goes into the store, locked while some are removed
	all  uint64       // invalidations of more than an object
	eras [4096]uint64 // invalidations of objects with a hash
}

// A pass lets the object of an identity into the store, unless it was invalidated since.
type pass struct{ all, era uint64 }

// era is where the invalidations of an identity are counted.
func (g *gate) era(identity string) *uint64 {
	g.once.Do(func() { g.seed = maphash.MakeSeed() })
	return &g.eras[maphash.String(g.seed, identity)%uint64(len(g.eras))]
}

// enter is to be called before an object is asked for.
func (g *gate) enter(identity string) pass {
	era := g.era(identity)
	g.mu.RLock()
	defer g.mu.RUnlock()
	return pass{g.all, *era}
}

// put stores an object under id, which is identity or that of a variant, unless it was
// invalidated since p.
func (c *Cache) put(p pass, identity, id string, o *Object) bool {
	defer c.replan() // once the gate is open again
	era := c.gate.era(identity)
	c.gate.mu.RLock()
	defer c.gate.mu.RUnlock()
	if p != (pass{c.gate.all, *era}) {
		return false
	}
	c.Store.Put(id, o)
	return true
}

// invalidated removes what t says from here: all if it is a tag, which no object here
// has, and what is to become stale too.
func (c *Cache) invalidated(t invalidation.Target) {
	c.count(&c.stats.n.Invalidations)
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if t.Kind == invalidation.Identity {
		*c.gate.era(t.Name)++
		c.flights.forget(func(identity string) bool { return identity == t.Name })
		c.Store.Drop(t.Name)
		if v := c.variants(); v != nil {
			for _, id := range v.Identities(strings.TrimPrefix(t.Name, "GET ")) {
				c.Store.Drop(id)
			}
		}
		return
	}
	c.gate.all++
	c.flights.forget(t.Matches)
	for identity := range c.Store.Identities() {
		if t.Matches(identity) {
			c.Store.Drop(identity)
		}
	}
}

// replan makes the digest larger if this peer holds more than it was planned for.
func (c *Cache) replan() {
	if c.node == nil || !c.node.Holdings().Outgrown() || !c.planning.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer c.planning.Store(false)
		_ = c.node.Holdings().Replan(c.Store.Identities()) // if it cannot, the node says what that means
	}()
}
