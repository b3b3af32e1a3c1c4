package gossip

import (
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Holdings are the objects that a peer advertises in its digest, by identity. They hash the
// identities, so that the seed can change while objects come and go, and are otherwise a
// [digest.Set]: exactly what is held. [Node.Holdings] returns those that New created for
// Config.Objects. Holdings are safe for concurrent use. Nil Holdings, as of a node that only listens, are
// no place for objects: their methods panic, except Keys.
type Holdings struct {
	set *digest.Set
	*seeding
}

// A seeding is what the parts of Holdings share.
type seeding struct {
	published atomic.Bool // by a node

	reseed sync.Mutex // held while the seed changes, and while objects are replaced

	// writers is held shared while an identity is hashed and its key added or removed, and
	// exclusively while the seed changes.
	writers sync.RWMutex
	next    *renaming // nil unless the seed is changing
}

var errNoFilter = errors.New("gossip: these Holdings are nil or have no filter: set Objects in the Config of their " +
	"node, or use NewHoldings")

// made returns h, and panics if there is no filter.
func (h *Holdings) made() *Holdings {
	if h.Keys() == nil {
		panic(errNoFilter.Error())
	}
	return h
}

// A renaming maps the keys that were added or removed during a change of the seed to their keys
// under the next seed.
type renaming struct {
	seed uint64
	mu   sync.Mutex
	keys map[digest.Key]digest.Key
}

// NewHoldings returns Holdings that keep their keys in set, for [Config]. Nothing else may add keys to
// the set from then on, except if [Holdings.Reseed] is never called.
func NewHoldings(set *digest.Set) *Holdings { return &Holdings{set, new(seeding)} }

// PlanHoldings returns Holdings for a number of objects and a rate of false positives, under the seed
// of the cluster's secret (nil if it has none). profile says what the identities are: [digest.HTTP], or
// [digest.Opaque] for names that mean something to these peers only. Their filter grows if there are more: see
// [digest.PlanSet].
func PlanHoldings(objects uint64, falsePositives float64, profile digest.Profile, secret []byte) (*Holdings, error) {
	set, err := digest.PlanSet(objects, falsePositives, profile, digest.SeedFrom(secret), uint64(time.Now().Unix()))
	if err != nil {
		return nil, err
	}
	return NewHoldings(set), nil
}

// Keys returns the set of the identities' keys; nil for nil Holdings.
func (h *Holdings) Keys() *digest.Set {
	if h == nil {
		return nil
	}
	return h.set
}

// Part returns other Holdings, empty at first, for a tier or a shard of the cache. Peers find an object
// here as long as any part holds it: see [digest.Set.Part].
func (h *Holdings) Part() *Holdings {
	return &Holdings{h.made().set.Part(), h.seeding}
}

// Add adds an object that is held. It returns false, and changes nothing, if the object is there
// already. Call it before others can find the object here.
func (h *Holdings) Add(identity string) bool { return h.change((*digest.Set).Add, identity) }

// Remove removes an object, or returns false if it is not there. Call it after the object has gone.
func (h *Holdings) Remove(identity string) bool { return h.change((*digest.Set).Remove, identity) }

// Has reports whether an object is held.
func (h *Holdings) Has(identity string) bool { return h.change((*digest.Set).Has, identity) }

// Retain adds a reference to an object, for a cache that may have several copies of it: it is held
// until [Holdings.Release] has been called as often.
func (h *Holdings) Retain(identity string) {
	h.change(func(s *digest.Set, k digest.Key) bool { s.Retain(k); return true }, identity)
}

// Release takes away a reference, or returns false if the object is not there.
func (h *Holdings) Release(identity string) bool { return h.change((*digest.Set).Release, identity) }

// change calls f with the key of an identity. While the seed changes, it also records the key under
// the next one.
func (h *Holdings) change(f func(*digest.Set, digest.Key) bool, identity string) bool {
	h.made().writers.RLock()
	defer h.writers.RUnlock()
	k := digest.KeyOfString(h.set.Geometry().Seed, identity)
	if h.next != nil {
		h.next.mu.Lock()
		h.next.keys[k] = digest.KeyOfString(h.next.seed, identity)
		h.next.mu.Unlock()
	}
	return f(h.set, k)
}

// Replace makes the objects that held yields the only ones, as after a restart of an engine that lists
// what it holds. Objects that are added or removed while it runs are left as they are then.
func (h *Holdings) Replace(held iter.Seq[string]) {
	if h.made(); held == nil {
		panic("gossip: Replace with nil: pass an empty sequence if nothing is held")
	}
	h.reseed.Lock()
	defer h.reseed.Unlock()
	seed := h.set.Geometry().Seed
	h.set.Replace(func(yield func(digest.Key) bool) {
		for identity := range held {
			if !yield(digest.KeyOfString(seed, identity)) {
				return
			}
		}
	})
}

// Reseed changes the seed for hashing identities: see [Node.SetSecrets] for when, and
// [digest.SeedFrom] for the new seed. held must yield, at least once, every identity that was added
// before the call and is not removed meanwhile, those of other parts as well; objects may be added and
// removed while Reseed runs. The digest is published in a new epoch, which all peers fetch as a
// snapshot; until they have it, they use the one before. Reseed takes the memory of a second set and
// filter while it runs, and about as long as adding them all anew. If the seed is in use already, it
// does nothing.
func (h *Holdings) Reseed(seed uint64, held iter.Seq[string]) error {
	if h.Keys() == nil {
		return errNoFilter
	}
	if held == nil {
		return errors.New("gossip: Reseed without what is held: pass a sequence of all identities")
	}
	h.reseed.Lock()
	defer h.reseed.Unlock()
	g := h.set.Geometry()
	if g.Seed == seed {
		return nil
	}
	next := &renaming{seed: seed, keys: make(map[digest.Key]digest.Key)}
	h.setNext(next)
	defer h.setNext(nil)
	was := g.Seed
	g.Seed = seed
	return h.set.Inside().Rekey(g, func(yield func(digest.Key, digest.Key) bool) {
		for identity := range held {
			if !yield(digest.KeyOfString(was, identity), digest.KeyOfString(seed, identity)) {
				return
			}
		}
	}, &h.writers, func(k digest.Key) digest.Key { return next.keys[k] })
}

func (h *Holdings) setNext(r *renaming) {
	h.writers.Lock()
	h.next = r
	h.writers.Unlock()
}
