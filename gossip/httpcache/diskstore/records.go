package diskstore

import (
	"math/bits"
	"sync"
)

// recordPool has memory for records that are being written, read or sent, so that a hit leaves less for the garbage
// collector. A piece has a power of two bytes, and so less than twice what is asked for, however long its user keeps
// it.
type recordPool [18]sync.Pool // *[]byte; those of 128 KiB are the last

// get returns n bytes.
func (p *recordPool) get(n int64) *[]byte {
	class := bits.Len64(uint64(n - 1))
	if class >= len(p) {
		b := make([]byte, n)
		return &b
	}
	b, _ := p[class].Get().(*[]byte)
	if b == nil {
		b = new([]byte)
		*b = make([]byte, 1<<class)
	}
	*b = (*b)[:n]
	return b
}

// put takes back what get returned.
func (p *recordPool) put(b *[]byte) {
	if class := bits.Len64(uint64(cap(*b) - 1)); class < len(p) {
		p[class].Put(b)
	}
}
