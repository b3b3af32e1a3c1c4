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
// identities, so that the seed can change while objects come and go. [Node.Holdings] returns those
// that New created for Config.Objects. Holdings are safe for concurrent use, and nil Holdings record
// nothing.
type Holdings struct {
	filter  *digest.CountingFilter
	planned atomic.Uint64 // objects; 0 for a filter of the program's own design
	rate    float64       // of false positives that it was planned for
	reseed  sync.Mutex    // held while the seed or the geometry changes

	// writers is held shared while an identity is hashed and its key added or removed, and
	// exclusively while the seed changes.
	writers sync.RWMutex
	next    *renaming // nil unless the seed is changing
}

var errNoFilter = errors.New("gossip: these Holdings have no filter: see NewHoldings and Config.Objects")

// A renaming maps the keys that were added or removed during a change of the seed to their keys
// under the next seed.
type renaming struct {
	seed uint64
	mu   sync.Mutex
	keys map[digest.Key]digest.Key
}

// NewHoldings returns Holdings that add objects to filter, for [Config]. Nothing else may write to
// the filter from then on, except if all writers add and remove keys, and [Holdings.Reseed] is never
// called.
func NewHoldings(filter *digest.CountingFilter) *Holdings { return &Holdings{filter: filter} }

// PlanHoldings returns Holdings with a filter for a number of objects and a rate of false positives,
// under the seed of the cluster's secret (nil if it has none). [Holdings.Replan] uses the same rate.
func PlanHoldings(objects uint64, falsePositives float64, secret []byte) (*Holdings, error) {
	g, err := digest.GeometryFor(objects, falsePositives)
	if err != nil {
		return nil, err
	}
	g.Seed = digest.SeedFrom(secret)
	filter, err := digest.NewCountingFilter(g, uint64(time.Now().Unix()))
	if err != nil {
		return nil, err
	}
	h := NewHoldings(filter)
	h.planned.Store(objects)
	h.rate = falsePositives
	return h, nil
}

// Filter returns the filter with the keys of the identities; nil for nil Holdings.
func (h *Holdings) Filter() *digest.CountingFilter {
	if h == nil {
		return nil
	}
	return h.filter
}

// Add adds an object that is held. Call it before others can find the object here. An object that
// is added twice must be removed twice.
func (h *Holdings) Add(identity string) {
	if h.Filter() == nil {
		return
	}
	h.writers.RLock()
	defer h.writers.RUnlock()
	h.filter.Add(h.key(identity))
}

// Remove removes an object. Call it after the object has gone. If the object certainly was not held,
// Remove has no effect and returns false.
func (h *Holdings) Remove(identity string) bool {
	if h.Filter() == nil {
		return false
	}
	h.writers.RLock()
	defer h.writers.RUnlock()
	return h.filter.Remove(h.key(identity))
}

// MayContain reports whether an object is held. Rarely it returns true for one that is not.
func (h *Holdings) MayContain(identity string) bool {
	if h.Filter() == nil {
		return false
	}
	h.writers.RLock()
	defer h.writers.RUnlock()
	return h.filter.MayContain(digest.KeyOfString(h.filter.Geometry().Seed, identity))
}

// key returns the key of an identity. While the seed changes, it also records the key under the next
// one.
func (h *Holdings) key(identity string) digest.Key {
	k := digest.KeyOfString(h.filter.Geometry().Seed, identity)
	if h.next != nil {
		h.next.mu.Lock()
		h.next.keys[k] = digest.KeyOfString(h.next.seed, identity)
		h.next.mu.Unlock()
	}
	return k
}

// Reseed changes the seed for hashing identities: see [Node.SetSecrets] for when, and
// [digest.SeedFrom] for the new seed. held must yield, at least once, every identity that was added
// before the call and is not removed meanwhile; objects may be added and removed while Reseed runs.
// The digest is published in a new epoch, which all peers fetch as a snapshot; until they have it,
// they use the one before. Reseed takes sixteen bytes per object while it runs, and about as long as
// adding them all anew. If the seed is in use already, it does nothing.
func (h *Holdings) Reseed(seed uint64, held iter.Seq[string]) error {
	if h.Filter() == nil {
		return errNoFilter
	}
	h.reseed.Lock()
	defer h.reseed.Unlock()
	g := h.filter.Geometry()
	if g.Seed == seed {
		return nil
	}
	next := &renaming{seed: seed, keys: make(map[digest.Key]digest.Key)}
	h.setNext(next)
	defer h.setNext(nil)
	was := g.Seed
	g.Seed = seed
	return h.filter.Rekey(g, func(yield func(digest.Key, digest.Key) bool) {
		for identity := range held {
			if !yield(digest.KeyOfString(was, identity), digest.KeyOfString(seed, identity)) {
				return
			}
		}
	}, &h.writers, func(k digest.Key) digest.Key { return next.keys[k] })
}

// Planned returns the number of objects that the filter was planned for; 0 for a filter of the
// program's own design.
func (h *Holdings) Planned() uint64 { return h.planned.Load() }

// Outgrown reports whether more objects are held than [Config.Objects], [PlanHoldings] or the last
// [Holdings.Replan] planned for, so that there are more false positives. It is quick. For a filter
// of the program's own design it returns false.
func (h *Holdings) Outgrown() bool {
	if h.Filter() == nil {
		return false
	}
	planned := h.planned.Load()
	return planned > 0 && uint64(h.filter.Len()) > planned
}

// Replan plans the filter for twice as many objects as are held, if it is outgrown. held and the
// publication are as with [Holdings.Reseed].
// [github.com/summarycache/summarycache/gossip/sibling.Cache] calls it.
func (h *Holdings) Replan(held iter.Seq[string]) error {
	if h.Filter() == nil {
		return errNoFilter
	}
	h.reseed.Lock()
	defer h.reseed.Unlock()
	if !h.Outgrown() {
		return nil
	}
	objects := 2 * uint64(h.filter.Len())
	g, err := digest.GeometryFor(objects, h.rate)
	if err != nil {
		return err
	}
	g.Seed = h.filter.Geometry().Seed
	err = h.filter.Rebuild(g, func(yield func(digest.Key) bool) {
		for identity := range held {
			if !yield(digest.KeyOfString(g.Seed, identity)) {
				return
			}
		}
	})
	if err == nil {
		h.planned.Store(objects)
	}
	return err
}

func (h *Holdings) setNext(r *renaming) {
	h.writers.Lock()
	h.next = r
	h.writers.Unlock()
}
