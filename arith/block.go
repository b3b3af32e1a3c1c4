package arith

import (
	"math/bits"
	"slices"
)

// If at least one position in sparse16 is a member, the symbols of the block method are blocks of 16 bits
// of the array, otherwise the gaps before the members. Both come near the limit everywhere. Near this
// bound one form becomes faster than the other.
const sparse16 = 18

// blockPlan has everything about the block method's bytes that follows from m and x.
type blockPlan struct {
	m    uint64
	y    uint64 // how many positions are coded as members: the rarer kind
	flip bool   // the members coded are the positions that are not in the set
	gaps bool   // the symbols are gaps, not blocks
}

func planBlocks(m, x uint64) blockPlan {
	y := min(x, m-x)
	return blockPlan{m: m, y: y, flip: x > y, gaps: y*sparse16 < m}
}

// codeBits is about the number of bits that y members of m positions take, y <= m/2. It is at
// least three quarters of that number.
func codeBits(m, y uint64) uint64 {
	if y == 0 {
		return 0
	}
	return y * uint64(bits.Len64(m/y)+1)
}

// room is a number of bytes that the code of a set at random does not exceed.
func (p *blockPlan) room() int {
	most := min(codeBits(p.m, p.y)+p.y/2, p.m)
	return int((most+most/512)/8) + 2*windowBytes
}

// model fills mod with the plan's symbols.
func (p *blockPlan) model(mod *model, visit func(ordinal int, kept bool)) {
	if p.gaps {
		gapModelOf(mod, p.m, p.y)
	} else {
		blockModel(mod, p.m, p.y, visit)
	}
}

// appendBlocks appends the code of s, which has x positions.
func appendBlocks(dst []byte, s *source, x uint64) []byte {
	p := planBlocks(s.m, x)
	if p.y == 0 {
		return dst
	}
	s.flip = p.flip
	var e blockEncoder
	e.init(&p)
	// The code is written backwards from the end of this room, or of a larger one, and then moved.
	dst = slices.Grow(dst, p.room())
	return append(dst, e.encode(dst[len(dst):cap(dst)], s)...)
}

// decodeBlocks decodes a set into t.
func decodeBlocks(t *taker, src []byte, m, x uint64) error {
	p := planBlocks(m, x)
	if p.y == 0 {
		if len(src) > 0 {
			return ErrCorrupt
		}
		if x > 0 {
			t.run(m)
		}
		return nil
	}
	var d blockDecoder
	d.init(&p)
	if p.gaps {
		return d.gapsToSet(t, src)
	}
	return d.blocksToSet(t, src)
}

// bitmap decodes blocks into words.
func (p *blockPlan) bitmap(words []uint64, src []byte) error {
	var d blockDecoder
	d.init(p)
	err := d.blocksToWords(words, src)
	if p.flip {
		invert(words, 0, p.m)
	}
	return err
}
