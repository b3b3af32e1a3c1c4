package index

import (
	"math/bits"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

// A Prefix is a peer whose filter says yes for some of several keys.
type Prefix struct {
	Match
	Keys int // for how many of them, at least 1
}

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

// Prefixes appends to dst for how many of keys, from the first on and without a
// gap, each peer's filter says yes: what one asks who shares work along a chain of
// keys, such as blocks of a prompt. The longest come first, and then the order is
// that of [Index.Lookup]. Peers that lack the first key are left out.
func (x *Index) Prefixes(dst []Prefix, keys []digest.Key) []Prefix {
	b := x.borrow()
	defer x.scratch.Put(b)
	for {
		v := b.begin(x)
		b.prefixes(x, v, keys)
		if x.view.Load() == v {
			return b.appendCounts(dst, v, len(keys))
		}
	}
}

func (b *batch) prefixes(x *Index, v *view, keys []digest.Key) {
	var going []uint64
	for i := range keys {
		b.find(x, v, keys, i)
		if i == 0 {
			copy(b.total, b.found)
			going = b.ranked
			copy(going, b.found)
		}
		any := uint64(0)
		for j := range going {
			for ended := going[j] &^ b.found[j]; ended != 0; ended &= ended - 1 {
				b.counts[64*j+bits.TrailingZeros64(ended)] = uint32(i)
			}
			going[j] &= b.found[j]
			any |= going[j]
		}
		if any == 0 {
			break
		}
	}
	for j, w := range going {
		for ; w != 0; w &= w - 1 {
			b.counts[64*j+bits.TrailingZeros64(w)] = uint32(len(keys))
		}
	}
	clear(going)
}

// appendCounts appends the peers in total by falling count.
func (b *batch) appendCounts(dst []Prefix, v *view, most int) []Prefix {
	n := v.rankAll(b.total, b.ranked)
	if n == 0 {
		return dst
	}
	// Counting sort: starts[c] is where peers with count most-c begin.
	b.starts = renew(b.starts, most+2)
	v.eachRanked(b.ranked, func(e *indexed) { b.starts[most-int(b.counts[e.place])+1]++ })
	for c := range most {
		b.starts[c+1] += b.starts[c]
	}
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	v.eachRanked(b.ranked, func(e *indexed) {
		keys := int(b.counts[e.place])
		at := &b.starts[most-keys]
		dst[from+int(*at)] = Prefix{e.match(), keys}
		*at++
	})
	return dst
}
