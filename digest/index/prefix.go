package index

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

// A Prefix is a peer that has the beginning of a chain of keys.
type Prefix struct {
	Match
	Keys int // length of the beginning, at least 1
}

// Prefixes appends to dst, for each peer, how many keys it has from the beginning of a chain: a peer
// with a key of a chain has all keys before it. Inference engines make such keys for the blocks of a
// prompt, each from all tokens so far. The longest prefixes come first; equal ones are in the order of
// [Index.Lookup]. Peers without the first key are left out. A peer with several filters has a key if any
// of them has it; its false-positive rate is that of the best.
//
// It looks up few of the keys, in proportion to the logarithm of the length and to the number of
// different lengths. So a result is never shorter than with a lookup of each key. The peer's filter
// has the first, the last and the last but one of the keys counted, and not the next. The result is
// too long if the filter has two neighbouring keys that the peer lacks, of some ten that were looked
// up. It may be too long by any number if the peer has lost keys in the middle.
func (x *Index) Prefixes(dst []Prefix, chain []digest.Key) []Prefix {
	if len(chain) == 0 {
		return dst
	}
	b := x.begun().borrow()
	defer x.scratch.Put(b)
	for {
		v := b.begin(x)
		b.searchChain(x, v, chain)
		clear(b.ranked) // searchChain has used it
		if x.view.Load() == v {
			return b.appendPrefixes(dst, v)
		}
	}
}

// A chainSearch is the memory of [Index.Prefixes].
type chainSearch struct {
	open, next stretches // to be searched: in this round, and in the one after
	ended      stretches // from is the last key that the peers have
	lines      []keyLine // of the keys to look up in this round
}

// stretches is a list of stretches, each with a set of peers. No peer is in two of these sets.
type stretches struct {
	list []stretch
	sets []uint64 // one after the other
}

func (ss *stretches) reset() { ss.list, ss.sets = ss.list[:0], ss.sets[:0] }

// A stretch is the part of a chain in which the prefixes of some peers end: they have the key at from
// and lack the key at to, or the chain ends there.
type stretch struct{ from, to int }

func (s stretch) middle() int { return int(uint(s.from+s.to) / 2) }

// probe returns the next key to look up for a stretch, or -1. If the stretch has only one key left,
// that is the key before: a false positive far beyond a prefix would attract all later probes, but its
// predecessor is rarely a false positive too.
func (s stretch) probe() int {
	if s.to-s.from > 1 {
		return s.middle()
	}
	if s.from > 1 {
		return s.from - 1
	}
	return -1
}

// gallop is the ratio between the indices of successive keys while searchChain gallops. With 2, that
// took eleven of some 36 keys for a long prefix; with 8 it takes four, and at most two more halvings.
const gallop = 8

// searchChain finds where the prefixes end. It first gallops, which assigns each peer to the stretch in
// which its prefix ends, and then halves the stretches.
func (b *batch) searchChain(x *Index, v *view, chain []digest.Key) {
	c := &b.chain
	c.next.reset()
	c.ended.reset()
	for i := 0; i < len(chain); {
		next := gallop*i + gallop - 1
		x.table.prefetch(chain[i])
		x.table.prefetch(chain[stretch{i, min(next, len(chain))}.middle()])
		i = next
	}
	b.lookPeers(x, v, chain[0], x.table.lineOf(uint64(chain[0])))
	going := b.ranked
	copy(going, b.found)
	last := 0
	for i := gallop - 1; i < len(chain) && !empty(going); i = gallop*i + gallop - 1 {
		b.lookPeers(x, v, chain[i], x.table.lineOf(uint64(chain[i])))
		b.doubt(x, v, chain, i, going)
		c.next.split(stretch{last, i}, going, b.found)
		last = i
	}
	c.next.split(stretch{last, len(chain)}, going, nil)
	// In rounds over all stretches, so that prefetches have a round's time to complete.
	for len(c.next.list) > 0 {
		c.open, c.next = c.next, c.open
		c.next.reset()
		c.lines = c.lines[:0]
		for _, s := range c.open.list {
			l := x.table.lineOf(uint64(chain[max(0, s.probe())]))
			l.prefetchMore()
			c.lines = append(c.lines, l)
		}
		for i, s := range c.open.list {
			b.narrow(x, v, chain, s, c.open.sets[i*len(going):][:len(going)], c.lines[i])
		}
	}
}

// narrow looks up one key, in line l, for the peers in set. The search ends: a key in the middle leaves
// shorter stretches. Only peers whose last key turns out to be a false positive get a longer one, and
// that ends before this key.
func (b *batch) narrow(x *Index, v *view, chain []digest.Key, s stretch, set []uint64, l keyLine) {
	c := &b.chain
	at, known := s.probe(), len(c.next.list)
	switch {
	case s.to-s.from > 1:
		b.lookPeers(x, v, chain[at], l)
		b.doubt(x, v, chain, at, set)
		c.next.split(stretch{s.from, at}, set, b.found)
		c.next.split(stretch{at, s.to}, set, nil)
	case at >= 0:
		b.lookPeers(x, v, chain[at], l)
		c.next.split(stretch{0, at}, set, b.found)
		fallthrough
	default:
		c.ended.split(s, set, nil)
	}
	for _, s := range c.next.list[known:] {
		x.table.prefetch(chain[max(0, s.probe())])
	}
}

// doubt also looks up the key before the i-th if few of many peers have the i-th: all of them may be
// false positives, and each would need a search of its own. It removes peers that lack one of the two
// keys from found.
func (b *batch) doubt(x *Index, v *view, chain []digest.Key, i int, set []uint64) {
	const doubtFrom = 32 // peers for each one with the key
	asked, have := 0, 0
	for j, w := range set {
		asked += bits.OnesCount64(w)
		have += bits.OnesCount64(w & b.found[j])
	}
	if have == 0 || asked < doubtFrom*have {
		return
	}
	copy(b.total, b.found)
	b.lookPeers(x, v, chain[i-1], x.table.lineOf(uint64(chain[i-1])))
	for j := range b.found {
		b.found[j] &= b.total[j]
	}
}

// split adds a stretch for the peers in set that are not in found, if there are any, and leaves the
// others in set.
func (ss *stretches) split(s stretch, set, found []uint64) {
	at := len(ss.sets)
	ss.sets = append(ss.sets, set...)
	for i := range found {
		ss.sets[at+i] &^= found[i]
		set[i] &= found[i]
	}
	if empty(ss.sets[at:]) {
		ss.sets = ss.sets[:at]
		return
	}
	ss.list = append(ss.list, s)
}

func empty(set []uint64) bool {
	return !slices.ContainsFunc(set, func(w uint64) bool { return w != 0 })
}

// look sets found to the places of the peers whose filters have k. l is the key's line.
func (b *batch) look(x *Index, v *view, k digest.Key, l keyLine) {
	clear(b.found)
	x.collect(v, k, l, b.found, b.part)
}

// lookPeers is look, but of a peer with several filters only the best one's place stands for all.
func (b *batch) lookPeers(x *Index, v *view, k digest.Key, l keyLine) {
	b.look(x, v, k, l)
	for _, places := range v.parted {
		have := false
		for _, p := range places {
			have = have || b.found[p/64]>>(p%64)&1 != 0
			b.found[p/64] &^= 1 << (p % 64)
		}
		if have {
			b.found[places[0]/64] |= 1 << (places[0] % 64)
		}
	}
}

// appendPrefixes appends the peers, those with the longest prefixes first.
func (b *batch) appendPrefixes(dst []Prefix, v *view) []Prefix {
	ended, n := b.chain.ended, len(b.found)
	for i := range ended.list {
		ended.list[i].to = i // index of its set
	}
	slices.SortFunc(ended.list, func(a, b stretch) int { return cmp.Compare(b.from, a.from) })
	for i, s := range ended.list {
		v.rankAll(ended.sets[s.to*n:][:n], b.ranked)
		if i+1 < len(ended.list) && ended.list[i+1].from == s.from {
			continue // of the same length
		}
		v.eachRanked(b.ranked, func(e *indexed) {
			m := e.match()
			m.Part = ""
			dst = append(dst, Prefix{m, s.from + 1})
		})
		clear(b.ranked)
	}
	return dst
}
