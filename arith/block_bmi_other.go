//go:build !amd64 || purego

package arith

func popcount(words []uint64) uint64 { return popcountGeneric(words) }

func fewOnes() uint64 { return fewOnesGeneric }

func members(found *[gapWords * 64]uint64, words []uint64, from uint64) int {
	return membersGeneric(found, words, from)
}

func (p *bitPacker) words16(words []uint64, t *encodeTable) { p.words16Generic(words, t) }

func (p *bitPacker) words32(words []uint64, t *encodeTable) { p.words32Generic(words, t) }

func (p *bitPacker) gaps(members []uint64, t *encodeTable, raw uint, jump uint64) []uint64 {
	return p.gapsGeneric(members, t, raw, jump)
}

func (r *chunkReader) words16(words []uint64, d *chunkDecoder) bool {
	return r.words16Generic(words, d)
}

func (r *chunkReader) words32(words []uint64, d *chunkDecoder) bool {
	return r.words32Generic(words, d)
}

func (r *bitReader) gaps(out []uint64, t *decodeTable, place uint64) int {
	return r.gapsGeneric(out, t, place)
}

func insert(words, members []uint64) { insertGeneric(words, members) }
