package store

import (
	"github.com/maypok86/otter/v2"
)

// hotSet keeps the decoded descriptions, and the bodies if they are short, of
// the objects used most, bounded in bytes. The nil set keeps nothing.
type hotSet struct {
	cache *otter.Cache[uint64, hotObject]
}

type hotObject struct {
	value   any
	body    []byte
	hasBody bool
	sum     uint64 // of the body
	size    int
}

// hotOverhead is a rough count of the bytes that a hot object costs besides its
// description and body: decoded header maps, index nodes.
const hotOverhead = 1 << 10

func newHotSet(limit int64) *hotSet {
	if limit <= 0 {
		return nil
	}
	return &hotSet{otter.Must(&otter.Options[uint64, hotObject]{
		MaximumWeight: uint64(max(limit, 64<<10)),
		Weigher:       func(_ uint64, h hotObject) uint32 { return uint32(h.size + hotOverhead) },
		Logger:        &otter.NoopLogger{},
	})}
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
	h.cache.Set(o.seq, v)
	if o.is(objLeft) { // it left the store meanwhile: nobody would drop it again
		h.cache.Invalidate(o.seq)
	}
}

func (h *hotSet) drop(o *Object) {
	if h != nil {
		o.set(objLeft)
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
		h.cache.StopAllGoroutines()
	}
}
