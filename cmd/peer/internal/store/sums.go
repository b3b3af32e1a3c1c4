package store

import (
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Sums are the checksums of a body's first blocks, or of all. Where the bytes themselves are
// not at hand any more, they tell whether another source gives the same.
type Sums struct {
	sums []uint64
	body int64 // bytes of the body, as far as known
}

// SumsOf decodes what [Sums.Append] wrote for a whole body of so many bytes. It isn't
// ok if the number of sums is another.
func SumsOf(b []byte, body int64) (s Sums, ok bool) {
	if body < 0 || len(b)%8 != 0 || int64(len(b)/8) != blockCount(body) {
		return s, false
	}
	return Sums{decodeUint64s(b), body}, true
}

// Append appends the sums to b, 8 bytes each, little-endian.
func (s Sums) Append(b []byte) []byte { return appendUint64s(b, s.sums) }

// Sums returns the checksums of the whole body, if the object was opened with its body.
func (v *View) Sums() Sums {
	switch {
	case v.f != nil:
		return Sums{v.f.sums, v.Size()}
	case v.hot.hasBody && v.Size() > 0:
		return Sums{[]uint64{v.hot.sum}, v.Size()}
	}
	return Sums{}
}

// Sums returns the checksums of what has arrived. If Read found the body corrupt, they
// cover everything that it returned before: only whole blocks are read back.
func (f *Follower) Sums() Sums {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return Sums{slices.Clip(f.w.got.sums), f.w.got.n}
}

// Received keeps the checksums of a body's first bytes, for callers that don't keep the bytes.
// The zero value is ready for use. It isn't safe for concurrent use.
type Received struct {
	sums []uint64 // of the whole blocks; only appended to
	sum  xxhash.Digest
	n    int64
}

// Add notes the bytes that come next.
func (r *Received) Add(p []byte) {
	for len(p) > 0 {
		at := r.n % blockSize
		if at == 0 {
			r.sum.Reset()
		}
		k := min(int64(len(p)), blockSize-at)
		r.sum.Write(p[:k])
		if r.n += k; r.n%blockSize == 0 {
			r.sums = append(r.sums, r.sum.Sum64())
		}
		p = p[k:]
	}
}

// seal ends the last block, after which nothing may be added.
func (r *Received) seal() {
	if r.n%blockSize != 0 {
		r.sums = append(r.sums, r.sum.Sum64())
	}
}

// Sums returns the checksums of what was added so far.
func (r *Received) Sums() Sums {
	sealed := Received{slices.Clip(r.sums), r.sum, r.n}
	sealed.seal()
	return Sums{sealed.sums, r.n}
}

// Len returns for how many blocks there are sums.
func (s Sums) Len() int { return len(s.sums) }

// Check returns a reader of src, which should give the same body from one offset to
// another. Nothing of a block is returned before the block was found to be the same. If it is
// not, the error is [ErrDiffers], and also io.ErrUnexpectedEOF if src ended within the block.
// Bytes outside of the known blocks, or of a block that is not asked for as a whole, are
// returned unchecked.
func (s Sums) Check(src io.Reader, from, to int64) *Checked {
	first, end := blockCount(from), int64(len(s.sums))
	if to < s.body {
		end = min(end, to/blockSize)
	}
	return &Checked{src: src, sums: s, next: int(first), end: int(end), before: min(first*blockSize, s.body) - from}
}

var errEndsEarly = fmt.Errorf("%w: %w", ErrDiffers, io.ErrUnexpectedEOF)

// A Checked reads from another source a body that was received before. See [Sums.Check].
type Checked struct {
	src    io.Reader
	sums   Sums
	before int64  // bytes to be returned as they are
	next   int    // the next block
	end    int    // the first that isn't checked any more
	buf    []byte // of a block
	rest   []byte // of buf, to be returned
}

// Read implements io.Reader.
func (c *Checked) Read(p []byte) (int, error) {
	if c.before > 0 {
		n, err := c.src.Read(p[:min(int64(len(p)), c.before)])
		c.before -= int64(n)
		return n, err
	}
	if len(c.rest) == 0 && c.next < c.end {
		n := min(blockSize, c.sums.body-int64(c.next)*blockSize)
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
		case err == nil && xxhash.Sum64(b) != c.sums.sums[c.next]:
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

// Ready reports whether Read would certainly return without waiting.
func (c *Checked) Ready() bool { return len(c.rest) > 0 }
