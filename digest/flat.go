package digest

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// With several hashes an operation changes several counters anywhere, and a lock
// for each would cost more than the change. The counters are then one array for
// all positions, changed by compare-and-swap, and a key locks one shard only, of
// those that share the keys among them: it makes operations on one key follow each
// other, and guards the accounts and the journal.
//
// The words are those of array.go, with one bit more: whether the word is in some
// shard's journal. So a journal names each word once, however often it changes
// between two freezes, and a freeze looks at what changed and at nothing else.
const flatListed = 1 << 31

// Arrays that would be larger than 85 MiB are left to the tables, which are as
// large as what they hold.
const (
	maxFlatBits = 1 << 27
	flatShards  = 256
)

func (g *Geometry) flat() bool { return g.Hashes > 1 && g.Bits <= maxFlatBits }

func newFlat(c *counters) *counters {
	c.flat = make([]uint32, arrayWords(c.geometry.Bits))
	c.shards = make([]shard, flatShards)
	return c
}

// keeper is the shard that has a key in its accounts. Of flat counters it is told
// by the key's lower bits, since the positions are made of the upper ones.
func (c *counters) keeper(k Key) *shard {
	if c.geometry.flat() {
		return &c.shards[k%flatShards]
	}
	var buf [MaxHashes]uint64
	s, _ := c.at(c.geometry.positions(&buf, k)[0])
	return s
}

// flatAt returns the word of a position and how far up its field is.
func (c *counters) flatAt(p uint64) (i uint32, shift uint) {
	return uint32(p / fieldsPerWord), uint(p%fieldsPerWord) * fieldBits
}

// flatLeast is the smallest count among positions. Reading them all before any is
// changed lets the processor fetch them at once.
func (c *counters) flatLeast(positions []uint64) uint8 {
	least := uint32(maxCount)
	for _, p := range positions {
		i, shift := c.flatAt(p)
		least = min(least, atomic.LoadUint32(&c.flat[i])>>shift&maxCount)
	}
	return uint8(least)
}

// flatChange adds one to a counter or, given -1, takes one from it, unless it is
// stuck or would fall below zero, and returns what it was.
func (c *counters) flatChange(s *shard, p uint64, by int32) uint8 {
	i, shift := c.flatAt(p)
	edge := uint32(0) // the count at which a position becomes set or clear
	if by < 0 {
		edge = 1
	}
	word := &c.flat[i]
	for {
		old := atomic.LoadUint32(word)
		n := old >> shift & maxCount
		if n == maxCount || n < edge {
			return uint8(n)
		}
		new := old + uint32(by)<<shift
		if n != edge {
			if atomic.CompareAndSwapUint32(word, old, new) {
				return uint8(n)
			}
			continue
		}
		new = (new ^ fieldChanged<<shift) | flatListed
		if !atomic.CompareAndSwapUint32(word, old, new) {
			continue
		}
		if new>>shift&fieldChanged != 0 {
			s.differing++
		} else {
			s.differing--
		}
		if old&flatListed == 0 {
			r := s.rarely()
			r.journal = append(r.journal, i)
		}
		return uint8(n)
	}
}

// flatAdd returns false if the counters are retired.
func (c *counters) flatAdd(k Key) bool {
	var buf [MaxHashes]uint64
	positions := c.geometry.positions(&buf, k)
	s := &c.shards[k%flatShards]
	s.mu.Lock()
	if c.retired {
		s.mu.Unlock()
		return false
	}
	least := c.flatLeast(positions)
	if s.rare != nil && s.rare.touched != nil {
		s.touch(k, least, +1)
	}
	for _, p := range positions {
		if c.flatChange(s, p, +1) == maxCount-1 {
			s.rarely().saturated++
		}
	}
	s.keys++
	s.sum += sumOf(k)
	s.mu.Unlock()
	return true
}

// flatRemove returns done as false if the counters are retired.
func (c *counters) flatRemove(k Key) (done, removed bool) {
	var buf [MaxHashes]uint64
	positions := c.geometry.positions(&buf, k)
	s := &c.shards[k%flatShards]
	s.mu.Lock()
	if c.retired {
		s.mu.Unlock()
		return false, false
	}
	least := c.flatLeast(positions)
	if removed = least > 0 && c.flatTake(s, positions); !removed {
		s.rarely().refused++
		s.mu.Unlock()
		return true, false
	}
	if s.rare != nil && s.rare.touched != nil {
		s.touch(k, least, -1)
	}
	s.keys--
	s.sum -= sumOf(k)
	s.mu.Unlock()
	return true, true
}

// flatTake takes one from each counter, or from none: others may have come first,
// if they removed what was never added.
func (c *counters) flatTake(s *shard, positions []uint64) bool {
	for i, p := range positions {
		if c.flatChange(s, p, -1) != 0 {
			continue
		}
		for _, q := range positions[:i] {
			c.flatChange(s, q, +1)
		}
		return false
	}
	return true
}

// flatDrain is what drain is for a shard: it appends all positions that differ
// from the last frozen filter, ascending, as position<<1 with the low bit saying
// whether it is set now. Writers wait for a journal to be handed over, never for
// anything that takes time. If counts are wanted it goes over the whole array and
// appends those above zero.
func (c *counters) flatDrain(dst []uint64, counts *[]uint8) []uint64 {
	var list []uint32
	few := make([]uint32, 0, 1024)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		taken, differing := s.handOver(few)
		c.unfrozen.Add(differing)
		s.mu.Unlock()
		list = append(list, taken...)
	}
	before := len(dst)
	if counts != nil {
		for i := range c.flat {
			dst = c.flatSettle(dst, uint32(i), counts)
		}
	} else {
		for _, i := range sortWords(list, len(c.flat)) {
			dst = c.flatSettle(dst, i, nil)
		}
	}
	c.unfrozen.Add(int64(before - len(dst)))
	return dst
}

// handOver empties the journal and the account of what differs. A long journal is
// given away, not copied: writers wait for this.
func (s *shard) handOver(few []uint32) (journal []uint32, differing int64) {
	differing, s.differing = int64(s.differing), 0
	if s.rare == nil {
		return nil, differing
	}
	if journal = s.rare.journal; len(journal) > cap(few) {
		s.rare.journal = nil
		return journal, differing
	}
	s.rare.journal = journal[:0]
	return append(few, journal...), differing
}

// flatSettle takes one word's changes, and its counts, at one moment.
func (c *counters) flatSettle(dst []uint64, i uint32, counts *[]uint8) []uint64 {
	word := &c.flat[i]
	old := atomic.LoadUint32(word)
	for old&(changedMask|flatListed) != 0 &&
		!atomic.CompareAndSwapUint32(word, old, old&^(changedMask|flatListed)) {
		old = atomic.LoadUint32(word)
	}
	for changed := old & changedMask; changed != 0; changed &= changed - 1 {
		top := bits.TrailingZeros32(changed)
		set := uint64(0)
		if old>>(top-4)&maxCount != 0 {
			set = 1
		}
		dst = append(dst, (uint64(i)*fieldsPerWord+uint64(top/fieldBits))<<1|set)
	}
	if counts == nil {
		return dst
	}
	for old &^= changedMask | flatListed; old != 0; old >>= fieldBits {
		if n := old & maxCount; n != 0 {
			*counts = append(*counts, uint8(n))
		}
	}
	return dst
}

// sortWords sorts numbers below limit, by their digits where there are many, and
// returns them.
func sortWords(list []uint32, limit int) []uint32 {
	if len(list) < 256 {
		slices.Sort(list)
		return list
	}
	const digit = 11
	other := make([]uint32, len(list))
	for shift := 0; limit>>shift > 0; shift += digit {
		var starts [1 << digit]int32
		for _, x := range list {
			starts[x>>shift&(1<<digit-1)]++
		}
		sum := int32(0)
		for i, n := range starts {
			starts[i] = sum
			sum += n
		}
		for _, x := range list {
			at := &starts[x>>shift&(1<<digit-1)]
			other[*at] = x
			*at++
		}
		list, other = other, list
	}
	return list
}
