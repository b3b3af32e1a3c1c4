package digest

import (
	"encoding/binary"
	"fmt"

	"github.com/summarycache/summarycache/arith"
)

// A positionSet is x positions in [0, m), either ascending in list or as the ones of words.
type positionSet struct {
	m, x  uint64
	list  []uint64
	words []uint64
}

func listed(m uint64, list []uint64) positionSet {
	return positionSet{m: m, x: uint64(len(list)), list: list}
}

// appendCode appends the code of a set, by the method that its size decides, so that equal sets have
// equal bytes.
func (s positionSet) appendCode(dst []byte) []byte {
	method := arith.Choose(s.m, s.x)
	if s.words != nil {
		return arith.AppendBitmap(dst, method, s.m, s.words)
	}
	return arith.AppendSet(dst, method, s.m, s.list)
}

// appendSection appends the length of a set's code and the code: FORMAT.md, section 5.
func (s positionSet) appendSection(dst []byte) []byte {
	code := s.appendCode(nil)
	return append(binary.AppendUvarint(dst, uint64(len(code))), code...)
}

// section reads the code of a set of x positions in [0, m).
func (r *reader) section(field string, m, x uint64) (at int, code []byte) {
	lengthAt := r.off
	n := r.uvarint(field + " length")
	if r.err == nil && n > uint64(len(r.b)-r.off) {
		r.corrupt(field+" length", lengthAt, "%d bytes of %d", n, len(r.b)-r.off)
	}
	return r.code(field, int(n), m, x)
}

// code takes n bytes, the code of a set. A member of the rarer kind takes more than a bit, so more
// members are refused before memory is allocated for them.
func (r *reader) code(field string, n int, m, x uint64) (at int, code []byte) {
	if at = r.off; r.err == nil && n > 0 {
		code = r.take(field, n)
		r.annotate("%v", arith.Choose(m, x))
	}
	if r.err == nil && min(x, m-x) > 8*(uint64(n)+8) {
		r.corrupt(field, at, "%d bytes cannot be %d positions below %d", n, x, m)
	}
	return at, code
}

// coded refuses a code that package arith has refused.
func (r *reader) coded(field string, at int, err error) {
	if err != nil {
		r.fail(field, at, fmt.Errorf("%w: %w", ErrCorrupt, err))
	}
}
