package index

import "github.com/summarycache/summarycache/digest"

// AllOf appends to dst the peers whose filters have all of keys, in the order of [Index.Lookup].
// Without keys it returns all peers.
func (x *Index) AllOf(dst []Match, keys []digest.Key) []Match {
	return x.several(dst, func(b *batch, v *view) {
		copy(b.total, v.present)
		for i := 0; i < len(keys) && !empty(b.total); i++ {
			b.find(x, v, keys, i)
			for j := range b.total {
				b.total[j] &= b.found[j]
			}
		}
	})
}

// AnyOf appends to dst the peers whose filters have at least one of keys, in the order of
// [Index.Lookup].
func (x *Index) AnyOf(dst []Match, keys []digest.Key) []Match {
	return x.several(dst, func(b *batch, v *view) {
		for i := range keys {
			b.find(x, v, keys, i)
			for j, w := range b.found {
				b.total[j] |= w
			}
		}
	})
}
