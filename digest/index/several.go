package index

import (
	"github.com/summarycache/summarycache/digest"
)

// AllOf appends to dst the peers whose filters say yes for every one of keys, in
// the order of [Index.Lookup]; of no keys, all peers.
func (x *Index) AllOf(dst []Match, keys []digest.Key) []Match {
	b := x.borrow()
	defer x.scratch.Put(b)
	for {
		v := b.begin(x)
		copy(b.total, v.present)
		for i := range keys {
			b.find(x, v, keys, i)
			any := uint64(0)
			for j := range b.total {
				b.total[j] &= b.found[j]
				any |= b.total[j]
			}
			if any == 0 {
				break
			}
		}
		if x.view.Load() == v {
			return v.appendMatches(dst, b.total, b.ranked)
		}
	}
}

// AnyOf appends to dst the peers whose filters say yes for at least one of keys, in
// the order of [Index.Lookup].
func (x *Index) AnyOf(dst []Match, keys []digest.Key) []Match {
	b := x.borrow()
	defer x.scratch.Put(b)
	for {
		v := b.begin(x)
		for i := range keys {
			b.find(x, v, keys, i)
			for j, w := range b.found {
				b.total[j] |= w
			}
		}
		if x.view.Load() == v {
			return v.appendMatches(dst, b.total, b.ranked)
		}
	}
}
