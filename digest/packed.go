package digest

import (
	"fmt"
	"math/bits"
)

// mostPacked is how many positions a packed delta may set, and how many it may clear.
const mostPacked = 15

// AppendPacked is [Delta.AppendBare] in the form that is shortest for a few positions: one
// byte, and then their ranks, uncompressed. A delta that sets or clears more than 15 positions,
// or has none, is refused with [ErrTooLarge], and dst is returned unchanged.
func (d *Delta) AppendPacked(dst []byte, base *Filter) ([]byte, error) {
	if n := len(d.flips); n == 0 || n > 2*mostPacked {
		return dst, fmt.Errorf("digest: pack a delta of %d positions: %w", n, ErrTooLarge)
	}
	sets, clears, err := d.inContext(base)
	if err != nil {
		return dst, err
	}
	if max(len(sets), len(clears)) > mostPacked {
		return dst, fmt.Errorf("digest: pack a delta that sets %d and clears %d positions: %w", len(sets), len(clears), ErrTooLarge)
	}
	p := packer{dst: append(dst, byte(len(sets)|len(clears)<<4))}
	p.append(sets, d.geometry.Bits-d.baseOnes)
	p.append(clears, d.baseOnes)
	return p.end(), nil
}

// DecodePacked is [DecodeBare] for what [Delta.AppendPacked] wrote.
func DecodePacked(b []byte, base *Filter, sequence, keys uint64) (*Delta, *Filter, error) {
	r := reader{b: b}
	counts := r.u8("counts")
	zeros, a, c := base.geometry.Bits-base.ones, uint64(counts&15), uint64(counts>>4)
	if r.err == nil && (counts == 0 || a > zeros || c > base.ones) {
		r.corrupt("counts", 0, "%d of %d positions set, %d of %d cleared", a, zeros, c, base.ones)
	}
	u := unpacker{reader: &r}
	sets := u.ranks("positions set", a, zeros)
	clears := u.ranks("positions cleared", c, base.ones)
	if r.err == nil && u.bits != 0 {
		r.corrupt("padding", r.off-1, "not zero")
	}
	if err := r.finish(); err != nil {
		return nil, nil, err
	}
	return base.step(sequence, keys, sets, clears)
}

// widthOf returns the bits that a number below n takes.
func widthOf(n uint64) int { return bits.Len64(max(n, 1) - 1) }

// A packer writes numbers of given widths one after another, from the lowest bit up. Widths are
// at most 40 bits.
type packer struct {
	dst  []byte
	bits uint64
	have int // how many bits there are, below 8
}

func (p *packer) append(ranks []uint64, n uint64) {
	for _, rank := range ranks {
		p.bits |= rank << p.have
		for p.have += widthOf(n); p.have >= 8; p.have -= 8 {
			p.dst = append(p.dst, byte(p.bits))
			p.bits >>= 8
		}
	}
}

func (p *packer) end() []byte {
	if p.have > 0 {
		p.dst = append(p.dst, byte(p.bits))
	}
	return p.dst
}

// An unpacker reads what a packer wrote.
type unpacker struct {
	*reader
	bits uint64
	have int
}

// ranks reads count ascending ranks below n.
func (u *unpacker) ranks(field string, count, n uint64) (ranks []uint64) {
	width := widthOf(n)
	for i := uint64(0); i < count && u.err == nil; i++ {
		for ; u.have < width; u.have += 8 {
			u.bits |= uint64(u.u8(field)) << u.have
		}
		rank := u.bits & (1<<width - 1)
		u.bits >>= width
		u.have -= width
		if u.err == nil && (rank >= n || i > 0 && rank <= ranks[i-1]) {
			u.corrupt(field, u.off, "rank %d is not below %d, or not above the one before", rank, n)
		}
		ranks = append(ranks, rank)
	}
	return ranks
}
