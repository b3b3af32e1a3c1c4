package arith

import "encoding/binary"

// AppendPair appends the code of two sets, of positions in [0, m) and in [0, n): what a change of a
// set consists of. If [Choose] gives [Adaptive] for both, they are one code, which ends once: two sets of
// one position take a byte less than two codes, and no length. Otherwise the first one's length comes
// first, a uvarint, and then each set's code by the method of its own. Positions are as for [AppendSet].
func AppendPair(dst []byte, m uint64, a []uint64, n uint64, b []uint64) []byte {
	checkPositions(m, a)
	checkPositions(n, b)
	x, y := uint64(len(a)), uint64(len(b))
	if methodA, methodB := Choose(m, x), Choose(n, y); methodA == Block || methodB == Block {
		first := AppendSet(nil, methodA, m, a)
		dst = append(binary.AppendUvarint(dst, uint64(len(first))), first...)
		return AppendSet(dst, methodB, n, b)
	}
	var e encoder
	e.reset(dst)
	encodeAdaptive(&e, &source{positions: a, m: m}, x)
	encodeAdaptive(&e, &source{positions: b, m: n}, y)
	return e.finish()
}

// DecodePair returns the two sets, of x positions in [0, m) and y in [0, n), that src codes. src must be
// exactly what [AppendPair] appends for them. Otherwise the error wraps [ErrTruncated] or [ErrCorrupt].
// It takes eight bytes of memory a position: a caller compares x and y with its limits first.
func DecodePair(src []byte, m, x, n, y uint64) (a, b []uint64, err error) {
	methodA, methodB := Choose(m, x), Choose(n, y)
	if methodA == Block || methodB == Block {
		length, size := binary.Uvarint(src)
		if size <= 0 || size > 1 && src[size-1] == 0 {
			return nil, nil, ErrCorrupt
		}
		if length > uint64(len(src)-size) {
			return nil, nil, ErrTruncated
		}
		first, second := src[size:][:length], src[size:][length:]
		if err = DecodeSet(methodA, first, m, x, listInto(&a)); err == nil {
			err = DecodeSet(methodB, second, n, y, listInto(&b))
		}
		return a, b, err
	}
	var d decoder
	d.reset(src)
	if err = d.list(&a, m, x); err == nil {
		err = d.list(&b, n, y)
	}
	if err == nil {
		err = d.finish()
	}
	return a, b, err
}

// list reads one of several sets of a code.
func (d *decoder) list(to *[]uint64, m, x uint64) error {
	if err := checkCounts(d.src, m, x); err != nil {
		return err
	}
	t := taker{take: listInto(to), found: make([]uint64, 0, min(x, takenAtOnce)), left: x}
	err := decodeAdaptive(d, &t, m, x)
	t.flush()
	return err
}

func listInto(to *[]uint64) func([]uint64) {
	return func(positions []uint64) { *to = append(*to, positions...) }
}
