package store

import (
	"context"

	"github.com/cespare/xxhash/v2"
)

// A Restart takes a body from its first byte for a [Writer] that has received a
// part of it from another source: it compares that part and passes on the rest.
type Restart struct {
	w   *Writer
	to  int64          // bytes to compare
	off int64          // bytes compared
	sum *xxhash.Digest // of the block that off stands in
}

// Restart returns one. Nothing else may write to w from then on, but for another
// Restart. A source that can begin at byte [Writer.Len] needs none.
func (w *Writer) Restart() *Restart { return &Restart{w: w, to: w.n, sum: xxhash.New()} }

// Left returns how many bytes are still to be compared. A source that ends
// before is not the same body.
func (r *Restart) Left() int64 { return r.to - r.off }

// Write takes the next bytes of the body. It returns [ErrDiffers] if they are not
// those that were received, at the latest with the last byte that is compared, so
// that nothing is passed on behind bytes that differ; else it is [Writer.Write].
func (r *Restart) Write(ctx context.Context, p []byte) error {
	w := r.w
	for len(p) > 0 && r.off < r.to {
		k := min(int64(len(p)), blockSize-r.off%blockSize, r.to-r.off)
		r.sum.Write(p[:k])
		p = p[k:]
		r.off += k
		switch {
		case r.off%blockSize == 0:
			if r.sum.Sum64() != w.sums[r.off/blockSize-1] {
				return ErrDiffers
			}
			r.sum.Reset()
		case r.off == r.to:
			if r.sum.Sum64() != w.sum.Sum64() {
				return ErrDiffers
			}
		}
	}
	return w.Write(ctx, p)
}
