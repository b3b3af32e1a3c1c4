package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// An indexed is what the index knows of one peer. Another one takes its place if
// the peer has to move.
type indexed struct {
	name   string
	place  uint32
	layout layout
	key    family
	rate   atomic.Uint64                 // bits of the false-positive rate
	filter atomic.Pointer[digest.Filter] // the last one; lookups ask it if it is separate

	// The writer's:
	ranked float64 // the rate that its rank is by
	column int     // if in rows
}

// A layout is how the index keeps the positions of a peer.
type layout uint8

const (
	inTable  layout = iota
	inRows          // beside those of others of its family
	separate        // in its filter, which is asked by itself
)

// A family is what geometries have in common under which keys have the same positions.
type family struct {
	bits   uint64 // m
	hashes int
	scheme digest.Scheme
}

func keyOf(g digest.Geometry) family {
	if g.Hashes == 1 {
		g.Scheme = digest.Double // all the same
	}
	return family{g.Bits, g.Hashes, g.Scheme}
}

func (e *indexed) match() Match {
	return Match{Peer: e.name, FalsePositiveRate: math.Float64frombits(e.rate.Load())}
}

// rowsFrom is how many dense filters of one geometry share rows. Fewer are asked
// one by one, which takes no memory but the filters'.
const rowsFrom = 4

// layoutFor returns the layout for f, given where the peer is now, if anywhere. Twice
// the memory is the price of staying.
func (x *Index) layoutFor(f *digest.Filter, now *indexed) layout {
	const bitsPerCode = 26
	key := keyOf(f.Geometry())
	m, ones, density := float64(key.bits), float64(f.Ones()), float64(x.table.shape.density)
	if key.bits >= 64 && key.scheme == digest.Double {
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
	others := x.separates[key]
	if now != nil && now.layout == separate && now.key == key {
		others--
	}
	if x.groups[key] != nil || others+1 >= rowsFrom {
		return inRows
	}
	return separate
}

// needOf estimates what f will occupy.
func (x *Index) needOf(f *digest.Filter, to layout) uint64 {
	switch to {
	case inTable:
		return 4 * f.Ones()
	case inRows:
		if g := x.groups[keyOf(f.Geometry())]; g != nil {
			return uint64(g.nextBytes())
		}
		return f.Geometry().Bits
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

// settle gives a peer, which no view has yet, its memory.
func (x *Index) settle(e *indexed, f *digest.Filter) {
	e.store(f)
	switch e.layout {
	case inTable:
		x.table.admit(e.place, e.key.bits, f.Ones())
		if x.table.load(e.place, e.key.bits, f) == nil {
			return
		}
		// Positions that were made up to meet in few lines would slow down all who
		// use them.
		x.table.remove(e.place, int(f.Ones()))
		e.place = x.takePlace()
		e.layout = separate
		fallthrough
	case separate:
		x.held += f.MemoryBytes()
		x.separates[e.key]++
	case inRows:
		g := x.groups[e.key]
		if g == nil {
			g = newRows(f.Geometry())
			x.groups[e.key] = g
		}
		e.column = g.admit(e)
		g.fill(e.column, f)
	}
}

// change brings a peer from its last filter to f where it is, by d if that is not nil. It
// returns false, having changed some of it, if that cannot be.
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
		if d != nil && x.table.flip(e.place, e.key.bits, flips) != nil ||
			d == nil && x.table.replace(e.place, e.key.bits, e.filter.Load(), f) != nil {
			return false
		}
	case inRows:
		if g := x.groups[e.key]; d != nil {
			g.flip(e.column, flips)
		} else {
			g.fill(e.column, f)
		}
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

// mostBuffered is how many positions may be kept room for between updates.
const mostBuffered = 1 << 14

// store makes f the filter of a peer and returns its false-positive rate.
func (e *indexed) store(f *digest.Filter) (rate float64) {
	rate = f.FalsePositiveRate()
	e.rate.Store(math.Float64bits(rate))
	e.filter.Store(f)
	return rate
}

// rank puts a peer where it belongs in the order.
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

// abandon takes back the memory of a peer that no view has any more.
func (x *Index) abandon(e *indexed) {
	f := e.filter.Load()
	switch e.layout {
	case inTable:
		x.table.remove(e.place, int(f.Ones()))
		return
	case inRows:
		g := x.groups[e.key]
		g.members[e.column] = nil
		if g.empty() {
			delete(x.groups, e.key)
		}
	case separate:
		x.held -= f.MemoryBytes()
		if x.separates[e.key]--; x.separates[e.key] == 0 {
			delete(x.separates, e.key)
		}
	}
	x.table.freePlaces = append(x.table.freePlaces, e.place)
}

// gather moves those who were separate into the rows that e has founded.
func (x *Index) gather(e *indexed) error {
	if e.layout != inRows || x.separates[e.key] == 0 {
		return nil
	}
	for _, o := range slices.Clone(x.order) {
		if o.layout == separate && o.key == e.key {
			if err := x.set(o.name, nil, o.filter.Load()); err != nil {
				return err
			}
		}
	}
	return nil
}
