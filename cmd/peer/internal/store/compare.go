package store

import (
	"io"

	"github.com/cespare/xxhash/v2"
)

// A Comparison tells whether another source gives the bytes that a [Writer] has
// received so far, and so may go on behind them.
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

// Sums are the checksums of a body's first blocks, or of all. Where the disk can't
// give the bytes any more, they tell whether another source gives the same.
type Sums struct {
	sums []uint64
	body int64 // bytes of the body, as far as known
}

// Sums returns those of the whole body, none if it is in memory.
func (v *View) Sums() Sums {
	if v.f == nil {
		return Sums{}
	}
	return Sums{v.f.sums, v.Size()}
}

// Sums returns those of what has arrived. Where Read found the body corrupt, they
// reach past everything that it returned before: only whole blocks are read back.
func (f *Follower) Sums() Sums {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return Sums{f.w.sums[:len(f.w.sums):len(f.w.sums)], f.w.n}
}

// Len returns for how many blocks there are sums.
func (s Sums) Len() int { return len(s.sums) }

// Check returns a reader of src, which is to give the same body from its beginning.
// Nothing of a block is returned before it was found the same; else the error is
// [ErrDiffers]. What comes behind the known blocks is returned as it is.
func (s Sums) Check(src io.Reader) *Checked { return &Checked{src: src, sums: s} }

// A Checked reads a body that was received before from another source.
type Checked struct {
	src  io.Reader
	sums Sums
	next int    // the next block
	buf  []byte // of a block
	rest []byte // of buf, to be returned
}

// Read implements io.Reader.
func (c *Checked) Read(p []byte) (int, error) {
	if len(c.rest) == 0 && c.next < len(c.sums.sums) {
		n := min(blockSize, c.sums.body-int64(c.next)*blockSize)
		if c.buf == nil {
			c.buf = make([]byte, n)
		}
		b := c.buf[:n]
		switch _, err := io.ReadFull(c.src, b); {
		case err == io.EOF || err == io.ErrUnexpectedEOF, err == nil && xxhash.Sum64(b) != c.sums.sums[c.next]:
			return 0, ErrDiffers
		case err != nil:
			return 0, err
		}
		c.rest = b
		c.next++
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
