package arith

import "math/bits"

// The block method codes a set as a sequence of symbols. Each symbol stands for 1<<raw
// successive values, from base on, that are equally likely. The state machine of
// block_table.go codes the symbol, in fractions of a bit; raw plain bits then say which of
// its values is meant. So one step codes a whole block of 16 bits, or a whole gap, without a
// table of all blocks or gaps.
//
// A model lists the symbols of a form at one density. It is computed from m
// and the number of members by integer arithmetic alone.
type model struct {
	log     uint // the frequencies sum to 1<<log
	n       int
	symbols [maxSymbols]symbol
}

type symbol struct {
	base   uint64
	raw    uint8
	freq   uint16
	weight uint64 // probability times 2^64
}

const (
	maxSymbols = 256
	blockLog   = 12
	gapLog     = 11
)

func (m *model) add(base uint64, raw uint8, weight uint64) {
	m.symbols[m.n] = symbol{base: base, raw: raw, weight: weight}
	m.n++
}

// longest returns the most bits that one symbol can take, its raw bits included.
func (m *model) longest() uint {
	most := uint(0)
	for _, s := range m.symbols[:m.n] {
		most = max(most, m.log-uint(bits.Len16(s.freq)-1)+uint(s.raw))
	}
	return most
}

// normalise turns weights into frequencies: the nearest integers, at least one. Then, until
// they sum to 1<<log, it adds or subtracts one where that changes the cost the least:
// -weight*log(freq) changes by about weight/(freq±1/2).
func (m *model) normalise() {
	symbols := m.symbols[:m.n]
	sum := 0
	for i := range symbols {
		s := &symbols[i]
		s.freq = uint16(max(1, (s.weight>>(63-m.log)+1)>>1))
		sum += int(s.freq)
	}
	for ; sum < 1<<m.log; sum++ {
		best, gain := 0, uint64(0)
		for i, s := range symbols {
			if g := s.weight / (2*uint64(s.freq) + 1); g > gain {
				best, gain = i, g
			}
		}
		symbols[best].freq++
	}
	for ; sum > 1<<m.log; sum-- {
		best, loss := -1, uint64(0)
		for i, s := range symbols {
			if s.freq == 1 {
				continue
			}
			if l := s.weight / (2*uint64(s.freq) - 1); best < 0 || l < loss {
				best, loss = i, l
			}
		}
		symbols[best].freq--
	}
}

// Blocks of 16 bits are ranked by the number of ones and, among equals, by their value. The C(16, c)
// blocks with c ones are cut into groups whose sizes are the powers of two in C(16, c), largest first.
//
// blockModel gives a symbol to each group that is likely enough, in order of rank. All
// others have one symbol together, the escape, which is followed by the plain rank. Its base
// is above all ranks, so a decoded value tells how it was coded. visit gets each group's
// ordinal, and whether it has a symbol of its own.
func blockModel(mod *model, m, y uint64, visit func(ordinal int, kept bool)) {
	const enough = 1 << 49 // an eighth of a unit of frequency
	mod.log, mod.n = blockLog, 0
	zeros, _ := bits.Div64(m-y, 0, m) // probability of a zero, then of a block of zeros
	for range 4 {
		zeros, _ = bits.Mul64(zeros, zeros)
	}
	odds := uint64(1<<64 - 1)
	if y < m-y {
		odds, _ = bits.Div64(y, 0, m-y)
	}
	escaped := uint64(0)            // probability, times 2^64: starts at 2^64, modulo 2^64
	class, likely := uint(0), zeros // probability of one block with class ones
	eachGroup(func(ordinal int, ones uint, first uint64, log int) {
		for ; class < ones; class++ {
			likely, _ = bits.Mul64(likely, odds)
		}
		kept := likely<<log >= enough
		if kept {
			mod.add(first, uint8(log), likely<<log)
			escaped -= likely << log
		}
		visit(ordinal, kept)
	})
	mod.add(1<<32, 16, escaped)
	mod.normalise()
}

// choose16 returns C(16, k).
func choose16(k uint) uint64 {
	c := uint64(1)
	for i := range k {
		c = c * uint64(16-i) / uint64(i+1)
	}
	return c
}

// gapModelOf makes the model of gaps between random members. Its classes have 1<<raw gaps each,
// which is about an eighth of the mean gap. There are so many that fewer than one gap in 128 is
// longer. The last symbol is the jump: it skips as many positions as all classes have gaps, and
// another symbol follows.
func gapModelOf(mod *model, m, y uint64) {
	mod.log, mod.n = gapLog, 0
	r, _ := bits.Div64(m-y, 0, m) // probability that a gap is 1<<raw or more
	raw := uint8(0)
	for {
		twice, _ := bits.Mul64(r, r)
		if twice < 7<<61 {
			break
		}
		r = twice
		raw++
	}
	left := uint64(1<<64 - 1)
	base := uint64(0)
	for left >= 1<<57 {
		rest, _ := bits.Mul64(left, r)
		mod.add(base, raw, left-rest)
		base += 1 << raw
		left = rest
	}
	mod.add(base, 0, left)
	mod.normalise()
}
