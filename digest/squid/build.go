package squid

import (
	"errors"
	"fmt"
)

// ErrFull is returned for a mask that has more ones than a reader would take.
var ErrFull = errors.New("squid: more entries than the digest has room for")

// full is the share of ones beyond which no digest is made, in percent: less than
// what a Squid takes, since what a receiver's bug repeats of a mask (see
// [Builder.Mirror]) must be taken too.
const full = 60

// A Builder makes a digest. It belongs to one goroutine.
type Builder struct {
	header Header
	mask   []byte
}

// NewBuilder returns a Builder of a digest for capacity entries of bitsPerEntry
// bits, at least 1 and at most [MaxBitsPerEntry]. Both are bounded such that no
// header can be made of which a Squid dies.
func NewBuilder(capacity, bitsPerEntry int) (*Builder, error) {
	switch {
	case capacity < 1:
		return nil, fmt.Errorf("squid: a digest for %d entries", capacity)
	case bitsPerEntry < 1 || bitsPerEntry > MaxBitsPerEntry:
		return nil, fmt.Errorf("squid: %d bits per entry, want 1 to %d", bitsPerEntry, MaxBitsPerEntry)
	case int64(capacity) > maxMaskBits/int64(bitsPerEntry):
		return nil, fmt.Errorf("squid: %d entries of %d bits are 2^31 bits or more", capacity, bitsPerEntry)
	}
	n := maskBytes(capacity, bitsPerEntry)
	return &Builder{
		header: Header{Version: version, Required: oldest, Capacity: capacity, MaskBytes: n, BitsPerEntry: bitsPerEntry},
		mask:   make([]byte, n),
	}, nil
}

// Add adds an entry.
func (b *Builder) Add(k Key) {
	m := uint32(len(b.mask)) * 8
	for i := range Hashes {
		at := k.word(i) % m
		b.mask[at/8] |= 1 << (at % 8)
	}
	if b.header.Count < 1<<31-1 {
		b.header.Count++
	}
}

// The bytes of the first buffer of a receiver that has Squid bug 5510.
const (
	misplaced = 128        // it stores bytes of the mask this far behind their place,
	buffer    = 4096       // for as many as the first buffer holds, header included
	mirrored  = 4096 - 128 // and so none beyond this
)

// Mirror makes the mask survive Squid bug 5510, which releases up to 7.6 have: a
// receiver writes the beginning of the mask twice, the second time 128 bytes too
// far behind, as much of it as its first read of the body happened to bring, 4096
// bytes at most. There byte j holds what was sent as byte j-128. Setting every bit
// of byte j in byte j-128 as well makes the damaged mask say yes for every entry
// wherever the damage ends, and a sound receiver sees only more ones. They cost
// false positives: the first 4 KB are filled twice, so give them at least 16 bits
// an entry. Call it last. The result depends on nothing but the entries.
func (b *Builder) Mirror() {
	for j := misplaced; j < min(mirrored, len(b.mask)); j++ { // upwards, so that byte j is still without the bits of byte j+128
		b.mask[j-misplaced] |= b.mask[j]
	}
}

// Digest returns the digest, or [ErrFull]. The Builder must not be used any more.
func (b *Builder) Digest() (*Digest, error) {
	d, err := newDigest(b.header, b.mask)
	if err != nil || d.fuller(full) {
		return nil, fmt.Errorf("%w: %d entries, capacity %d", ErrFull, b.header.Count, b.header.Capacity)
	}
	return d, nil
}
