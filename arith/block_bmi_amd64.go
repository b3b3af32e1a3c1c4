//go:build !purego

package arith

// Nearly every amd64 machine made since 2013 (Intel) or 2015 (AMD) has BMI1 and
// BMI2, which Go does not assume; block_bmi*_amd64.s uses them. What is there
// checks no bounds: the functions of this file have seen to it that there is room,
// and code the same bytes as their generic brothers, which say what they do. The
// build tag purego leaves it out.

// useBMI tells whether this machine has them. Tests turn it off.
var useBMI = hasBMI()

func hasBMI() bool

func popcount(words []uint64) uint64 {
	if !useBMI || len(words) == 0 {
		return popcountGeneric(words)
	}
	return popcountBMI(&words[0], len(words))
}

// fewOnes is more than fewOnesGeneric, since here lines that have no ones cost less.
func fewOnes() uint64 {
	if !useBMI {
		return fewOnesGeneric
	}
	return 10_000
}

// members reads one batch ahead, downwards, since an encoder goes that way
// and the machine's own reading ahead does not see it.
func members(found *[gapWords * 64]uint64, words []uint64, from uint64) int {
	if !useBMI {
		return membersGeneric(found, words, from)
	}
	if len(words) == 0 || len(words) > gapWords {
		panic("arith: not a batch of words")
	}
	return membersBMI(found, &words[0], len(words), from)
}

// hasRoom panics unless the code of up to a batch of symbols of at most 28 bits
// fits before what is there.
func (p *bitPacker) hasRoom() { p.window() }

func (p *bitPacker) words16(words []uint64, t *encodeTable) {
	if !useBMI {
		p.words16Generic(words, t)
		return
	}
	if len(words) == 0 || 4*len(words) > batch {
		panic("arith: not a batch of words")
	}
	p.hasRoom()
	words16BMI(p, &words[0], len(words), t, &tables)
}

// words32 codes half as many symbols as there are in a batch, of at most 56 bits.
func (p *bitPacker) words32(words []uint64, t *encodeTable) {
	if !useBMI {
		p.words32Generic(words, t)
		return
	}
	if len(words) == 0 || 4*len(words) > batch {
		panic("arith: not a batch of words")
	}
	p.hasRoom()
	words32BMI(p, &words[0], len(words), t, &tables)
}

func (p *bitPacker) gaps(members []uint64, t *encodeTable, raw uint, jump uint64) []uint64 {
	pairs := min((len(members)-1)/2, batch/2)
	if !useBMI || pairs == 0 {
		return p.gapsGeneric(members, t, raw, jump)
	}
	p.hasRoom()
	left := encodeGapsBMI(p, &members[len(members)-1], pairs, t, uint64(raw), min(jump, maxSymbols-1))
	return members[:len(members)-2*(pairs-left)]
}

func (r *chunkReader) words16(words []uint64, d *chunkDecoder) bool {
	if !useBMI || d.long > 28 || len(words) == 0 {
		return r.words16Generic(words, d)
	}
	left, escaped := read16BMI(&r.bitReader, &words[0], len(words), &d.decodeTable, &tables)
	words, last := words[:len(words)-left], words[len(words)-left:]
	if escaped > 0 { // as many as must be, if none is that must not
		for _, w := range words {
			escaped -= int(unkept16(w, &d.kept))
		}
	}
	return r.words16Generic(last, d) && escaped == 0
}

func (r *chunkReader) words32(words []uint64, d *chunkDecoder) bool {
	if !useBMI || len(words) == 0 || 2*len(words) > len(r.values) {
		return r.words32Generic(words, d)
	}
	left, noted := read32BMI(&r.bitReader, &words[0], len(words), &d.decodeTable, &tables, &r.values)
	all := true
	for _, note := range r.values[:noted] {
		block, ok := block32(note>>8, &d.kept)
		all = all && ok
		shift := 32 * (note & 1)
		w := &words[note>>1&0x7f]
		*w = *w&^(0xffffffff<<shift) | uint64(block)<<shift
	}
	return r.words32Generic(words[len(words)-left:], d) && all
}

func (r *bitReader) gaps(out []uint64, t *decodeTable, place uint64) int {
	pairs := len(out) / 2
	if !useBMI || pairs == 0 {
		return r.gapsGeneric(out, t, place)
	}
	return 2 * (pairs - decodeGapsBMI(r, &out[0], pairs, t, place))
}

func insert(words, members []uint64) {
	if !useBMI || len(members) == 0 {
		insertGeneric(words, members)
		return
	}
	_ = words[members[len(members)-1]/64] // which is the largest
	insertBMI(&words[0], &members[0], len(members))
}

//go:noescape
func popcountBMI(words *uint64, n int) uint64

//go:noescape
func membersBMI(found *[gapWords * 64]uint64, words *uint64, n int, from uint64) int

//go:noescape
func words16BMI(p *bitPacker, words *uint64, n int, t *encodeTable, tables *blockTables)

//go:noescape
func words32BMI(p *bitPacker, words *uint64, n int, t *encodeTable, tables *blockTables)

// encodeGapsBMI codes the gaps below *last, two for each of pairs, and stops before a
// pair that has a jump. It returns how many pairs are left.
//
//go:noescape
func encodeGapsBMI(p *bitPacker, last *uint64, pairs int, t *encodeTable, raw, jump uint64) (left int)

// read16BMI decodes n words, but for the last sixteen bytes of the chunk. It
// returns how many are left, and how many blocks were escaped.
//
//go:noescape
func read16BMI(r *bitReader, words *uint64, n int, t *decodeTable, tables *blockTables) (left, escaped int)

// read32BMI is read16BMI for blocks of 32 bits. Those that unrank32 has not it
// notes in many: the decoded value<<8 and the number of the block.
//
//go:noescape
func read32BMI(r *bitReader, words *uint64, n int, t *decodeTable, tables *blockTables, many *[batch]uint64) (left, noted int)

// decodeGapsBMI decodes pairs of gaps to members, but for the last eight bytes
// of the chunk, and stops before a pair that has a jump.
//
//go:noescape
func decodeGapsBMI(r *bitReader, out *uint64, pairs int, t *decodeTable, place uint64) (left int)

//go:noescape
func insertBMI(words, members *uint64, n int)
