package digest

import "math/bits"

// A shard in table form is a hash table of lines. The hash of a position is its product with a
// secret, and selects its line. If that line is full, the position is put into the next line
// with room. A slot is freed when it has neither a count nor the frozen bit. The table takes
// four to five bytes a position, and six to seven if there are more than four thousand
// positions to a key.
const maxSpanBits = 27

// scatter permutes the positions of a shard. The salt is random, so that nobody can
// make positions meet in one line.
func (c *counters) scatter(rel uint32) uint32 { return rel * c.salt & c.spanMask }

// gather undoes scatter.
func (c *counters) gather(h uint32) uint32 { return h * c.unsalt & c.spanMask }

// inverse returns the inverse of an odd number modulo 2^64, by Newton's method.
func inverse(a uint64) uint64 {
	x := a
	for range 6 {
		x *= 2 - a*x
	}
	return x
}

// near is in how many lines a position may be: its own and those that follow. insert goes no
// further and nothing moves, so find need not go further either. Thus find ends even if all
// lines have spilled. It never reaches positions that the narrow form cannot distinguish from
// the one it looks for (see whole).
func (t *lines) near() int { return min(maxSpill+1, t.len()) }

// find returns where the scattered position h is, and its slot without the lower half.
// The line is nil if h is not in the table.
func (t *lines) find(c *counters, h uint32) (l *line, at int, slot uint, rest uint32) {
	upper := h >> lowBits
	if !t.wide {
		upper &= 1<<(narrowBits-lowBits) - 1
	}
	at = t.home(c, h)
	for range t.near() {
		l = t.at(at)
		for match := l.match(h); match != 0; match &= match - 1 {
			slot = matchSlot(match)
			if l.head>>slot&1 == 0 || slot >= narrowSlots || *l.lower(slot) != uint16(h) {
				continue
			}
			if rest = t.rest(l, slot); rest>>slotBits == upper {
				return l, at, slot, rest
			}
		}
		if !l.spilled() {
			break
		}
		at = t.next(at)
	}
	return nil, 0, 0, 0
}

// insert takes a slot for h, which must not be in the table. It returns nil if no slot is free
// near enough.
func (t *lines) insert(c *counters, h, state uint32) (l *line, at int) {
	home := t.home(c, h)
	at = home
	for range t.near() {
		l = t.at(at)
		if slot := l.room(); slot < t.slots() {
			t.put(l, slot, h, state)
			if at != home {
				t.spill(home, at, lineSpill)
			}
			return l, at
		}
		at = t.next(at)
	}
	return nil, 0
}

// spill changes the counts of positions that are in later lines, for the lines from home to the
// one before to. Such a count is at most the number of slots in the lines that are near, and a
// head has room for many times that. The loop ends, since next visits all lines.
func (t *lines) spill(home, to int, by uint32) {
	for ; home != to; home = t.next(home) {
		t.at(home).head += by
	}
}

// drop frees a slot.
func (t *lines) drop(c *counters, h uint32, at int, slot uint) {
	l := t.at(at)
	t.setRest(l, slot, 0)
	*l.lower(slot) = 0
	l.head &^= 1 << slot
	t.spill(t.home(c, h), at, -lineSpill&(1<<32-1))
}

// all yields every position, scattered, and its state.
func (t *lines) all(c *counters) func(yield func(h, state uint32) bool) {
	return func(yield func(h, state uint32) bool) {
		for at := range t.len() {
			l := t.at(at)
			for taken := l.head & lineTaken; taken != 0; taken &= taken - 1 {
				slot := uint(bits.TrailingZeros32(taken))
				if !yield(t.whole(c, at, slot), t.rest(l, slot)&slotState) {
					return
				}
			}
		}
	}
}

// differs reports whether a position of this state differs from the frozen filter.
func differs(state uint32) bool { return (state&slotCount != 0) != (state&slotFrozen != 0) }

// grow makes a larger table, or an array. It ends, since each size that it tries has more slots
// than the previous one, and an array has room for all positions.
func (s *shard) grow(c *counters) {
	old := s.lines
	for more := int(old.size); ; more = int(s.size) {
		words, wide := s.grown(c, more)
		if words >= c.arrayWords {
			s.resize(c.arrayWords)
			s.isArray = true
			for h, state := range old.all(c) {
				s.arrayLoad(c.gather(h), state&slotCount, differs(state))
			}
			return
		}
		s.resize(words)
		s.wide = wide
		s.room = int32(s.len() * int(s.slots()) * 5 / 6)
		if s.takeOver(c, &old) {
			return
		}
	}
}

// takeOver copies the positions of old lines. It returns false if they do not fit, which
// happens only with an unlucky salt.
func (s *shard) takeOver(c *counters, old *lines) bool {
	for h, state := range old.all(c) {
		if !s.enter(c, h, state) {
			return false
		}
	}
	return true
}

// enter takes a slot for h, which must not be in the table, and accounts for it. It returns
// false if the table must grow first.
func (s *shard) enter(c *counters, h, state uint32) bool {
	if s.room <= 0 {
		return false
	}
	l, at := s.insert(c, h, state)
	if l == nil {
		return false
	}
	s.room--
	if differs(state) {
		s.mark(at)
	}
	return true
}

// grown returns a size in words that has room for a quarter more, in whichever of the two forms
// takes less.
func (s *shard) grown(c *counters, words int) (more int, isWide bool) {
	slots := words / perLine * int(s.slots()) * 5 / 4
	thin := slots/narrowSlots + 1
	if c.spanBits > narrowBits {
		thin = max(thin, (maxSpill+1)<<(c.spanBits-narrowBits))
	}
	thick := slots/wideSlots + 1
	return perLine * min(thin, thick), thick < thin
}

// tableIncrement returns the former count. It handles the usual case, that the position is new
// and its line has room; tableIncrementSlow handles all cases.
func (s *shard) tableIncrement(c *counters, rel uint32) uint8 {
	h := c.scatter(rel)
	if s.room > 0 {
		at := s.home(c, h)
		l := s.at(at)
		head := l.head
		slot := uint(bits.TrailingZeros32(^head))
		if l.match(h) == 0 && head < lineSpill && slot < s.slots() {
			s.put(l, slot, h, 1)
			s.room--
			s.differing++
			s.mark(at)
			return 0
		}
	}
	return s.tableIncrementSlow(c, rel, h)
}

func (s *shard) tableIncrementSlow(c *counters, rel, h uint32) uint8 {
	l, at, slot, rest := s.find(c, h)
	if l != nil {
		n := rest & slotCount
		if n == maxCount {
			return maxCount
		}
		s.setRest(l, slot, rest+1)
		if n == 0 {
			s.flipped(at, rest+1)
		}
		return uint8(n)
	}
	if s.enter(c, h, 1) {
		s.differing++
		return 0
	}
	s.grow(c)
	return s.increment(c, rel)
}

func (s *shard) tableDecrement(c *counters, rel uint32) uint8 {
	h := c.scatter(rel)
	l, at, slot, rest := s.find(c, h)
	n := rest & slotCount
	if n == 0 || n == maxCount {
		return uint8(n)
	}
	s.setRest(l, slot, rest-1)
	if n == 1 {
		s.flipped(at, rest-1)
		if rest&slotFrozen == 0 {
			s.room++
			s.drop(c, h, at, slot)
		}
	}
	return uint8(n)
}

// flipped records that a position of a line changed from clear to set or back.
func (s *shard) flipped(at int, state uint32) {
	if !differs(state) {
		s.differing--
		return
	}
	s.differing++
	s.mark(at)
}

// drainTable is drain for one line.
func (s *shard) drainTable(c *counters, dst []uint32, at int) []uint32 {
	l := s.at(at)
	for taken := l.head & lineTaken; taken != 0; taken &= taken - 1 {
		slot := uint(bits.TrailingZeros32(taken))
		rest := s.rest(l, slot)
		if !differs(rest) {
			continue
		}
		h := s.whole(c, at, slot)
		set := uint32(1)
		if s.setRest(l, slot, rest^slotFrozen); rest&slotCount == 0 {
			set = 0
			s.room++
			s.drop(c, h, at, slot)
		}
		dst = append(dst, c.gather(h)<<1|set)
	}
	return dst
}
