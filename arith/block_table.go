package arith

import "math/bits"

// The state machine is tabled asymmetric numeral systems (Duda, "Asymmetric
// numeral systems", arXiv 1311.2540): a state in [L, 2L), L = 1<<log, holds a
// fraction of a bit. To code a symbol of frequency f the encoder sheds low
// bits of the state until f <= state < 2f, and the symbol's states in [L, 2L)
// number that interval. The decoder runs backwards from the encoder's last
// state. Symbols own states as spread says.

// spread assigns each of the 1<<log states to a symbol, like zstd's FSE (RFC 8878, section
// 4.1.1): every symbol in turn gets as many states as its frequency, a fixed odd step apart.
func (m *model) spread(owner *[1 << blockLog]uint8) {
	mask := uint(1)<<m.log - 1
	step := 5<<m.log>>3 + 3
	at := uint(0)
	for i, s := range m.symbols[:m.n] {
		for range s.freq {
			owner[at] = uint8(i)
			at = (at + uint(step)) & mask
		}
	}
}

// encodeTable has, for each ordinal by which an encoder names a symbol, the data to code it.
// Several ordinals may name the escape.
type encodeTable struct {
	next [1 << blockLog]uint16 // states, sorted by symbol and then ascending
	shed [maxSymbols]uint64    // (state+shed)>>16 is the number of bits to shed
	turn [maxSymbols]uint64    // next[state>>(bits shed) + turn] is the next state
	base [maxSymbols]uint64    // the first of the symbol's values
	raw  [maxSymbols]uint64
	one  uint64 // L, the state that encoding starts from
}

// build fills the table with the model's symbols. sym has the symbol that each ordinal names.
func (t *encodeTable) build(m *model, sym []uint8) {
	var owner [1 << blockLog]uint8
	m.spread(&owner)
	t.one = 1 << m.log
	var at [maxSymbols]uint32
	start := uint32(0)
	for i, s := range m.symbols[:m.n] {
		at[i] = start
		start += uint32(s.freq)
	}
	for ordinal, i := range sym {
		// most-1 bits are shed, or most bits from state f<<most on.
		s := &m.symbols[i]
		f := uint64(s.freq)
		most := uint64(m.log) - uint64(bits.Len64(f)-1)
		t.shed[ordinal] = most<<16 - f<<most
		t.turn[ordinal] = uint64(at[i]) - f
		t.base[ordinal] = s.base
		t.raw[ordinal] = uint64(s.raw)
	}
	for state := range uint32(1) << m.log {
		i := owner[state]
		t.next[at[i]] = uint16(1<<m.log + state)
		at[i]++
	}
}

// decodeTable has, for each state less L, its symbol and the next state.
type decodeTable struct {
	next [1 << blockLog]uint16 // the next state less L, before the bits shed are added
	shed [1 << blockLog]uint8  // how many bits those are
	sym  [1 << blockLog]uint8
	raw  [1 << blockLog]uint8
	base [maxSymbols]uint64
	mask [maxSymbols]uint64 // 1<<raw - 1
	log  uint
	long uint // the most bits that a symbol takes
	// Gaps: all of these for a state, as base+1<<16 | next<<5 | jump<<4 | shed.
	gap  [1 << gapLog]uint64
	each uint // raw of all symbols except the jump
}

// jumpBit is set in gap if the symbol is the jump.
const jumpBit = 1 << 4

func (t *decodeTable) buildGaps(m *model) {
	t.each = uint(m.symbols[0].raw)
	for at := range t.gap {
		sym := t.sym[at]
		t.gap[at] = (t.base[sym]+1)<<16 | uint64(t.next[at])<<5 | uint64(t.shed[at])
		if int(sym) == m.n-1 {
			t.gap[at] |= jumpBit
		}
	}
}

func (t *decodeTable) build(m *model) {
	m.spread(&t.sym)
	t.log = m.log
	t.long = m.longest()
	var state [maxSymbols]uint32
	for i, s := range m.symbols[:m.n] {
		state[i] = uint32(s.freq)
		t.base[i] = s.base
		t.mask[i] = 1<<s.raw - 1
	}
	for at, i := range t.sym[:1<<m.log] {
		s := state[i]
		state[i]++
		shed := m.log - uint(bits.Len32(s)-1)
		t.next[at] = uint16(s<<shed - 1<<m.log)
		t.shed[at] = uint8(shed)
		t.raw[at] = m.symbols[i].raw
	}
}
