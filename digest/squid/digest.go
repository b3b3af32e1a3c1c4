package squid

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/bits"

	"github.com/summarycache/summarycache/digest"
)

// A Digest is what one cache advertises. It is immutable.
type Digest struct {
	header header
	mask   []byte // bit i is bit i%8 of byte i/8, the least significant bit first
	ones   int
}

// maxFill is the share of ones beyond which a Squid refuses a mask, in percent.
const maxFill = 65

// Read reads a digest from r to its end. length is the announced number of bytes, or -1. The
// mask is allocated only if header and length agree. An error of r is returned as it is; every
// other is a [digest.FormatError] that wraps [digest.ErrVersion], [digest.ErrTooLarge] or
// [digest.ErrCorrupt].
func Read(r io.Reader, length int64, lim Limits) (*Digest, error) {
	var block [headerSize]byte
	if err := fill(r, block[:], "header", 0); err != nil {
		return nil, err
	}
	h, err := decodeHeader(block[:], lim)
	if err != nil {
		return nil, err
	}
	if want := int64(headerSize + h.MaskBytes); length >= 0 && length != want {
		return nil, bad("mask size", 16, digest.ErrCorrupt, "%d bytes were announced, %d belong to the header", length, want)
	}
	mask := make([]byte, h.MaskBytes)
	if err := fill(r, mask, "mask", headerSize); err != nil {
		return nil, err
	}
	switch n, err := io.ReadFull(r, block[:1]); {
	case n > 0:
		return nil, bad("mask", headerSize+h.MaskBytes, digest.ErrCorrupt, "more bytes follow it")
	case err != io.EOF:
		return nil, err
	}
	return newDigest(h, mask)
}

// fill reads a field, which begins at an offset of the message.
func fill(r io.Reader, b []byte, field string, offset int) error {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad(field, offset+n, digest.ErrCorrupt, "%d of %d bytes", n, len(b))
	}
	return err
}

// newDigest takes over mask.
func newDigest(h header, mask []byte) (*Digest, error) {
	d := &Digest{header: h, mask: mask}
	for _, b := range mask {
		d.ones += bits.OnesCount8(b)
	}
	if d.fuller(maxFill) {
		return nil, bad("mask", headerSize, digest.ErrCorrupt, "%.1f %% of its bits are set, more than %d", 100*d.Fill(), maxFill)
	}
	return d, nil
}

// fuller reports whether more than a share of the bits is set, in percent.
func (d *Digest) fuller(percent int64) bool {
	return int64(d.ones)*100 > int64(len(d.mask))*8*percent
}

// MayContain reports whether the cache may hold the object of that key.
func (d *Digest) MayContain(k Key) bool {
	m := uint32(len(d.mask)) * 8
	for i := range Hashes {
		at := k.word(i) % m
		if d.mask[at/8]&(1<<(at%8)) == 0 {
			return false
		}
	}
	return true
}

// Fill is the share of ones, 0 to 0.65.
func (d *Digest) Fill() float64 { return float64(d.ones) / (8 * float64(len(d.mask))) }

// FalsePositiveRate is the share of absent objects that the digest claims.
func (d *Digest) FalsePositiveRate() float64 { return math.Pow(d.Fill(), Hashes) }

// Entries estimates from the mask how many objects it contains. The header's count can be
// wrong: a Squid does not reset it for a new mask.
func (d *Digest) Entries() int {
	m := 8 * float64(len(d.mask))
	return int(math.Round(-m / Hashes * math.Log1p(-d.Fill())))
}

// MemoryBytes is the memory of the digest.
func (d *Digest) MemoryBytes() int { return len(d.mask) + headerSize }

// WriteTo writes the encoding to w. For a digest that was read, these are the same bytes.
func (d *Digest) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, io.MultiReader(bytes.NewReader(d.header.appendTo(nil)), bytes.NewReader(d.mask)))
}

// Size is the length of the encoding in bytes.
func (d *Digest) Size() int { return headerSize + len(d.mask) }
