package index

import (
	"maps"
	"slices"
	"strings"
)

// A view is the set of peers at one moment. A lookup uses one view, and starts again if a new view has
// replaced it at the end. So places that the latest view does not have can be reused.
type view struct {
	order   []*indexed // best first
	present []uint64   // set of places
	ranks   []uint32   // by place, as many as present has bits: index in order
	// deeper[i] is the set of places of the peers in the table with more than i+1 hashes.
	deeper   [][]uint64
	separate []*indexed
	parted   [][]uint32 // the places of each peer with several filters, the best first
}

// words returns how many words a set of places takes.
func (v *view) words() int { return len(v.present) }

// publish replaces the view by one of the present peers.
func (x *Index) publish() {
	v := &view{order: slices.Clone(x.order)}
	places := 0
	for _, e := range v.order {
		places = max(places, int(e.place/64+1)*64)
	}
	v.present = make([]uint64, places/64)
	v.ranks = make([]uint32, places)
	parts := make(map[string][]uint32)
	for rank, e := range v.order {
		if peer, _, ok := strings.Cut(e.name, "\x00"); ok {
			parts[peer] = append(parts[peer], e.place)
		}
		v.present[e.place/64] |= 1 << (e.place % 64)
		v.ranks[e.place] = uint32(rank)
		switch e.layout {
		case separate:
			v.separate = append(v.separate, e)
		case inTable:
			v.deepen(e)
		}
	}
	v.parted = slices.Collect(maps.Values(parts))
	x.view.Store(v)
}

func (v *view) deepen(e *indexed) {
	for len(v.deeper) < e.key.hashes-1 {
		v.deeper = append(v.deeper, make([]uint64, v.words()))
	}
	for i := range e.key.hashes - 1 {
		v.deeper[i][e.place/64] |= 1 << (e.place % 64)
	}
}
