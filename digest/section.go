package digest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/summarycache/summarycache/arith"
)

// A coding is a way to write a set of positions: FORMAT.md, section 5.
type coding uint8

const (
	codingBitmap coding = 0 // one bit a position
	codingGaps   coding = 1 // a uvarint for each gap
	codingArith  coding = 2 // and above: codingArith plus the method of package arith
)

func (c coding) String() string {
	switch c {
	case codingBitmap:
		return "bitmap"
	case codingGaps:
		return "gaps"
	}
	return c.method().String()
}

// method is the method of package arith, if c is codingArith or above.
func (c coding) method() arith.Method { return arith.Method(c - codingArith) }

// known reports whether there is such a coding. Package arith must have a name for a method of
// its own.
func (c coding) known() bool { return c.String() != arith.Method(math.MaxUint8).String() }

// A positionSet is x positions in [0, m), either ascending in list or as the ones of words.
type positionSet struct {
	m, x  uint64
	list  []uint64
	words []uint64
}

func listed(m uint64, list []uint64) positionSet {
	return positionSet{m: m, x: uint64(len(list)), list: list}
}

// appendSection writes a set by the coding that makes it smallest, which is nearly always the
// entropy coder's. Of two codings of equal length it takes the lower, so that equal sets give
// equal bytes.
func appendSection(dst []byte, s positionSet) []byte {
	at := len(dst)
	method := arith.Choose(s.m, s.x)
	if s.words != nil {
		dst = arith.AppendBitmap(dst, method, s.m, s.words)
	} else {
		dst = arith.AppendSet(dst, method, s.m, s.list)
	}
	best := codingArith + coding(method)
	smallest := uint64(len(dst) - at)
	if gaps := s.gapBytes(smallest); gaps <= smallest {
		best, smallest = codingGaps, gaps
	}
	if bitmap := (s.m + 7) / 8; bitmap <= smallest {
		best, smallest = codingBitmap, bitmap
	}
	switch best {
	case codingGaps:
		dst = s.appendGaps(dst[:at])
	case codingBitmap:
		dst = s.appendBitmap(dst[:at])
	}
	return insertSectionHead(dst, at, best)
}

// insertSectionHead inserts coding and length before the payload, which begins at offset at.
func insertSectionHead(dst []byte, at int, c coding) []byte {
	var head [1 + binary.MaxVarintLen64]byte
	head[0] = byte(c)
	n := 1 + binary.PutUvarint(head[1:], uint64(len(dst)-at))
	return slices.Insert(dst, at, head[:n]...)
}

// section reads a set of x positions in [0, m) as a list. The caller has bounded its memory.
func (r *reader) section(field string, m, x uint64) (list []uint64) {
	c, body, payload := r.payload(field)
	if r.err != nil {
		return nil
	}
	err := plausible(c, uint64(len(payload)), m, x)
	if err == nil {
		list = make([]uint64, 0, x)
		err = decodePositions(c, payload, m, x, func(positions []uint64) { list = append(list, positions...) })
	}
	if err != nil {
		r.fail(field, body, err)
		return nil
	}
	return list
}

// payload reads a section's coding and its payload, which begins at offset body.
func (r *reader) payload(field string) (c coding, body int, payload []byte) {
	at := r.off
	c = coding(r.u8(field + " coding"))
	if r.err == nil && !c.known() {
		r.corrupt(field+" coding", at, "%d", uint8(c))
	}
	r.annotate("%v", c)
	lengthAt := r.off
	n := r.uvarint(field + " length")
	if r.err == nil && n > uint64(len(r.b)-r.off) {
		r.corrupt(field+" length", lengthAt, "%d bytes of %d", n, len(r.b)-r.off)
	}
	if r.err != nil {
		return 0, 0, nil
	}
	body = r.off
	payload = r.take(field, int(n))
	r.annotate("")
	return c, body, payload
}

// decodePositions passes the positions of a plausible payload to take, in order and some at a
// time.
func decodePositions(c coding, payload []byte, m, x uint64, take func([]uint64)) error {
	switch c {
	case codingBitmap:
		return decodeBitmap(payload, m, x, take)
	case codingGaps:
		return decodeGaps(payload, m, x, take)
	}
	if err := arith.DecodeSet(c.method(), payload, m, x, take); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// plausible refuses a payload of n bytes that cannot be x positions in [0, m), before memory is
// allocated for them. The entropy coder takes more than a bit for each member of the rarer
// kind.
func plausible(c coding, n, m, x uint64) error {
	ok := true
	switch c {
	case codingBitmap:
		ok = n == (m+7)/8
	case codingGaps:
		ok = n >= x
	default:
		ok = min(x, m-x) <= 8*(n+8)
	}
	if !ok {
		return fmt.Errorf("%w: %d bytes cannot be %d positions below %d as %v", ErrCorrupt, n, x, m, c)
	}
	return nil
}
