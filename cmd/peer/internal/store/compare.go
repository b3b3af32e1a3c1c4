package store

import (
	"github.com/cespare/xxhash/v2"
)

// Received has the checksums of a body's first bytes, which nobody need keep. The zero value
// has those of none. It isn't safe for concurrent use.
type Received struct {
	sums []uint64 // of the whole blocks
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

// Compare returns a comparison with what was added so far.
func (r *Received) Compare() *Comparison {
	return &Comparison{sums: r.sums[:len(r.sums):len(r.sums)], last: r.sum.Sum64(), to: r.n, sum: xxhash.New()}
}

// A Comparison tells whether another source gives the bytes that were received so far, by a
// [Writer] or [Received], and so may go on behind them.
type Comparison struct {
	sums []uint64 // of the whole blocks
	last uint64   // of the rest of them
	to   int64    // bytes to compare
	off  int64    // bytes compared
	sum  *xxhash.Digest
}

// Compare returns one. It must not be called during a Write; what is written
// later doesn't matter to it.
func (w *Writer) Compare() *Comparison {
	return &Comparison{sums: w.sums[:len(w.sums):len(w.sums)], last: w.sum.Sum64(), to: w.n, sum: xxhash.New()}
}

// Begin begins with the first byte of a source. A comparison with another source may have
// gone any way before.
func (c *Comparison) Begin() {
	c.off = 0
	c.sum.Reset()
}

// Left returns how many bytes are still to be compared. A source that ends
// before is not the same body.
func (c *Comparison) Left() int64 { return c.to - c.off }

// Take compares the next bytes of the other source's body and returns what of them
// lies behind those that were received. The error is [ErrDiffers] if they are not
// the same, at the latest with the last byte that is compared.
func (c *Comparison) Take(p []byte) (rest []byte, err error) {
	for len(p) > 0 && c.off < c.to {
		k := min(int64(len(p)), blockSize-c.off%blockSize, c.to-c.off)
		c.sum.Write(p[:k])
		p = p[k:]
		c.off += k
		want := c.last
		switch {
		case c.off%blockSize == 0:
			want = c.sums[c.off/blockSize-1]
		case c.off < c.to:
			continue
		}
		if c.sum.Sum64() != want {
			return nil, ErrDiffers
		}
		c.sum.Reset()
	}
	return p, nil
}
