package arith

// Workers is a number of goroutines among which the methods share the work on
// one set that is coded by [Block]: its chunks are coded apart. They return
// what the functions of the same names return. A number below two, a set
// that is coded by [Adaptive], and one whose code is less than about 128 KiB
// are handled by the caller's goroutine alone. No goroutine outlives the call.
type Workers int

// AppendSet is [AppendSet] by several workers.
func (n Workers) AppendSet(dst []byte, method Method, m uint64, positions []uint64) []byte {
	checkPositions(m, positions)
	x := uint64(len(positions))
	switch method {
	case Adaptive:
		return appendAdaptiveSet(dst, m, positions)
	case Block:
		return appendBlocks(dst, blockSource{positions: positions, m: m}, x, nil, int(n))
	}
	panic("arith: unknown method")
}

// AppendBitmap is [AppendBitmap] by several workers.
func (n Workers) AppendBitmap(dst []byte, method Method, m uint64, words []uint64) []byte {
	checkWords(m, words)
	checkBeyond(m, words)
	switch method {
	case Adaptive:
		return appendAdaptiveBitmap(dst, m, words)
	case Block:
		if n > 1 && len(words) >= 1<<14 {
			return n.appendWords(dst, m, words)
		}
		var t tally
		x := t.count(words)
		return appendBlocks(dst, blockSource{words: words, m: m}, x, &t, int(n))
	}
	panic("arith: unknown method")
}

// appendWords is AppendBitmap where the workers count the ones, too.
func (n Workers) appendWords(dst []byte, m uint64, words []uint64) []byte {
	t := new(tally)
	x := t.countParallel(words, int(n))
	return appendBlocks(dst, blockSource{words: words, m: m}, x, t, int(n))
}

// DecodeSet is [DecodeSet] by several workers.
func (n Workers) DecodeSet(dst []uint64, method Method, src []byte, m, x uint64) ([]uint64, error) {
	if err := checkCounts(src, m, x); err != nil {
		return dst, err
	}
	switch method {
	case Adaptive:
		return decodeAdaptiveSet(dst, src, m, x)
	case Block:
		return decodeBlockSet(dst, src, m, x, int(n))
	}
	panic("arith: unknown method")
}

// DecodeBitmap is [DecodeBitmap] by several workers.
func (n Workers) DecodeBitmap(words []uint64, method Method, src []byte, m, x uint64) error {
	checkWords(m, words)
	if err := checkCounts(src, m, x); err != nil {
		return err
	}
	switch method {
	case Adaptive:
		return decodeAdaptiveBitmap(words, src, m, x)
	case Block:
		return decodeBlockBitmap(words, src, m, x, int(n))
	}
	panic("arith: unknown method")
}
