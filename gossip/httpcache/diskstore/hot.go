package diskstore

import (
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// hotSet keeps the most used objects in memory, bounded in bytes: their decoded descriptions and, of small objects,
// the bodies. The nil set keeps nothing.
//
// It takes the memory of each from an account, up to what the index of all objects leaves of its limit. It gives some
// back when others are short, and for a while takes nothing then.
//
// Once it is full, it takes an object only when that is loaded for the second time within a while: adding objects
// that are requested once, and evicting others for them, costs more than reading them.
type hotSet struct {
	cache  *otter.Cache[uint64, *hotObject]
	limit  int64           // bytes of the index and the set together
	index  *atomic.Int64   // bytes of the index
	memory *budget.Account // nil = only the limit counts

	held    atomic.Int64 // bytes of its objects
	yielded atomic.Int64 // when it gave some back for others, Unix nanoseconds

	full atomic.Bool     // an object was evicted
	once []atomic.Uint64 // numbers of objects that were loaded once; each slot has the last one
}

// A hotObject is what is in memory of an object. It is immutable, but that it is taken.
type hotObject struct {
	lent    *[]byte     // memory of body, which the view that takes it gives back; nil = the set may keep body
	taken   atomic.Bool // a view has lent
	value   any
	body    []byte
	hasBody bool
	sums    []uint64  // of the blocks of the body
	one     [1]uint64 // memory of sums
	size    int
}

// Value returns the decoded description. It is shared and must not be changed.
func (h *hotObject) Value() any { return h.value }

// take reports whether a view may use the body: if its memory is lent, only one may.
func (h *hotObject) take() bool { return h.lent == nil || !h.taken.Swap(true) }

// weight is what the object takes in memory.
func (h *hotObject) weight() int { return h.size + hotOverhead }

// hotOverhead is the memory in bytes that a hot object takes in addition to its description and body, as measured:
// decoded header maps, index nodes.
const hotOverhead = 1536

// hotSlot is the number of bytes of a hot set per slot of once. In a set of 64 MiB, an object is taken if it is
// loaded again within about 8,000 loads.
const hotSlot = 8 << 10

const (
	hotLeast   = 8               // this part of the limit is the set's, however large the index
	hotSteps   = 64              // in which the index takes from it
	hotYields  = 8               // this part of the limit, at least, is given back at a time
	hotRegrows = 5 * time.Second // after it gave some back
)

// newHotSet returns a set for which limit bytes, less those of the index, may be taken from an account.
func newHotSet(limit int64, index *atomic.Int64, memory *budget.Account) *hotSet {
	if limit <= 0 {
		return nil
	}
	limit = max(limit, 64<<10)
	h := &hotSet{once: make([]atomic.Uint64, limit/hotSlot), limit: limit, index: index, memory: memory}
	h.cache = otter.Must(&otter.Options[uint64, *hotObject]{
		MaximumWeight: uint64(limit),
		Weigher:       func(_ uint64, h *hotObject) uint32 { return uint32(h.weight()) },
		OnAtomicDeletion: func(e otter.DeletionEvent[uint64, *hotObject]) {
			if e.Cause == otter.CauseOverflow && !h.full.Load() {
				h.full.Store(true)
			}
			h.held.Add(-int64(e.Value.weight()))
			memory.Give(int64(e.Value.weight()))
		},
		Logger: &otter.NoopLogger{},
	})
	memory.OnShortage(func(bytes int64) {
		h.yielded.Store(time.Now().UnixNano())
		h.shrink(max(h.held.Load()-max(bytes, h.limit/hotYields), h.step()))
	})
	return h
}

// most returns how many bytes the set may take at this moment.
func (h *hotSet) most() int64 { return max(h.limit-h.index.Load(), h.limit/hotLeast) }

// step is the number of bytes by which the index grows before the set follows, and which the set does not give back.
func (h *hotSet) step() int64 { return h.limit / hotSteps }

// shrink makes the set so small, and then lets it grow to what it may take.
func (h *hotSet) shrink(bytes int64) {
	h.cache.SetMaximum(uint64(max(bytes, 0))) // this evicts
	h.cache.SetMaximum(uint64(h.most()))
}

func (h *hotSet) get(o *object) (*hotObject, bool) {
	if h == nil {
		return nil, false
	}
	return h.cache.GetIfPresent(o.seq)
}

// wants reports whether the set keeps an object that is being loaded.
func (h *hotSet) wants(o *object) bool {
	return h != nil && (!h.full.Load() || h.once[o.seq%uint64(len(h.once))].Swap(o.seq) == o.seq)
}

// put keeps an object that it wants, in the place of others if there is no memory left.
func (h *hotSet) put(o *object, v *hotObject) {
	w := int64(v.weight())
	if h.memory.Room() < w {
		h.shrink(h.held.Load() - w)
	}
	if time.Since(instant(h.yielded.Load())) < hotRegrows || !h.memory.Take(w) {
		return
	}
	h.held.Add(w)
	h.cache.Set(o.seq, v)
	if o.is(objLeft) { // it left the store meanwhile, and drop came too early
		h.cache.Invalidate(o.seq)
	}
}

// drop forgets an object that is marked as having left the store.
func (h *hotSet) drop(o *object) {
	if h != nil {
		h.cache.Invalidate(o.seq)
	}
}

func (h *hotSet) bytes() int64 {
	if h == nil {
		return 0
	}
	return h.held.Load()
}

func (h *hotSet) close() {
	if h != nil {
		h.cache.InvalidateAll()
		h.cache.StopAllGoroutines()
	}
}
