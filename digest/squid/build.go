package squid

import (
	"errors"
	"fmt"
)

// ErrFull means that a mask has more ones than a reader would accept.
var ErrFull = errors.New("squid: more entries than the digest has room for")

// full is the largest share of ones, in percent, of a digest that is made. It is less than a
// Squid accepts, since a Squid's bug may add ones to the mask (see [Builder.Mirror]).
const full = 60

// A Builder makes a digest. It belongs to one goroutine.
type Builder struct {
	header header
	mask   []byte
}

// NewBuilder returns a Builder of a digest for capacity entries of bitsPerEntry
// bits, at least 1 and at most 127. Both are bounded so that no header
// crashes a Squid.
func NewBuilder(capacity, bitsPerEntry int) (*Builder, error) {
	switch {
	case capacity < 1:
		return nil, fmt.Errorf("squid: a digest for %d entries", capacity)
	case bitsPerEntry < 1 || bitsPerEntry > maxBitsPerEntry:
		return nil, fmt.Errorf("squid: %d bits per entry, want 1 to %d", bitsPerEntry, maxBitsPerEntry)
	case int64(capacity) > maxMaskBits/int64(bitsPerEntry):
		return nil, fmt.Errorf("squid: %d entries of %d bits are 2^31 bits or more", capacity, bitsPerEntry)
	}
	n := maskBytes(capacity, bitsPerEntry)
	return &Builder{
		header: header{Version: version, Required: oldest, Capacity: capacity, MaskBytes: n, BitsPerEntry: bitsPerEntry},
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

// Offsets in the first buffer of a receiver that has Squid bug 5510, in bytes.
const (
	misplaced = 128        // it stores bytes of the mask so far after their place,
	buffer    = 4096       // for as many as its first buffer has, header included,
	mirrored  = 4096 - 128 // and so none from here on
)

// Mirror makes the mask survive Squid bug 5510, in releases up to 7.6. A receiver with that bug
// writes the beginning of the mask twice, the second time 128 bytes too far. It repeats as much
// as its first read of the body returned, 4096 bytes at most. There, byte j has what was sent
// as byte j-128. Mirror sets every bit of byte j in byte j-128 as well. So the damaged mask has
// all entries wherever the damage ends, and an undamaged one has more ones. These cost false
// positives in the first 4 KB, which are filled twice: use at least 16 bits an entry. Call
// Mirror last. The result depends on the entries only.
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
