package arith

import (
	"math/big"
	"math/bits"
	"slices"
)

// slowBlock is the block method as the specification describes it, with bits in a slice, big
// integers, and linear searches.
func slowBlock(m uint64, positions []uint64) []byte {
	x := uint64(len(positions))
	y := min(x, m-x)
	if y == 0 {
		return nil
	}
	if x > y {
		positions = complement(m, positions)
	}
	if 18*y >= m {
		model := slowBlockModel(m, y)
		model.normalise()
		return model.encode(model.blocks(positions, m))
	}
	model := slowGapModel(m, y)
	model.normalise()
	return model.encode(model.gaps(positions))
}

// slowSymbol is the choice of one of a model's symbols and the place in it.
type slowSymbol struct {
	index int
	place uint64
}

type slowModel struct {
	log      uint
	weight   []*big.Int
	base     []uint64
	raw      []uint
	freq     []uint64
	escapes  bool // the last symbol is the escape
	jumpWide uint64
}

func (s *slowModel) add(base uint64, raw uint, weight *big.Int) {
	s.base = append(s.base, base)
	s.raw = append(s.raw, raw)
	s.weight = append(s.weight, weight)
}

// mulDown is a*b/2^64, rounded down.
func mulDown(a, b *big.Int) *big.Int { return quo(a, b, power(64)) }

func slowBlockModel(m, y uint64) slowModel {
	s := slowModel{log: 12, escapes: true}
	likely := quo(power(64), num(m-y), num(m))
	for range 4 {
		likely = mulDown(likely, likely)
	}
	odds := quo(power(64), num(y), num(m-y))
	if 2*y == m {
		odds.Sub(power(64), num(1))
	}
	escaped := power(64)
	first := uint64(0)
	for c := int64(0); c <= 16; c++ {
		count := new(big.Int).Binomial(16, c).Uint64()
		for j := 16; j >= 0; j-- {
			if count&(1<<j) == 0 {
				continue
			}
			weight := new(big.Int).Mul(likely, power(uint(j)))
			if weight.Cmp(power(49)) >= 0 {
				s.add(first, uint(j), weight)
				escaped.Sub(escaped, weight)
			}
			first += 1 << j
		}
		likely = mulDown(likely, odds)
	}
	s.add(0, 16, escaped)
	return s
}

func slowGapModel(m, y uint64) slowModel {
	s := slowModel{log: 11}
	r := quo(power(64), num(m-y), num(m))
	raw := uint(0)
	for eighths := new(big.Int).Mul(num(7), power(61)); mulDown(r, r).Cmp(eighths) >= 0; raw++ {
		r = mulDown(r, r)
	}
	left := new(big.Int).Sub(power(64), num(1))
	for left.Cmp(power(57)) >= 0 {
		rest := mulDown(left, r)
		s.add(s.jumpWide, raw, new(big.Int).Sub(left, rest))
		s.jumpWide += 1 << raw
		left = rest
	}
	s.add(s.jumpWide, 0, left)
	return s
}

func (s *slowModel) normalise() {
	unit := power(64 - s.log)
	sum := uint64(0)
	for _, w := range s.weight {
		f := new(big.Int).Add(new(big.Int).Mul(w, num(2)), unit)
		f.Quo(f, new(big.Int).Mul(unit, num(2)))
		s.freq = append(s.freq, max(1, f.Uint64()))
		sum += s.freq[len(s.freq)-1]
	}
	score := func(i int, divisor uint64) *big.Int { return new(big.Int).Quo(s.weight[i], num(divisor)) }
	for ; sum < 1<<s.log; sum++ {
		best := 0
		for i := range s.freq {
			if score(i, 2*s.freq[i]+1).Cmp(score(best, 2*s.freq[best]+1)) > 0 {
				best = i
			}
		}
		s.freq[best]++
	}
	for ; sum > 1<<s.log; sum-- {
		best := -1
		for i := range s.freq {
			if s.freq[i] > 1 && (best < 0 || score(i, 2*s.freq[i]-1).Cmp(score(best, 2*s.freq[best]-1)) < 0) {
				best = i
			}
		}
		s.freq[best]--
	}
}

// gaps returns the symbols of the members.
func (s *slowModel) gaps(members []uint64) (symbols []slowSymbol) {
	from := uint64(0)
	for _, p := range members {
		gap := p - from
		from = p + 1
		for gap >= s.jumpWide {
			symbols = append(symbols, slowSymbol{len(s.base) - 1, 0})
			gap -= s.jumpWide
		}
		for i := 0; ; i++ {
			if gap < s.base[i]+1<<s.raw[i] {
				symbols = append(symbols, slowSymbol{i, gap - s.base[i]})
				break
			}
		}
	}
	return symbols
}

// blocks returns the symbols of an array of m bits, padded with zeros to whole words of 64 bits.
func (s *slowModel) blocks(members []uint64, m uint64) (symbols []slowSymbol) {
	array := make([]uint64, (m+63)/64*4)
	for _, p := range members {
		array[p/16] |= 1 << (p % 16)
	}
	for _, block := range array {
		rank := rank16[block]
		symbol := slowSymbol{len(s.base) - 1, rank}
		for i := range s.base[:len(s.base)-1] {
			if rank >= s.base[i] && rank < s.base[i]+1<<s.raw[i] {
				symbol = slowSymbol{i, rank - s.base[i]}
			}
		}
		symbols = append(symbols, symbol)
	}
	return symbols
}

// sorted16 is all blocks of 16 bits, by number of ones and then by value.
var sorted16 = func() []uint64 {
	all := make([]uint64, 1<<16)
	for b := range all {
		all[b] = uint64(b)
	}
	slices.SortStableFunc(all, func(a, b uint64) int { return bits.OnesCount64(a) - bits.OnesCount64(b) })
	return all
}()

// rank16 is where each block of 16 bits is in sorted16.
var rank16 = func() []uint64 {
	ranks := make([]uint64, 1<<16)
	for i, b := range sorted16 {
		ranks[b] = uint64(i)
	}
	return ranks
}()

// encode returns the code.
func (s *slowModel) encode(symbols []slowSymbol) []byte {
	l := uint64(1) << s.log
	owner := make([]int, l)
	at := uint64(0)
	for i, f := range s.freq {
		for range f {
			owner[at] = i
			at = (at + l/2 + l/8 + 3) % l
		}
	}
	states := make([][]uint64, len(s.freq))
	for at, i := range owner {
		states[i] = append(states[i], l+uint64(at))
	}

	var stream []byte // one bit each, the last first
	put := func(v uint64, n uint) {
		for i := int(n) - 1; i >= 0; i-- {
			stream = append(stream, byte(v>>i&1))
		}
	}
	state, other := l, l
	for i := len(symbols) - 1; i >= 0; i-- {
		sym := symbols[i]
		f := s.freq[sym.index]
		shed := uint(0)
		for state>>shed >= 2*f {
			shed++
		}
		put(state&(1<<shed-1), shed)
		put(sym.place, s.raw[sym.index])
		state, other = other, states[sym.index][state>>shed-f]
	}
	put(state-l, s.log)
	put(other-l, s.log)
	put(1, 1)
	for len(stream)%8 != 0 {
		put(0, 1)
	}
	slices.Reverse(stream)
	code := make([]byte, len(stream)/8)
	for i, bit := range stream {
		code[i/8] |= bit << (i % 8)
	}
	return code
}
