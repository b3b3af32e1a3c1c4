package index

import "github.com/summarycache/summarycache/digest"

// replace brings a peer in the table from one filter to another by what differs, or
// returns false if that must be done as for a new peer: because positions mean
// something else, or the sizes are so different that the table should be, too.
func (x *Index) replace(e *indexed, f *digest.Filter, home home) bool {
	if home != inTable || e.home != inTable || e.last == nil || keyOf(e.geometry) != keyOf(f.Geometry()) ||
		f.Ones() < e.ones/2 || f.Ones() > 2*e.ones {
		return false
	}
	const most = 4096
	before, after := pages{filter: e.last}, pages{filter: f}
	flips := make([]uint64, 0, most)
	for more := true; more; {
		p, q := before.first(), after.first()
		switch {
		case p == q && p == none:
			more = false
		case p == q:
			before.skip()
			after.skip()
		case p < q:
			flips = append(flips, p)
			before.skip()
		default:
			flips = append(flips, q)
			after.skip()
		}
		if len(flips) < most && more {
			continue
		}
		if x.table.flip(e.place, e.geometry.Bits, flips) != nil {
			e.last = nil // some are flipped
			return false
		}
		x.table.sweepSome(len(flips))
		flips = flips[:0]
	}
	return true
}

// pages go through a filter's positions.
type pages struct {
	filter *digest.Filter
	next   uint64
	list   []uint64
	i      int
	done   bool
}

// none is behind all positions.
const none = ^uint64(0)

// first returns the first position that is left, or none.
func (p *pages) first() uint64 {
	if p.i < len(p.list) {
		return p.list[p.i]
	}
	if p.done {
		return none
	}
	p.i = 0
	if p.list = p.filter.AppendPositions(p.list[:0], p.next, 2048); len(p.list) == 0 {
		p.done = true
		return none
	}
	p.next = p.list[len(p.list)-1] + 1
	return p.list[0]
}

func (p *pages) skip() { p.i++ }
