package store

import (
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// hotSet keeps the most used objects in memory, bounded in bytes: their decoded descriptions and,
// of small objects, the bodies. The nil set keeps nothing.
//
// Once it is full, it takes an object only when that is loaded for the second time within a while:
// adding objects that are requested once, and evicting others for them, costs more than reading
// them.
type hotSet struct {
	cache *otter.Cache[uint64, hotObject]
	full  atomic.Bool     // an object was evicted
	once  []atomic.Uint64 // numbers of objects that were loaded once; each slot has the last one

	sendables atomic.Int32  // files that bodies are sent from, see useSendable
	unsent    atomic.Uint32 // hits of long bodies without one
}

type hotObject struct {
	value   any
	body    []byte
	hasBody bool
	sum     uint64 // of the body
	size    int
	sent    *openFile // a copy of the body that the kernel can send; nil = none
}

// weight is what the object takes in memory.
func (h *hotObject) weight() int {
	n := h.size + hotOverhead
	if h.sent != nil {
		n += len(h.body)
	}
	return n
}

// hotOverhead estimates the bytes that a hot object costs in addition to its
// description and body: decoded header maps, index nodes.
const hotOverhead = 1 << 10

// hotSlot is the number of bytes of a hot set per slot of once. In a set of 64 MiB, an object is
// taken if it is loaded again within about 8,000 loads.
const hotSlot = 8 << 10

func newHotSet(limit int64) *hotSet {
	if limit <= 0 {
		return nil
	}
	limit = max(limit, 64<<10)
	h := &hotSet{once: make([]atomic.Uint64, limit/hotSlot)}
	h.cache = otter.Must(&otter.Options[uint64, hotObject]{
		MaximumWeight: uint64(limit),
		Weigher:       func(_ uint64, h hotObject) uint32 { return uint32(h.weight()) },
		OnAtomicDeletion: func(e otter.DeletionEvent[uint64, hotObject]) {
			if e.Cause == otter.CauseOverflow && !h.full.Load() {
				h.full.Store(true)
			}
			if e.Value.sent != nil {
				h.sendables.Add(-1)
				e.Value.sent.release()
			}
		},
		Logger: &otter.NoopLogger{},
	})
	return h
}

func (h *hotSet) get(o *Object) (hotObject, bool) {
	if h == nil {
		return hotObject{}, false
	}
	return h.cache.GetIfPresent(o.seq)
}

func (h *hotSet) put(o *Object, v hotObject) {
	if h == nil {
		return
	}
	if h.full.Load() && h.once[o.seq%uint64(len(h.once))].Swap(o.seq) != o.seq {
		return
	}
	h.set(o, v)
}

// set sets what is known of an object, and takes over its reference to the file.
func (h *hotSet) set(o *Object, v hotObject) {
	h.cache.Set(o.seq, v)
	if o.is(objLeft) { // it left the store meanwhile, and drop came too early
		h.cache.Invalidate(o.seq)
	}
}

// drop forgets an object that is marked as having left the store.
func (h *hotSet) drop(o *Object) {
	if h != nil {
		h.cache.Invalidate(o.seq)
	}
}

func (h *hotSet) bytes() int64 {
	if h == nil {
		return 0
	}
	return int64(h.cache.WeightedSize())
}

func (h *hotSet) close() {
	if h != nil {
		h.cache.InvalidateAll()
		h.cache.StopAllGoroutines()
	}
}
