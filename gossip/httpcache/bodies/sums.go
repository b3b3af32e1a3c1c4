package bodies

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// BlockSize is the number of bytes of a body under one checksum.
const BlockSize = 64 << 10

// BlockCount returns the number of blocks of a body of n bytes.
func BlockCount(n int64) int64 { return (n + BlockSize - 1) / BlockSize }

// Sums are the checksums of all blocks of a body, or of its first ones. With them the bytes of
// another source can be checked when the first ones are no longer available.
type Sums struct {
	Blocks []uint64 // xxhash64 of each block of [BlockSize] bytes; the last may be shorter
	Size   int64    // bytes that they cover
}

// SumsOf decodes the result of [Sums.Append] for a complete body of this length. It isn't
// ok if the number of sums is wrong.
func SumsOf(b []byte, body int64) (s Sums, ok bool) {
	if body < 0 || len(b)%8 != 0 || int64(len(b)/8) != BlockCount(body) {
		return s, false
	}
	if len(b) > 0 {
		s.Blocks = make([]uint64, len(b)/8)
	}
	for i := range s.Blocks {
		s.Blocks[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	s.Size = body
	return s, true
}

// Append appends the sums to b, 8 bytes each, little-endian.
func (s Sums) Append(b []byte) []byte {
	for _, sum := range s.Blocks {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	return b
}

// Received computes the checksums of a body as it arrives, for callers that don't keep its bytes.
// The zero value is ready for use. It isn't safe for concurrent use.
type Received struct {
	sums []uint64 // of the whole blocks; only appended to
	sum  xxhash.Digest
	n    int64
}

// Add adds the next bytes.
func (r *Received) Add(p []byte) {
	for len(p) > 0 {
		at := r.n % BlockSize
		if at == 0 {
			r.sum.Reset()
		}
		k := min(int64(len(p)), BlockSize-at)
		r.sum.Write(p[:k])
		if r.n += k; r.n%BlockSize == 0 {
			r.sums = append(r.sums, r.sum.Sum64())
		}
		p = p[k:]
	}
}

// seal ends the last block, unless that is done. Nothing may be added after it.
func (r *Received) seal() {
	if int64(len(r.sums)) < BlockCount(r.n) {
		r.sums = append(r.sums, r.sum.Sum64())
	}
}

// Sums returns the checksums of the bytes added so far.
func (r *Received) Sums() Sums {
	sealed := Received{slices.Clip(r.sums), r.sum, r.n}
	sealed.seal()
	return Sums{sealed.sums, r.n}
}

// Len returns the number of blocks.
func (s Sums) Len() int { return len(s.Blocks) }

// Check returns a reader that checks src, another source of the same body from one offset to
// another. It returns no byte of a block before the whole block was checked. If the block differs,
// the error is [ErrDiffers], which also wraps io.ErrUnexpectedEOF if src ended within the block.
// Bytes outside of the known blocks, or of blocks that src has only in part, are
// returned unchecked.
func (s Sums) Check(src io.Reader, from, to int64) *Checked {
	first, end := BlockCount(from), int64(len(s.Blocks))
	if to < s.Size {
		end = min(end, to/BlockSize)
	}
	return &Checked{src: src, sums: s, next: int(first), end: int(end), before: min(first*BlockSize, s.Size) - from}
}

var errEndsEarly = fmt.Errorf("%w: %w", ErrDiffers, io.ErrUnexpectedEOF)

// A Checked reads and checks another source of a body. See [Sums.Check].
type Checked struct {
	src    io.Reader
	sums   Sums
	before int64  // bytes to return unchecked before the next block
	next   int    // the next block
	end    int    // the first block that is not checked
	buf    []byte // for one block
	rest   []byte // the part of buf that was not returned yet
}

// Read implements io.Reader.
func (c *Checked) Read(p []byte) (int, error) {
	if c.before > 0 {
		n, err := c.src.Read(p[:min(int64(len(p)), c.before)])
		c.before -= int64(n)
		return n, err
	}
	if len(c.rest) == 0 && c.next < c.end {
		n := min(BlockSize, c.sums.Size-int64(c.next)*BlockSize)
		direct := int64(len(p)) >= n
		if !direct && c.buf == nil {
			c.buf = make([]byte, n)
		}
		b := c.buf
		if direct {
			b = p
		}
		b = b[:n]
		switch _, err := io.ReadFull(c.src, b); {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return 0, errEndsEarly
		case err == nil && xxhash.Sum64(b) != c.sums.Blocks[c.next]:
			return 0, ErrDiffers
		case err != nil:
			return 0, err
		}
		c.next++
		if direct {
			return len(b), nil
		}
		c.rest = b
	}
	if len(c.rest) == 0 {
		return c.src.Read(p)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Ready reports whether Read returns without waiting; false = unknown.
func (c *Checked) Ready() bool { return len(c.rest) > 0 }

// A Memory reads a body, or a part of one, that is in memory. A connection may send Bytes at once.
type Memory struct{ Rest []byte }

// Bytes returns the rest.
func (m *Memory) Bytes() []byte { return m.Rest }

// Read implements io.Reader.
func (m *Memory) Read(p []byte) (int, error) {
	if len(m.Rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.Rest)
	m.Rest = m.Rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo.
func (m *Memory) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.Rest)
	m.Rest = m.Rest[n:]
	return int64(n), err
}
