package arith

import (
	"encoding/binary"
	"slices"
)

// The code of a set is a directory and the chunks, in order:
//
//	for each chunk but the last, the length of its code in bytes;
//	for each chunk but the last, how many members it has;
//	the code of each chunk. One without members has no bytes.
//
// Numbers are unsigned varints, in as few bytes as possible.

// part is the directory's entry of a chunk.
type part struct {
	count  uint64 // members
	length int    // bytes
	at     int    // offset of the code; for decoders only
}

// onStack is how many chunks can be handled without an allocation.
const onStack = 64

// appendBlocks appends the code of s, which has x positions.
func appendBlocks(dst []byte, s *source, x uint64) []byte {
	p := planBlocks(s.m, x)
	if p.y == 0 {
		return dst
	}
	s.flip = p.flip
	var local [onStack]part
	parts := append(local[:0], make([]part, p.chunks)...)
	last := len(parts) - 1
	parts[last].count = p.y
	for i := range parts[:last] {
		parts[i].count = s.count(p.chunk(i))
		parts[last].count -= parts[i].count
	}
	var e chunkEncoder
	e.init(&p)
	// The codes are written after as much room as the directory may need, and then moved up to
	// its end.
	start := len(dst)
	room := start + 2*binary.MaxVarintLen64*last
	dst = slices.Grow(dst, room-start)[:room]
	for i := range parts {
		dst = e.appendChunk(dst, s, i, &parts[i])
	}
	out := dst[:start]
	for _, p := range parts[:last] {
		out = binary.AppendUvarint(out, uint64(p.length))
	}
	for _, p := range parts[:last] {
		out = binary.AppendUvarint(out, p.count)
	}
	return append(out, dst[room:]...)
}

// appendChunk appends the code of chunk i.
func (e *chunkEncoder) appendChunk(dst []byte, s *source, i int, p *part) []byte {
	if p.count == 0 {
		return dst
	}
	from, to := e.plan.chunk(i)
	n := e.bound(from, to, p.count)
	dst = slices.Grow(dst, n)
	code := e.encode(dst[len(dst):][:n:n], s, from, to) // at the end of this slice
	p.length = len(code)
	return append(dst, code...)
}

// directory reads the directory of src into parts, which has an element for each chunk.
func directory(src []byte, p *blockPlan, parts []part) error {
	at := 0
	number := func() (uint64, error) {
		v, n := binary.Uvarint(src[at:])
		switch {
		case n == 0:
			return 0, ErrTruncated
		case n < 0 || n > 1 && src[at+n-1] == 0:
			return 0, ErrCorrupt
		}
		at += n
		return v, nil
	}
	last := len(parts) - 1
	for i := range parts[:last] {
		length, err := number()
		if err != nil {
			return err
		}
		if length > uint64(len(src)) {
			return ErrTruncated
		}
		parts[i].length = int(length)
	}
	left := p.y
	for i := range parts[:last] {
		count, err := number()
		if err != nil {
			return err
		}
		from, to := p.chunk(i)
		if count > left || count > to-from {
			return ErrCorrupt
		}
		parts[i].count = count
		left -= count
	}
	if from, to := p.chunk(last); left > to-from {
		return ErrCorrupt
	}
	parts[last].count = left
	for i := range parts[:last] {
		if parts[i].length > len(src)-at {
			return ErrTruncated
		}
		parts[i].at = at
		at += parts[i].length
	}
	parts[last].at = at
	parts[last].length = len(src) - at
	return nil
}
