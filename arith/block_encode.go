package arith

import "math/bits"

// chunkEncoder codes the chunks of one set.
type chunkEncoder struct {
	encodeTable
	plan blockPlan
	long uint   // the most bits that a symbol takes
	raw  uint   // gaps: a class is 1<<raw gaps
	jump uint64 // gaps: the jump's ordinal, which is the number of classes
}

func (e *chunkEncoder) init(p *blockPlan) {
	e.plan = *p
	var mod model
	var sym [maxSymbols]uint8
	kept, groups := uint8(0), 0
	p.model(&mod, func(ordinal int, keep bool) {
		sym[ordinal] = 255
		if keep {
			sym[ordinal] = kept
			kept++
		}
		groups = ordinal + 1
	})
	if p.form == gaps {
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
	if p.form == blocks16 {
		e.baseInClass()
	}
}

// baseInClass makes the bases of blocks of 16 bits relative to the first block with as many
// ones, like place16.
func (e *chunkEncoder) baseInClass() {
	ordinal, first := 0, uint64(0)
	for c := range uint(17) {
		count := choose(16, c)
		for range bits.OnesCount64(count) {
			e.base[ordinal] -= first
			ordinal++
		}
		first += count
	}
}

// bound returns at least as many bytes as a chunk of count members takes.
func (e *chunkEncoder) bound(from, to, count uint64) int {
	symbols := count
	switch e.plan.form {
	case blocks16:
		symbols = wordsFor(to-from) * 4
	case blocks32:
		symbols = wordsFor(to-from) * 2
	case gaps:
		symbols += (to - from) / (e.jump << e.raw)
	}
	return int((symbols*uint64(e.long)+2*blockLog)/8) + 24 + windowBytes
}

// encode codes the chunk [from, to) into buffer, which must have at least bound bytes. It
// returns the code, which is a part of buffer.
func (e *chunkEncoder) encode(buffer []byte, s *source, from, to uint64) []byte {
	var p bitPacker
	p.reset(buffer, &e.encodeTable)
	switch {
	case e.plan.form != gaps:
		e.encodeBlocks(&p, s, from, to)
	case s.words == nil && !s.flip:
		e.encodePositions(&p, s, from, to)
	default:
		e.encodeMembers(&p, s, from, to)
	}
	return p.finish(&e.encodeTable)
}

// wordBatch is the number of words that are processed together.
const wordBatch = 64

// encodeBlocks goes from the last block to the first.
func (e *chunkEncoder) encodeBlocks(p *bitPacker, s *source, from, to uint64) {
	fillTables()
	var words [wordBatch]uint64
	var entries [batch]uint64
	for n := wordsFor(to - from); n > 0; {
		now := words[:(n-1)%wordBatch+1]
		n -= uint64(len(now))
		now = s.array(now, from+64*n)
		if e.plan.form == blocks16 {
			p.words16(now, &e.encodeTable)
		} else {
			p.singles(entries32(&entries, now), &e.encodeTable)
		}
	}
}

// encodePositions codes the gaps of a sorted slice.
func (e *chunkEncoder) encodePositions(p *bitPacker, s *source, from, to uint64) {
	positions := s.between(from, to)
	e.encodeGaps(p, positions)
	e.encodeGap(p, positions[0]-from)
}

// gapWords is the number of words of an array that are searched at a time.
const gapWords = 128

// encodeMembers codes the gaps of an array of bits.
func (e *chunkEncoder) encodeMembers(p *bitPacker, s *source, from, to uint64) {
	var words [gapWords]uint64
	var found [gapWords*64 + 1]uint64
	above := uint64(0) // the lowest member so far, whose gap is not yet known
	any := false
	for left := wordsFor(to - from); left > 0; {
		now := words[:(left-1)%gapWords+1]
		left -= uint64(len(now))
		now = s.array(now, from+64*left)
		n := members((*[gapWords * 64]uint64)(found[:]), now, from+64*left)
		if n == 0 {
			continue
		}
		if any {
			found[n] = above
			n++
		}
		e.encodeGaps(p, found[:n])
		above, any = found[0], true
	}
	e.encodeGap(p, above-from)
}

// encodeGaps codes the gaps between members, from the last to the first.
func (e *chunkEncoder) encodeGaps(p *bitPacker, members []uint64) {
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
func (e *chunkEncoder) encodeGap(p *bitPacker, gap uint64) {
	jump := e.jump << e.raw
	jumps := gap / jump
	gap %= jump
	p.single(gap<<8|gap>>e.raw, &e.encodeTable)
	for range jumps {
		p.single(jump<<8|e.jump, &e.encodeTable)
	}
}
