package digest

import (
	"fmt"

	"github.com/summarycache/summarycache/arith"
)

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
