package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// An indexed is the index's state for a peer. It is replaced if the peer moves to another layout.
type indexed struct {
	name   string
	place  uint32
	layout layout
	key    family
	rate   atomic.Uint64                 // bits of the false-positive rate
	filter atomic.Pointer[digest.Filter] // the last one; lookups use it if the layout is separate

	// The writer's:
	ranked float64 // the rate that determines its rank
	// spoiled: a change of the peer is under way, or failed in the middle. No delta can be applied to it.
	spoiled bool
}

// A layout is the way in which the index stores the positions of a peer.
type layout uint8

const (
	inTable  layout = iota
	separate        // only in its filter
)

// A family is the part of a geometry that determines the positions of a key.
type family struct {
	bits   uint64 // m
	hashes int
}

func keyOf(g digest.Geometry) family { return family{g.Bits, g.Hashes} }

func (e *indexed) match() Match {
	peer, part, _ := strings.Cut(e.name, "\x00")
	return Match{Peer: peer, Part: part, FalsePositiveRate: math.Float64frombits(e.rate.Load())}
}

// layoutFor returns the layout for f, given the present state of the peer, or nil. To avoid moves, the
// peer keeps its layout unless that takes more than twice the memory.
func (x *Index) layoutFor(f *digest.Filter, now *indexed) layout {
	const bitsPerCode = 26
	key := keyOf(f.Geometry())
	m, ones, density := float64(key.bits), float64(f.Ones()), float64(x.table.shape.density)
	if key.bits >= 64 {
		inTableBits := bitsPerCode * (ones + ones*density/m)
		switch {
		case now == nil:
		case now.layout == inTable:
			inTableBits /= 2
		default:
			inTableBits *= 2
		}
		if inTableBits <= m {
			return inTable
		}
	}
	return separate
}

// needOf estimates the memory for f in bytes.
func (x *Index) needOf(f *digest.Filter, to layout) uint64 {
	if to == inTable {
		return 4 * f.Ones()
	}
	return uint64(f.MemoryBytes())
}

func (x *Index) takePlace() uint32 {
	free := &x.table.freePlaces
	if len(*free) == 0 {
		x.places++
		return x.places - 1
	}
	// The smallest, so that sets of places need few words.
	place := slices.Min(*free)
	*free = slices.DeleteFunc(*free, func(p uint32) bool { return p == place })
	return place
}

// settle stores the positions of peers that no view has yet.
func (x *Index) settle(moving []*indexed) {
	var loads []*loading
	ones := uint64(0)
	for _, e := range moving {
		if e.layout == inTable {
			f := e.filter.Load()
			ones += f.Ones()
			x.table.admit(e.place, e.key.bits, ones)
			loads = append(loads, &loading{addition: addition{place: e.place, bits: e.key.bits}, filter: f})
		}
	}
	x.table.load(loads)
	for _, e := range moving {
		if e.layout == inTable {
			if loads[0].err != nil { // positions that were chosen to be in few lines would slow down all lookups there
				x.table.remove(e.place, int(e.filter.Load().Ones()))
				e.place = x.takePlace()
				e.layout = separate
			}
			loads = loads[1:]
		}
		if e.layout == separate {
			x.held += e.filter.Load().MemoryBytes()
		}
	}
}

// change changes a peer from its last filter to f in its present layout, by d if that is not nil. It
// returns false, after a part of the changes, if that is not possible.
func (x *Index) change(e *indexed, d *digest.Delta, f *digest.Filter) bool {
	var flips []uint64
	if d != nil && e.layout != separate {
		flips = d.AppendPositions(x.buffer[:0])
		if x.buffer = flips[:0]; cap(x.buffer) > mostBuffered {
			x.buffer = nil
		}
	}
	switch e.layout {
	case inTable:
		e.spoiled = true
		if d != nil && x.table.flip(e.place, e.key.bits, flips) != nil ||
			d == nil && x.table.replace(e.place, e.key.bits, e.filter.Load(), f) != nil {
			return false
		}
		e.spoiled = false
	case separate:
		x.held += f.MemoryBytes() - e.filter.Load().MemoryBytes()
	}
	rate := e.store(f)
	if math.Abs(rate-e.ranked) > e.ranked/8 {
		x.unrank(e)
		x.rank(e)
		x.publish()
	}
	x.table.sweepSome(len(flips))
	return true
}

// mostBuffered bounds the positions for which memory is kept between updates.
const mostBuffered = 1 << 14

// store sets the filter of a peer and returns its false-positive rate.
func (e *indexed) store(f *digest.Filter) (rate float64) {
	rate = f.FalsePositiveRate()
	e.rate.Store(math.Float64bits(rate))
	e.filter.Store(f)
	return rate
}

// rank inserts a peer into the order.
func (x *Index) rank(e *indexed) {
	e.ranked = math.Float64frombits(e.rate.Load())
	at, _ := slices.BinarySearchFunc(x.order, e, func(a, b *indexed) int {
		return cmp.Or(cmp.Compare(a.ranked, b.ranked), strings.Compare(a.name, b.name))
	})
	x.order = slices.Insert(x.order, at, e)
}

func (x *Index) unrank(e *indexed) {
	x.order = slices.DeleteFunc(x.order, func(o *indexed) bool { return o == e })
}

func (x *Index) forget(e *indexed) {
	delete(x.peers, e.name)
	x.unrank(e)
	x.publish()
	x.abandon(e)
	x.table.sweepSome(0)
}

// abandon frees the memory of a peer that is no longer in the view.
func (x *Index) abandon(e *indexed) {
	f := e.filter.Load()
	if e.layout == inTable {
		x.table.remove(e.place, int(f.Ones()))
		return
	}
	x.held -= f.MemoryBytes()
	x.table.freePlaces = append(x.table.freePlaces, e.place)
}
