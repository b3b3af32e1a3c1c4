package arith

import "math/bits"

// blockForm says what the symbols of the block method stand for.
type blockForm uint8

const (
	blocks16 blockForm = iota // 16 bits of the array
	blocks32                  // 32 bits of the array
	gaps                      // the absent positions before each member
)

// If at least one position in sparse16 is a member, blocks have 16 bits; if at least one in
// sparse32, 32 bits. Otherwise gaps are coded. All three come near the limit everywhere; at
// these bounds one form becomes faster than another.
const (
	sparse16 = 13
	sparse32 = 26
)

// blockPlan has everything about the block method's bytes that follows from m and x.
type blockPlan struct {
	m    uint64
	y    uint64 // how many positions are coded as members: the rarer kind
	flip bool   // the members coded are the positions that are not in the set
	form blockForm
	// The universe is cut into chunks that are coded separately. Each has span positions, and
	// the last one the rest.
	span   uint64
	chunks int
}

// chunkBytes is about the fewest bytes of a chunk's code, if there are several chunks.
const chunkBytes = 1 << 17

func planBlocks(m, x uint64) blockPlan {
	p := blockPlan{m: m, y: x, form: gaps, span: m, chunks: 1}
	if x > m-x {
		p.y, p.flip = m-x, true
	}
	switch {
	case p.y*sparse16 >= m:
		p.form = blocks16
	case p.y*sparse32 >= m:
		p.form = blocks32
	}
	if n := codeBits(m, p.y) / (8 * chunkBytes); n >= 2 {
		parts := uint64(1) << (bits.Len64(n) - 1)
		p.span = ((m-1)/parts/64 + 1) * 64
		p.chunks = int((m-1)/p.span + 1)
	}
	return p
}

// codeBits is about the number of bits that y members of m positions take, y <= m/2. It is at
// least three quarters of that number.
func codeBits(m, y uint64) uint64 {
	if y == 0 {
		return 0
	}
	return y * uint64(bits.Len64(m/y)+1)
}

// chunk returns where chunk i begins and ends.
func (p *blockPlan) chunk(i int) (from, to uint64) {
	from = uint64(i) * p.span
	return from, min(from+p.span, p.m)
}

// model fills mod with the plan's symbols.
func (p *blockPlan) model(mod *model, visit func(ordinal int, kept bool)) {
	switch p.form {
	case blocks16:
		blockModel(mod, p.m, p.y, 16, visit)
	case blocks32:
		blockModel(mod, p.m, p.y, 32, visit)
	case gaps:
		gapModelOf(mod, p.m, p.y)
	}
}
