package arith

import "math"

// DecodeSetTo is [DecodeSet] for a caller that has another place for the positions
// than a slice of all of them. It hands them to take in order, some at a time: with
// [Block] those of a chunk, of about 64 to 128 KiB of code where the code is longer than
// that. take must not keep the slice. What it has been given is worth nothing if
// there is an error in the end.
func DecodeSetTo(method Method, src []byte, m, x uint64, take func(positions []uint64)) error {
	if err := checkCounts(src, m, x); err != nil {
		return err
	}
	switch method {
	case Adaptive:
		return decodeAdaptiveTo(src, m, x, take)
	case Block:
		return decodeBlocksTo(src, m, x, take)
	}
	panic("arith: unknown method")
}

// A taker hands positions on, many at a time.
type taker struct {
	found []uint64
	take  func([]uint64)
}

const takenAtOnce = 512

// newTaker returns one for x positions. Most sets are those of deltas, of a few.
func newTaker(x uint64, take func([]uint64)) taker {
	return taker{found: make([]uint64, 0, min(x, takenAtOnce)), take: take}
}

func (t *taker) add(p uint64) {
	if len(t.found) == takenAtOnce {
		t.flush()
	}
	t.found = append(t.found, p)
}

func (t *taker) flush() {
	if len(t.found) > 0 {
		t.take(t.found)
		t.found = t.found[:0]
	}
}

func decodeBlocksTo(src []byte, m, x uint64, take func([]uint64)) error {
	p := planBlocks(m, x)
	if p.chunks == 0 {
		if err := none(src); err != nil {
			return err
		}
		t := newTaker(x, take)
		for at := range x { // all positions, or none
			t.add(at)
		}
		t.flush()
		return nil
	}
	parts := make([]part, p.chunks)
	if err := directory(src, &p, parts); err != nil {
		return err
	}
	var d chunkDecoder
	d.init(&p)
	var buffer []uint64
	for i := range parts {
		n := p.present(i, parts[i].count)
		if n > math.MaxInt/8 {
			return ErrCorrupt // no slice is so long
		}
		if uint64(cap(buffer)) < n {
			buffer = make([]uint64, n)
		}
		parts[i].before = 0
		t := blockTarget{positions: buffer[:n]}
		if err := t.decode(&d, src, parts, i); err != nil {
			return err
		}
		if n > 0 {
			take(buffer[:n])
		}
	}
	return nil
}
