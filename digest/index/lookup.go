package index

import (
	"math/bits"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// Lookup appends to dst the peers whose filters have k, the most reliable first: by false-positive
// rate, in which differences of an eighth are ignored, and by name.
func (x *Index) Lookup(dst []Match, k digest.Key) []Match {
	for {
		v := x.now()
		n := v.words()
		if n > stackWords {
			return x.lookupMany(dst, k)
		}
		var memory [3 * stackWords]uint64
		found, ranked := memory[:n], memory[stackWords:stackWords+n]
		x.collect(v, k, x.table.lineOf(uint64(k)), found, memory[2*stackWords:])
		if x.view.Load() == v {
			return v.appendMatches(dst, found, ranked)
		}
	}
}

// lookupMany is Lookup among more peers than fit the stack.
func (x *Index) lookupMany(dst []Match, k digest.Key) []Match {
	b := x.borrow()
	defer x.scratch.Put(b)
	for {
		v := b.begin(x)
		b.look(x, v, k, x.table.lineOf(uint64(k)))
		if x.view.Load() == v {
			return v.appendMatches(dst, b.found, b.ranked)
		}
	}
}

// stackWords are enough for a set of some 1,200 places.
const stackWords = 19

// collect adds to found, which is empty, the places of the peers whose filters have k. l is the key's
// line in the table, and part is memory of the same size as found.
func (x *Index) collect(v *view, k digest.Key, l keyLine, found, part []uint64) {
	l.collect(uint64(k), found)
	if len(v.deeper) > 0 {
		x.collectDeeper(v, k, found, part[:len(found)])
	}
	for _, e := range v.separate {
		if e.filter.Load().MayContain(k) {
			found[e.place/64] |= 1 << (e.place % 64)
		}
	}
}

// collectDeeper looks up the further positions of peers in the table with more than one hash.
func (x *Index) collectDeeper(v *view, k digest.Key, found, part []uint64) {
	h, d := uint64(k), k.Stride()
	for _, deeper := range v.deeper {
		undecided := uint64(0)
		for i := range found {
			undecided |= found[i] & deeper[i]
		}
		if undecided == 0 {
			return
		}
		h += d
		clear(part)
		x.table.lineOf(h).collect(h, part)
		for i := range found {
			found[i] &= part[i] | ^deeper[i]
		}
	}
}

// appendMatches appends the peers in found, in order. ranked is empty memory.
func (v *view) appendMatches(dst []Match, found, ranked []uint64) []Match {
	if v.rankAll(found, ranked) > 0 {
		v.eachRanked(ranked, func(e *indexed) { dst = append(dst, e.match()) })
	}
	return dst
}

// rankAll adds the ranks of the peers in found to ranked, and returns their number.
func (v *view) rankAll(found, ranked []uint64) (n int) {
	for i, w := range found {
		for w &= v.present[i]; w != 0; w &= w - 1 {
			rank := v.ranks[64*i+bits.TrailingZeros64(w)]
			ranked[rank/64] |= 1 << (rank % 64)
			n++
		}
	}
	return n
}

func (v *view) eachRanked(ranked []uint64, f func(*indexed)) {
	for i, w := range ranked {
		for ; w != 0; w &= w - 1 {
			f(v.order[64*i+bits.TrailingZeros64(w)])
		}
	}
}

// mixedClasses is the greatest number of different m for which all codes of a word are compared at
// once, for each m. With more, codes are compared one by one.
const mixedClasses = 4

// A keyLine is the line with all codes for a key, or its beginning.
type keyLine struct {
	*segment
	words []uint64
}

// lineOf returns the present line of k.
func (t *table) lineOf(k uint64) keyLine {
	s := t.at(k)
	return keyLine{s, s.lineAt(s.line(k))}
}

// prefetch prefetches the line of a key.
func (t *table) prefetch(k digest.Key) { prefetch(&t.lineOf(uint64(k)).words[0]) }

// prefetchMore prefetches the memory to which a line refers: the bitmap of the first shared position,
// since these come first, and the words that the last word links to.
func (l *keyLine) prefetchMore() {
	if w := atomic.LoadUint64(&l.words[0]); w >= special && w < link {
		prefetch(&l.bitmap(w)[0])
	}
	if w := atomic.LoadUint64(&l.words[lineWords-1]); w >= link {
		prefetch(&l.linked(w)[0])
	}
}

// collect adds to set the places that have a code of k in the line.
func (l keyLine) collect(k uint64, set []uint64) {
	classes := *l.shape.classes.Load()
	if len(classes) > mixedClasses {
		l.collectMixed(l.words, k, classes, set)
		return
	}
	for i := range classes {
		l.collectClass(l.words, k, i, &classes[i], set)
	}
}

// collectClass is collect for one class. It compares all codes of a word at once.
func (s *segment) collectClass(words []uint64, k uint64, class int, c *class, set []uint64) {
	rest := high(k, c.bits) & (1<<c.low - 1)
	want := rest * s.shape.ones
	for i := 0; i < len(words); i++ {
		w := atomic.LoadUint64(&words[i])
		switch {
		case w < special:
			// The tops of the fields whose compared parts are equal.
			if same := ^((w^want)&c.lows + c.lows) & c.tops; same != 0 {
				s.shape.markSame(w, same, c, set)
			}
		case w >= link:
			words, i = s.linked(w), -1
		case s.isShared(w, class, rest):
			s.mark(w, set)
		}
	}
}

func (sh *shape) markSame(w, same uint64, c *class, set []uint64) {
	for ; same != 0; same &= same - 1 {
		code := w >> (uint(bits.TrailingZeros64(same)) - c.low) & sh.codeMask()
		if s := &sh.slots[code>>sh.granule]; s.bits == c.bits {
			markPlace(s.place, set)
		}
	}
}

func (s *segment) collectMixed(words []uint64, k uint64, classes []class, set []uint64) {
	sh := s.shape
	for i := 0; i < len(words); i++ {
		w := atomic.LoadUint64(&words[i])
		switch {
		case w < special:
			for ; w != 0; w >>= sh.width {
				code := w & sh.codeMask()
				from := &sh.slots[code>>sh.granule]
				if (high(k, from.bits)^code)&(1<<from.low-1) == 0 && from.bits != 0 {
					markPlace(from.place, set)
				}
			}
		case w >= link:
			words, i = s.linked(w), -1
		default:
			// A class added after classes were loaded has no peer in the view.
			if class := s.classOf(w); class < len(classes) {
				c := &classes[class]
				if s.isShared(w, class, high(k, c.bits)&(1<<c.low-1)) {
					s.mark(w, set)
				}
			}
		}
	}
}

// markPlace adds a place to a set, unless it belongs to a peer that is newer than the view.
func markPlace(place uint32, set []uint64) {
	if i := int(place / 64); i < len(set) {
		set[i] |= 1 << (place % 64)
	}
}

// mark adds the places of a shared position to a set.
func (s *segment) mark(word uint64, set []uint64) {
	bitmap := s.bitmap(word)
	for i := range min(len(bitmap), len(set)) {
		set[i] |= atomic.LoadUint64(&bitmap[i])
	}
}
