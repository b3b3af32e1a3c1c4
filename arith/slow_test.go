package arith

import "math/big"

// slowEncoder is the coder as the specification describes it: the low end is one big number,
// and nothing is written until the end.
type slowEncoder struct {
	low   *big.Int
	width *big.Int
	words uint
}

func newSlowEncoder() *slowEncoder {
	return &slowEncoder{low: new(big.Int), width: new(big.Int).SetUint64(1<<64 - 1)}
}

func num(v uint64) *big.Int { return new(big.Int).SetUint64(v) }

func power(n uint) *big.Int { return new(big.Int).Lsh(num(1), n) }

// quo returns a*b/c, rounded down.
func quo(a, b, c *big.Int) *big.Int { return new(big.Int).Quo(new(big.Int).Mul(a, b), c) }

func (s *slowEncoder) narrow(from, width *big.Int) {
	s.low.Add(s.low, from)
	s.width.Set(width)
	if s.width.Cmp(power(32)) < 0 {
		s.low.Lsh(s.low, 32)
		s.width.Lsh(s.width, 32)
		s.words++
	}
}

func (s *slowEncoder) uniform(v uint64, n uint) {
	for n > 16 {
		n -= 16
		s.uniformStep(v>>n&0xffff, 16)
	}
	s.uniformStep(v&(1<<n-1), n)
}

func (s *slowEncoder) uniformStep(v uint64, n uint) {
	w := new(big.Int).Rsh(s.width, n)
	s.narrow(new(big.Int).Mul(num(v), w), w)
}

func (s *slowEncoder) bit(zero *big.Int, bit uint64) {
	split := quo(s.width, zero, power(64))
	if bit == 0 {
		s.narrow(num(0), split)
	} else {
		s.narrow(split, new(big.Int).Sub(s.width, split))
	}
}

func (s *slowEncoder) finish() []byte {
	high := new(big.Int).Add(s.low, s.width)
	for n := uint(0); ; n++ {
		unit := power(64 - 8*n)
		v := new(big.Int).Add(s.low, unit)
		v.Sub(v, num(1)).Div(v, unit)
		if new(big.Int).Mul(v, unit).Cmp(high) < 0 {
			return v.FillBytes(make([]byte, 4*s.words+n))
		}
	}
}

// slowAdaptive is the adaptive method, position by position.
func slowAdaptive(m uint64, positions []uint64) []byte {
	x := uint64(len(positions))
	s := newSlowEncoder()
	if 8*min(x, m-x) >= m {
		slowBits(s, m, positions)
	} else if x <= m-x {
		slowGaps(s, m, positions)
	} else {
		slowGaps(s, m, complement(m, positions))
	}
	return s.finish()
}

func slowBits(s *slowEncoder, m uint64, positions []uint64) {
	in := map[uint64]bool{}
	for _, p := range positions {
		in[p] = true
	}
	left, ones := m, uint64(len(positions))
	var zero *big.Int
	drawn := uint64(0)
	for p := range m {
		if p%64 == 0 {
			left, ones, drawn = m-p, ones-drawn, 0
			if ones == 0 || ones == left {
				return
			}
			zero = quo(power(64), num(left-ones), num(left))
			if zero.Cmp(power(32)) < 0 {
				zero = power(32)
			}
		}
		if in[p] {
			s.bit(zero, 1)
			drawn++
		} else {
			s.bit(zero, 0)
		}
	}
}

func slowGaps(s *slowEncoder, m uint64, positions []uint64) {
	x := uint64(len(positions))
	if x == 0 {
		return
	}
	// r[j] is the probability of a gap of 1<<j or more, times 2^64.
	r := []*big.Int{quo(power(64), num(m-x), num(m))}
	for r[len(r)-1].Cmp(power(62)) >= 0 {
		last := r[len(r)-1]
		r = append(r, quo(last, last, power(64)))
	}
	top := uint(len(r) - 1)
	fair := new(big.Int).Sub(power(64), power(59))
	noJump := new(big.Int).Sub(power(64), r[top])
	from := uint64(0)
	for _, p := range positions {
		gap := p - from
		from = p + 1
		for gap >= 1<<top {
			s.bit(noJump, 1)
			gap -= 1 << top
		}
		s.bit(noJump, 0)
		for j := int(top) - 1; ; j-- {
			if j < 0 || r[j].Cmp(fair) > 0 {
				s.uniform(gap&(1<<(j+1)-1), uint(j+1))
				break
			}
			half := new(big.Int).Rsh(r[j], 1)
			s.bit(quo(power(63), power(64), half.Add(half, power(63))), gap>>j&1)
		}
	}
}

func complement(m uint64, positions []uint64) []uint64 {
	absent, next := []uint64{}, 0
	for p := range m {
		if next < len(positions) && positions[next] == p {
			next++
		} else {
			absent = append(absent, p)
		}
	}
	return absent
}
