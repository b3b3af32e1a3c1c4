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
	name     string
	place    uint32
	home     home
	geometry digest.Geometry
	rate     atomic.Uint64                 // bits of the false-positive rate
	filter   atomic.Pointer[digest.Filter] // if separate

	// The writer's:
	last    *digest.Filter // what is in the table; nil if that is not known
	version digest.Version
	ones    uint64
	ranked  float64 // the rate that its rank is by
	column  int     // if in rows
}

// A home is where the index keeps what it knows of a peer.
type home uint8

const (
	inTable home = iota
	inRows
	separate
)

func (e *indexed) match() Match {
	return Match{Peer: e.name, FalsePositiveRate: math.Float64frombits(e.rate.Load())}
}

// rowsFrom is how many dense filters of one geometry share rows. Fewer are asked
// one by one, which takes no memory but the filters'.
const rowsFrom = 4

// homeOf returns where f belongs, given where the peer is now, if anywhere. Twice
// the memory is the price of staying.
func (x *Index) homeOf(f *digest.Filter, now *indexed) home {
	const bitsPerCode = 26
	m, density := f.Geometry().Bits, x.table.shape.density
	if m >= 64 && (f.Geometry().Hashes == 1 || f.Geometry().Scheme == digest.Double) {
		inTableBits := bitsPerCode * (float64(f.Ones()) + float64(f.Ones())*float64(density)/float64(m))
		switch {
		case now == nil:
		case now.home == inTable:
			inTableBits /= 2
		default:
			inTableBits *= 2
		}
		if inTableBits <= float64(m) {
			return inTable
		}
	}
	key := keyOf(f.Geometry())
	others := x.separates[key]
	if now != nil && now.home == separate && keyOf(now.geometry) == key {
		others--
	}
	if x.groups[key] != nil || others+1 >= rowsFrom {
		return inRows
	}
	return separate
}

// needOf estimates what f will occupy.
func (x *Index) needOf(f *digest.Filter, home home) uint64 {
	switch home {
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
	x.free = append(x.free, x.table.sweep.free...)
	x.table.sweep.free = x.table.sweep.free[:0]
	if len(x.free) > 0 {
		// The smallest, so that sets of places need few words.
		place := slices.Min(x.free)
		x.free = slices.DeleteFunc(x.free, func(p uint32) bool { return p == place })
		return place
	}
	x.places++
	return x.places - 1
}

// settle gives a peer, which no view has yet, its memory.
func (x *Index) settle(e *indexed, f *digest.Filter) {
	e.last, e.version, e.ones = f, f.Version(), f.Ones()
	e.rate.Store(math.Float64bits(f.FalsePositiveRate()))
	switch e.home {
	case inTable:
		x.table.admit(e.place, e.geometry.Bits, f.Ones())
		if x.load(e, f) == nil {
			return
		}
		// Positions that were made up to meet in few lines would slow down all who
		// use them.
		x.table.remove(e.place, int(f.Ones()))
		e.place = x.takePlace()
		e.home = separate
		fallthrough
	case separate:
		e.filter.Store(f)
		x.held += f.MemoryBytes()
		x.separates[keyOf(e.geometry)]++
	case inRows:
		key := keyOf(e.geometry)
		g := x.groups[key]
		if g == nil {
			g = newRows(e.geometry)
			x.groups[key] = g
		}
		e.column = g.admit(e)
		g.fill(e.column, f)
	}
}

// load puts f's positions into the table.
func (x *Index) load(e *indexed, f *digest.Filter) error {
	l := loading{
		table:    &x.table,
		addition: addition{place: e.place, bits: e.geometry.Bits, positions: x.buffer[:0]},
		filter:   f,
	}
	err := l.load()
	if x.buffer = l.positions[:0]; cap(x.buffer) > mostAtHand/8 {
		x.buffer = nil
	}
	return err
}

// changeInPlace brings a peer that is not in the table from one filter to another
// of the same positions. flips may be nil, if they are not known.
func (x *Index) changeInPlace(e *indexed, f *digest.Filter, flips []uint64) {
	if e.home == separate {
		x.held += f.MemoryBytes() - e.filter.Load().MemoryBytes()
		e.filter.Store(f)
		return
	}
	g := x.groups[keyOf(e.geometry)]
	if flips != nil {
		g.flip(e.column, flips)
		return
	}
	g.fill(e.column, f)
}

// note records what has become known of a peer.
func (x *Index) note(e *indexed, f *digest.Filter) {
	rate := f.FalsePositiveRate()
	e.last, e.geometry, e.version, e.ones = f, f.Geometry(), f.Version(), f.Ones()
	e.rate.Store(math.Float64bits(rate))
	if math.Abs(rate-e.ranked) > e.ranked/8 {
		x.order = slices.DeleteFunc(x.order, func(o *indexed) bool { return o == e })
		x.rank(e, rate)
		x.publish()
	}
}

// rank puts a peer where it belongs in the order.
func (x *Index) rank(e *indexed, rate float64) {
	e.ranked = rate
	at, _ := slices.BinarySearchFunc(x.order, e, func(a, b *indexed) int {
		return cmp.Or(cmp.Compare(a.ranked, b.ranked), strings.Compare(a.name, b.name))
	})
	x.order = slices.Insert(x.order, at, e)
}

func (x *Index) forget(e *indexed) {
	delete(x.peers, e.name)
	x.order = slices.DeleteFunc(x.order, func(o *indexed) bool { return o == e })
	x.publish()
	x.abandon(e)
	x.table.sweepSome(0)
}

// abandon takes back the memory of a peer that no view has any more.
func (x *Index) abandon(e *indexed) {
	key := keyOf(e.geometry)
	switch e.home {
	case inTable:
		x.table.remove(e.place, int(e.ones))
		return
	case inRows:
		g := x.groups[key]
		g.members[e.column] = nil
		if g.empty() {
			delete(x.groups, key)
		}
	case separate:
		x.held -= e.filter.Load().MemoryBytes()
		if x.separates[key]--; x.separates[key] == 0 {
			delete(x.separates, key)
		}
	}
	x.free = append(x.free, e.place)
}

// gather moves those who were separate into the rows that e has founded.
func (x *Index) gather(e *indexed, f *digest.Filter) error {
	if e.home != inRows || x.separates[keyOf(f.Geometry())] == 0 {
		return nil
	}
	for _, o := range slices.Clone(x.order) {
		if o.home == separate && keyOf(o.geometry) == keyOf(f.Geometry()) {
			if err := x.set(o.name, o.filter.Load()); err != nil {
				return err
			}
		}
	}
	return nil
}
