package digest

// A shard that is a table is an open-addressed hash table with linear probing. A
// slot of 32 bits holds a position, whether it is set in the frozen filter, and
// its count: seven to nine bytes a position in all, which matters less for the
// memory than for how often an operation finds its slot in the processor's
// caches. A slot goes when there is neither a count nor a frozen bit in it.
const (
	slotCount   = 0xf    // how many keys
	slotFrozen  = 1 << 4 // set in the frozen filter
	slotBits    = 5      // above them, the position; a free slot is zero
	maxSpanBits = 32 - slotBits
	minSlots    = 16
)

// differs reports whether a slot's position is to be flipped in the frozen filter.
func differs(slot uint32) bool { return (slot&slotCount != 0) != (slot&slotFrozen != 0) }

// full reports whether three fifths of the slots are taken.
func (s *shard) full() bool { return int(s.used)*5 >= int(s.size)*3 }

// grownSlots is the next size of a table: a quarter more, or twice as much in an
// arena, which does not take back what is outgrown.
func (s *shard) grownSlots(c *counters) int {
	if c.arena != nil {
		return max(minSlots, 2*int(s.size))
	}
	return max(minSlots, int(s.size)*5/4)
}

// home is the slot where the search for rel begins. The salt is random, so that
// nobody can make probes long.
func (s *shard) home(c *counters, rel uint32) int {
	return int(uint64(rel) * c.salt >> 32 * uint64(s.size) >> 32)
}

// find returns the slot of rel, or the free one where it would go.
func (s *shard) find(c *counters, rel uint32) (i int, slot uint32) {
	for i = s.home(c, rel); ; i++ {
		if i == int(s.size) {
			i = 0
		}
		slot = *s.word(i)
		if slot>>slotBits == rel || slot == 0 {
			return i, slot
		}
	}
}

func (s *shard) tableCount(c *counters, rel uint32) uint8 {
	if s.used == 0 {
		return 0
	}
	_, slot := s.find(c, rel)
	return uint8(slot & slotCount)
}

// tableIncrement needs a table that is not full. It returns the former count.
func (s *shard) tableIncrement(c *counters, rel uint32) uint8 {
	i, slot := s.find(c, rel)
	n := slot & slotCount
	if n == maxCount {
		return maxCount
	}
	if slot == 0 {
		s.used++
		slot = rel << slotBits
	}
	*s.word(i) = slot + 1
	if n == 0 {
		s.flipped(i, slot+1)
	}
	return uint8(n)
}

func (s *shard) tableDecrement(c *counters, rel uint32) uint8 {
	if s.used == 0 {
		return 0
	}
	i, slot := s.find(c, rel)
	n := slot & slotCount
	if n == 0 || n == maxCount {
		return uint8(n)
	}
	*s.word(i) = slot - 1
	if n == 1 {
		s.flipped(i, slot-1)
		s.dropIfIdle(c, i)
	}
	return uint8(n)
}

// flipped notes that the position of slot i went from clear to set or back.
func (s *shard) flipped(i int, slot uint32) {
	if !differs(slot) {
		s.differing--
		return
	}
	s.differing++
	s.mark(i)
}

func (s *shard) markSlot(i int) {
	if differs(*s.word(i)) {
		s.mark(i)
	}
}

func (s *shard) drainTable(c *counters, dst []uint32, from, to int) []uint32 {
	for i := from; i < to; {
		slot := *s.word(i)
		if !differs(slot) {
			i++
			continue
		}
		if slot&slotCount != 0 {
			dst = append(dst, slot>>slotBits<<1|1)
			*s.word(i) = slot | slotFrozen
			i++
			continue
		}
		dst = append(dst, slot>>slotBits<<1)
		*s.word(i) = slot &^ slotFrozen
		s.dropIfIdle(c, i) // and look at what came in its place
	}
	return dst
}

// dropIfIdle frees a slot that neither counts nor is frozen, moving back those
// behind it that were displaced.
func (s *shard) dropIfIdle(c *counters, i int) {
	if *s.word(i)&(slotCount|slotFrozen) != 0 {
		return
	}
	s.used--
	for j := i; ; {
		if j++; j == int(s.size) {
			j = 0
		}
		slot := *s.word(j)
		if slot == 0 {
			break
		}
		if s.distance(s.home(c, slot>>slotBits), j) >= s.distance(i, j) {
			*s.word(i) = slot
			s.markSlot(i)
			i = j
		}
	}
	*s.word(i) = 0
}

// distance is how many slots on from i to j, going round.
func (s *shard) distance(i, j int) int {
	if j < i {
		j += int(s.size)
	}
	return j - i
}
