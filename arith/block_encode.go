package arith

import (
	"math/bits"
	"slices"
)

// blockEncoder codes one set.
type blockEncoder struct {
	encodeTable
	plan blockPlan
	long uint   // the most bits that a symbol takes
	raw  uint   // gaps: a class is 1<<raw gaps
	jump uint64 // gaps: the jump's ordinal, which is the number of classes
}

func (e *blockEncoder) init(p *blockPlan) {
	e.plan = *p
	var mod model
	var sym [maxSymbols]uint8 // of each group, or of each class of gaps and the jump
	kept, groups := uint8(0), 0
	p.model(&mod, func(ordinal int, keep bool) {
		sym[ordinal] = 255
		if keep {
			sym[ordinal] = kept
			kept++
		}
		groups = ordinal + 1
	})
	if p.gaps {
		for ; groups < mod.n; groups++ {
			sym[groups] = uint8(groups)
		}
		e.raw = uint(mod.symbols[0].raw)
		e.jump = uint64(mod.n - 1)
	} else {
		mod.symbols[mod.n-1].base = 0 // an escape is followed by the rank itself
		for i := range sym[:groups] {
			sym[i] = min(sym[i], kept)
		}
	}
	e.long = mod.longest()
	e.build(&mod, sym[:groups])
	if !p.gaps {
		e.baseInClass()
	}
}

// baseInClass makes the bases of blocks of 16 bits relative to the first block with as many
// ones, like place16.
func (e *blockEncoder) baseInClass() {
	ordinal, first := 0, uint64(0)
	for c := range uint(17) {
		count := choose16(c)
		for range bits.OnesCount64(count) {
			e.base[ordinal] -= first
			ordinal++
		}
		first += count
	}
}

// encode codes s from the end of buffer towards its beginning. It returns the code, which is a part of
// buffer or, if that has no room for it, of a larger one.
func (e *blockEncoder) encode(buffer []byte, s *source) []byte {
	var p bitPacker
	p.reset(buffer, &e.encodeTable)
	if !e.plan.gaps {
		e.encodeBlocks(&p, s)
		return p.finish(&e.encodeTable)
	}
	members := s.positions
	if s.words != nil || s.flip { // a filter that is kept as an array seldom has gaps
		members = slices.AppendSeq(make([]uint64, 0, e.plan.y), s.members)
	}
	e.encodeGaps(&p, members)
	e.encodeGap(&p, members[0])
	return p.finish(&e.encodeTable)
}

// wordBatch is the number of words that are processed together.
const wordBatch = 64

// encodeBlocks goes from the last block to the first.
func (e *blockEncoder) encodeBlocks(p *bitPacker, s *source) {
	fillTables()
	var words [wordBatch]uint64
	for n := wordsFor(s.m); n > 0; {
		now := words[:(n-1)%wordBatch+1]
		n -= uint64(len(now))
		p.words16(s.array(now, 64*n), &e.encodeTable)
	}
}

// encodeGaps codes the gaps between members, from the last to the first.
func (e *blockEncoder) encodeGaps(p *bitPacker, members []uint64) {
	for len(members) > 1 {
		if e.long <= 28 {
			members = p.gaps(members, &e.encodeTable, e.raw, e.jump)
		}
		if n := len(members); n > 1 {
			e.encodeGap(p, members[n-1]-members[n-2]-1)
			members = members[:n-1]
		}
	}
}

// encodeGap codes one gap. When it is decoded, its jumps come first and then its class.
func (e *blockEncoder) encodeGap(p *bitPacker, gap uint64) {
	jump := e.jump << e.raw
	jumps := gap / jump
	gap %= jump
	p.single(gap<<8|gap>>e.raw, &e.encodeTable)
	for range jumps {
		p.single(jump<<8|e.jump, &e.encodeTable)
	}
}
