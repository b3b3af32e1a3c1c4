package arith

import (
	"encoding/binary"
	"math/bits"
)

// AppendBitmapGiven is [AppendBitmap] with side information: the code of words
// for a reader who has context, an array of as many bits. Of the positions at
// which context is zero some share is one, and of the others another: each
// kind is coded as a set of its own, by the [Method] that [Choose] names, so
// that the code comes within a few bytes of log2 C(m0, x0) + log2 C(m1, x1)
// bits for x0 ones at the m0 zeros of context and x1 at its m1 ones. That is
// the conditional entropy, which no reader without context can be sent.
//
// Given a filter, the exclusive-or with its successor is coded like this: where
// the filter is zero few bits change, where it is one a larger share does.
//
// m, x0 and x1 are not part of the code. It panics unless words and context
// both hold exactly m bits, rounded up to whole words, of which those from m
// on are zero. It takes time and memory in proportion to m, and ones.
func AppendBitmapGiven(dst []byte, m uint64, words, context []uint64) []byte {
	return Workers(1).AppendBitmapGiven(dst, m, words, context)
}

// DecodeBitmapGiven decodes into words what [AppendBitmapGiven] appended for m
// bits given context, of which x0 are one where context is zero and x1 where
// it is one. Its errors are those of [DecodeBitmap]; after one the contents of
// words are undefined. It panics unless words and context both hold exactly m
// bits, rounded up to whole words, of which in context those from m on are
// zero.
func DecodeBitmapGiven(words []uint64, src []byte, m, x0, x1 uint64, context []uint64) error {
	return Workers(1).DecodeBitmapGiven(words, src, m, x0, x1, context)
}

// AppendBitmapGiven is [AppendBitmapGiven] by several workers.
func (n Workers) AppendBitmapGiven(dst []byte, m uint64, words, context []uint64) []byte {
	checkWords(m, words)
	checkWords(m, context)
	checkBeyond(m, words)
	checkBeyond(m, context)
	g := newGiven(m, context)
	g.split(words, context)
	x0, x1 := popcount(g.zeros), popcount(g.ones)
	start := len(dst)
	dst = n.AppendBitmap(dst, Choose(g.m0, x0), g.m0, g.zeros)
	dst = prefixLength(dst, start)
	return n.AppendBitmap(dst, Choose(g.m1, x1), g.m1, g.ones)
}

// prefixLength puts the number of bytes from start on before them.
func prefixLength(dst []byte, start int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(dst)-start))
	dst = append(dst, length[:n]...)
	copy(dst[start+n:], dst[start:])
	copy(dst[start:], length[:n])
	return dst
}

// DecodeBitmapGiven is [DecodeBitmapGiven] by several workers.
func (n Workers) DecodeBitmapGiven(words []uint64, src []byte, m, x0, x1 uint64, context []uint64) error {
	checkWords(m, words)
	checkWords(m, context)
	checkBeyond(m, context)
	length, at := binary.Uvarint(src)
	switch {
	case at == 0:
		return ErrTruncated
	case at < 0 || at > 1 && src[at-1] == 0:
		return ErrCorrupt
	case length > uint64(len(src)-at):
		return ErrTruncated
	}
	zeros, ones := src[at:at+int(length)], src[at+int(length):]
	g := newGiven(m, context)
	if err := n.DecodeBitmap(g.zeros, Choose(g.m0, x0), zeros, g.m0, x0); err != nil {
		return ErrCorrupt // its length is known: nothing is missing
	}
	if err := n.DecodeBitmap(g.ones, Choose(g.m1, x1), ones, g.m1, x1); err != nil {
		return err
	}
	g.join(words, context)
	return nil
}

// given is an array of bits sorted by its context.
type given struct {
	m0, m1      uint64
	zeros, ones []uint64 // m0 bits where context is zero, and m1 where it is one
}

func newGiven(m uint64, context []uint64) given {
	m1 := popcount(context)
	n0 := wordsFor(m - m1)
	both := make([]uint64, n0+wordsFor(m1))
	return given{m0: m - m1, m1: m1, zeros: both[:n0:n0], ones: both[n0:]}
}

// split sorts the ones of words.
func (g *given) split(words, context []uint64) {
	rank := uint64(0) // ones of context before the word
	for i, w := range words {
		c := context[i]
		for ; w != 0; w &= w - 1 {
			bit := uint64(lowestOne(w))
			r := rank + uint64(bits.OnesCount64(c&(1<<bit-1)))
			if c>>bit&1 != 0 {
				g.ones[r/64] |= 1 << (r % 64)
			} else {
				r = 64*uint64(i) + bit - r
				g.zeros[r/64] |= 1 << (r % 64)
			}
		}
		rank += uint64(bits.OnesCount64(c))
	}
}

// join is split backwards.
func (g *given) join(words, context []uint64) {
	rank := uint64(0)
	for i, c := range context {
		n1 := uint64(bits.OnesCount64(c))
		words[i] = spread(bitsAt(g.zeros, 64*uint64(i)-rank, 64-n1), ^c) | spread(bitsAt(g.ones, rank, n1), c)
		rank += n1
	}
}

// bitsAt returns n bits of words, from at on; beyond the words there are zeros.
func bitsAt(words []uint64, at, n uint64) uint64 {
	w := uint64(0)
	if i := at / 64; i < uint64(len(words)) {
		w = words[i] >> (at % 64)
		if i+1 < uint64(len(words)) {
			w |= words[i+1] << 1 << (63 - at%64)
		}
	}
	return w & (1<<n - 1)
}

// spread moves bit j of b to where mask has its one of that rank.
func spread(b, mask uint64) (w uint64) {
	for ; b != 0; b &= b - 1 {
		w |= 1 << place(mask, uint64(lowestOne(b)))
	}
	return w
}

// place returns the place of the one of that rank in mask.
func place(mask, rank uint64) (at uint64) {
	for half := uint64(32); half > 0; half /= 2 {
		if below := uint64(bits.OnesCount64(mask & (1<<half - 1))); rank >= below {
			rank -= below
			mask >>= half
			at += half
		}
	}
	return at
}
