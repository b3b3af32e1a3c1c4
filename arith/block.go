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
// Numbers are unsigned varints of the fewest bytes.

// part is what the directory says of a chunk.
type part struct {
	count  uint64 // members
	length int    // bytes
	at     int    // where they begin
}

// onStack is how many chunks are managed without allocating.
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
	left := p.y
	for i := range parts[:len(parts)-1] {
		parts[i].count = s.count(p.chunk(i))
		left -= parts[i].count
	}
	parts[len(parts)-1].count = left
	var e chunkEncoder
	e.init(&p)
	start := len(dst)
	dst = e.reserve(dst, parts)
	for i := range parts {
		e.encodePart(dst, s, i, parts)
	}
	return assemble(dst, start, parts)
}

// reserve lengthens dst by what the directory and every chunk may take, and
// notes where each chunk has its place.
func (e *chunkEncoder) reserve(dst []byte, parts []part) []byte {
	at := len(dst) + 2*binary.MaxVarintLen64*(len(parts)-1)
	for i := range parts {
		from, to := e.plan.chunk(i)
		parts[i].at = at
		parts[i].length = 0
		if parts[i].count > 0 {
			parts[i].length = e.bound(from, to, parts[i].count)
		}
		at += parts[i].length
	}
	return slices.Grow(dst, at-len(dst))[:at]
}

// encodePart codes chunk i into its place.
func (e *chunkEncoder) encodePart(dst []byte, s *source, i int, parts []part) {
	p := &parts[i]
	if p.count == 0 {
		return
	}
	from, to := e.plan.chunk(i)
	end := p.at + p.length
	p.length = len(e.encode(dst[p.at:end:end], s, from, to))
	p.at = end - p.length
}

// assemble writes the directory and moves the chunks' codes up to it.
func assemble(dst []byte, start int, parts []part) []byte {
	out := dst[:start]
	for _, p := range parts[:len(parts)-1] {
		out = binary.AppendUvarint(out, uint64(p.length))
	}
	for _, p := range parts[:len(parts)-1] {
		out = binary.AppendUvarint(out, p.count)
	}
	for _, p := range parts {
		out = append(out, dst[p.at:p.at+p.length]...)
	}
	return out
}

// directory reads what precedes the chunks of src. parts is as long as there
// are chunks.
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
