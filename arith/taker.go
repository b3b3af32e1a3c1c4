package arith

import "math/bits"

// A taker passes decoded positions on, many at a time. It drops what a damaged code has
// beyond the announced number: the decoder then returns an error anyway.
type taker struct {
	take  func([]uint64)
	found []uint64 // not passed on yet
	left  uint64   // positions that may still come
	next  uint64   // where the next run begins
}

const takenAtOnce = 512

func (t *taker) add(p uint64) {
	if t.left == 0 {
		return
	}
	t.left--
	t.found = append(t.found, p)
	if len(t.found) >= takenAtOnce {
		t.flush()
	}
}

func (t *taker) flush() {
	if len(t.found) > 0 {
		t.take(t.found)
		t.found = t.found[:0]
	}
}

// run adds the positions from next on that are below end.
func (t *taker) run(end uint64) {
	for ; t.next < end && t.left > 0; t.next++ {
		t.add(t.next)
	}
}

// skip adds the positions from next on that are below p. The next run begins after p.
func (t *taker) skip(p uint64) {
	t.run(p)
	t.next = p + 1
}

// words adds the positions of the ones in words, which begin at from.
func (t *taker) words(words []uint64, from uint64) {
	for i, w := range words {
		t.word(w, from+64*uint64(i))
	}
}

func (t *taker) word(w, from uint64) {
	for ; w != 0; w &= w - 1 {
		t.add(from + uint64(bits.TrailingZeros64(w)))
	}
}

// all adds positions, at most takenAtOnce.
func (t *taker) all(positions []uint64) {
	positions = positions[:min(uint64(len(positions)), t.left)]
	t.left -= uint64(len(positions))
	if len(t.found)+len(positions) > takenAtOnce {
		t.flush()
	}
	t.found = append(t.found, positions...)
}
