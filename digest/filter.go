package digest

import (
	"iter"
	"unsafe"

	"github.com/summarycache/summarycache/digest/bloom"
)

// A Filter is what one cache held at one moment: an immutable set of positions
// with their [Geometry] and [Version]. It may say yes for a key that was absent;
// it never says no for one that was present. Safe for concurrent use and to
// share.
//
// A dense filter is kept as a bitmap and a sparse one as a compact list. Only
// [Filter.MemoryBytes] and speed depend on that. Both are divided into pieces, and
// successive versions share the pieces in which they agree.
type Filter struct {
	geometry Geometry
	version  Version
	keys     uint64
	ones     uint64
	pieces   // shared with other versions
}

// Geometry returns how keys become positions.
func (f *Filter) Geometry() Geometry { return f.made().geometry }

// Version returns what identifies these contents.
func (f *Filter) Version() Version { return f.made().version }

// Ones returns the number of positions that are set, 0 to Geometry().Bits.
func (f *Filter) Ones() uint64 { return f.made().ones }

// Keys returns how many keys the filter has, as its publisher claims. The claim cannot be
// checked: use [Filter.Ones] where a false one would do harm.
func (f *Filter) Keys() uint64 { return f.made().keys }

// MayContain reports whether every position of k is set. False means that the
// cache did not hold k when the filter was frozen. True may be wrong, as the name says,
// at [Filter.FalsePositiveRate]; what is never wrong is called Has.
func (f *Filter) MayContain(k Key) bool {
	if f.made().geometry.Hashes == 1 {
		return f.contains(f.geometry.single(k))
	}
	var buf [maxHashes]uint64
	positions := f.geometry.draws(&buf, k)
	for _, p := range positions {
		if !f.contains(p) {
			return false
		}
	}
	return true
}

// made returns f, unless it is nil or zero.
func (f *Filter) made() *Filter {
	if f == nil || f.geometry.Hashes == 0 {
		panic("digest: a nil or zero Filter: use FilterOf, DecodeFilter or CountingFilter.Advance")
	}
	return f
}

// all yields the set positions in ascending order.
func (f *Filter) all() iter.Seq[uint64] {
	f.made()
	return func(yield func(uint64) bool) {
		c := f.cursor()
		for p, ok := c.next(); ok && yield(p); p, ok = c.next() {
		}
	}
}

// AppendPositions appends to dst the first n set positions that are at least from, or
// all if there are fewer, in ascending order. Its time is proportional to what it appends.
func (f *Filter) AppendPositions(dst []uint64, from uint64, n int) []uint64 {
	if from >= f.made().geometry.Bits {
		return dst
	}
	c := f.cursorAt(from)
	for some := c.batch(); n > 0 && len(some) > 0; some = c.batch() {
		for len(some) > 0 && some[0] < from {
			some = some[1:]
		}
		some = some[:min(n, len(some))]
		dst = append(dst, some...)
		n -= len(some)
	}
	return dst
}

// FalsePositiveRate returns the odds, from 0 to 1, that the filter says yes for
// a key that the cache did not hold: the share of set positions to the power k and, from three hashes on, what double
// hashing adds, which is most of it in a filter of few keys. It is right to within a third on the average of such filters;
// a single one of three keys or fewer may stray from it several times.
func (f *Filter) FalsePositiveRate() float64 {
	g := &f.made().geometry
	return bloom.FalsePositives(g.Bits, g.Hashes, float64(f.ones)/float64(g.Bits))
}

// MemoryBytes returns the memory that the filter occupies, including what it shares with
// other versions.
func (f *Filter) MemoryBytes() int { return int(unsafe.Sizeof(*f)) + f.made().bytes() }

// FilterOf makes a filter of keys in one call, for a cache that never removes and for
// tools. seq may yield a key more than once. The version's State is computed.
func FilterOf(g Geometry, v Version, seq iter.Seq[Key]) (*Filter, error) {
	if seq == nil {
		panic("digest: FilterOf nil: use an empty sequence for no keys")
	}
	c, err := NewCountingFilter(g, v.Epoch)
	if err != nil {
		return nil, err
	}
	for k := range seq {
		c.Add(k)
	}
	f := *c.Advance()
	f.version = Version{Epoch: v.Epoch, Sequence: v.Sequence, State: f.version.State}
	return &f, nil
}

// newFilter makes a filter of ascending positions.
func newFilter(g Geometry, v Version, keys uint64, positions []uint64) *Filter {
	b := newPieceBuilder(formFor(g.Bits, uint64(len(positions))))
	b.add(positions)
	return &Filter{geometry: g, version: v, keys: keys, ones: uint64(len(positions)), pieces: b.finish()}
}

// state computes the set hash from scratch.
func (f *Filter) state() uint64 {
	sum := emptyState(f.geometry)
	c := f.cursor()
	for some := c.batch(); len(some) > 0; some = c.batch() {
		for _, p := range some {
			sum += stateOf(p)
		}
	}
	return sum
}
