package arith

// Method says how a set is coded. Its values are wire values: they never
// change their meaning.
type Method uint8

const (
	// Adaptive is arithmetic coding, one decision at a time: within three bytes of
	// the limit at any size.
	Adaptive Method = 0

	// Block codes a whole block of bits, or a whole gap, in one step. It is many times as fast, and within 0.05 % of
	// the limit from about 32 KiB on.
	Block Method = 1
)

// String returns the method's name in lower case.
func (m Method) String() string {
	switch m {
	case Adaptive:
		return "adaptive"
	case Block:
		return "block"
	}
	return "unknown"
}

// MaxUniverse is the largest m of a set.
const MaxUniverse = 1 << 44

// Choose returns the method by which to code a set of x of m positions: [Block] if the code
// takes about 1 KiB or more, otherwise [Adaptive]. From this size on, Block is two to fifteen
// times as fast and costs about three bytes more. The choice depends only on m and x, so equal
// sets give equal bytes.
func Choose(m, x uint64) Method {
	if x <= m && codeBits(m, min(x, m-x)) >= 1<<13 {
		return Block
	}
	return Adaptive
}

// AppendSet appends the code of the set of positions in [0, m) to dst and
// returns the extended slice. The positions must be strictly increasing and below m,
// and m must be at most [MaxUniverse]: anything else panics, as does an unknown method.
// An empty set and a full one take no bytes.
func AppendSet(dst []byte, method Method, m uint64, positions []uint64) []byte {
	checkPositions(m, positions)
	return appendCode(dst, method, &source{positions: positions, m: m}, uint64(len(positions)))
}

// AppendBitmap is [AppendSet] for the set as an array of bits: position i is in
// it if words[i/64]>>(i%64)&1 is one. It panics unless words holds exactly m
// bits, rounded up to whole words, of which those from m on are zero.
func AppendBitmap(dst []byte, method Method, m uint64, words []uint64) []byte {
	checkWords(m, words)
	checkBeyond(m, words)
	return appendCode(dst, method, &source{words: words, m: m}, popcount(words))
}

// appendCode appends the code of a set of x positions.
func appendCode(dst []byte, method Method, s *source, x uint64) []byte {
	switch method {
	case Adaptive:
		return appendAdaptive(dst, s, x)
	case Block:
		return appendBlocks(dst, s, x)
	}
	panic("arith: unknown method")
}

// DecodeSet passes the x positions in [0, m) that src codes to take, strictly increasing
// and some hundreds at a time. take must not keep the slice. src must be exactly what
// [AppendSet] appends for these positions under the same method. Otherwise the error wraps
// [ErrTruncated] or [ErrCorrupt], and what take was given is invalid. The memory that is
// needed does not depend on x. A caller that keeps the positions must compare m and x with
// its limits first. DecodeSet panics on an unknown method.
func DecodeSet(method Method, src []byte, m, x uint64, take func(positions []uint64)) error {
	if err := checkCounts(src, m, x); err != nil {
		return err
	}
	// Most sets are those of deltas, of a few positions.
	t := taker{take: take, found: make([]uint64, 0, min(x, takenAtOnce)), left: x}
	var err error
	switch method {
	case Adaptive:
		err = decodeAdaptiveSet(&t, src, m, x)
	case Block:
		err = decodeBlocks(&t, src, m, x)
	default:
		panic("arith: unknown method")
	}
	t.flush()
	return err
}

// DecodeBitmap is [DecodeSet] into an array of bits, all of which it overwrites. It panics
// unless words holds exactly m bits, rounded up to whole words. After an error the
// contents of words are undefined.
func DecodeBitmap(words []uint64, method Method, src []byte, m, x uint64) error {
	checkWords(m, words)
	if err := checkCounts(src, m, x); err != nil {
		return err
	}
	if p := planBlocks(m, x); method == Block && p.y > 0 && !p.gaps {
		return p.bitmap(words, src)
	}
	clear(words)
	return DecodeSet(method, src, m, x, func(positions []uint64) {
		for _, at := range positions {
			words[at/64] |= 1 << (at % 64)
		}
	})
}

func checkPositions(m uint64, positions []uint64) {
	if m > MaxUniverse {
		panic("arith: universe above MaxUniverse")
	}
	for i, p := range positions {
		if p >= m || i > 0 && p <= positions[i-1] {
			panic("arith: positions must increase strictly and stay below m")
		}
	}
}

func checkWords(m uint64, words []uint64) {
	if m > MaxUniverse || uint64(len(words)) != wordsFor(m) {
		panic("arith: words do not hold m bits")
	}
}

func checkBeyond(m uint64, words []uint64) {
	if m%64 != 0 && words[len(words)-1]>>(m%64) != 0 {
		panic("arith: bits beyond m")
	}
}

func wordsFor(m uint64) uint64 { return (m + 63) / 64 }

// checkCounts refuses impossible counts before anything of their size is allocated. A
// member of the rarer kind costs more than a bit in every form, so the length of src
// bounds how many there are.
func checkCounts(src []byte, m, x uint64) error {
	if m > MaxUniverse || x > m {
		return ErrCorrupt
	}
	if min(x, m-x) > 8*(uint64(len(src))+8) {
		return ErrTruncated
	}
	return nil
}
