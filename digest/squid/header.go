package squid

import (
	"encoding/binary"
	"fmt"

	"github.com/summarycache/summarycache/digest"
)

const (
	// Path is where a Squid publishes its digest, and fetches those of others.
	Path = "/squid-internal-periodic/store_digest"
	// ContentType is the media type of a digest.
	ContentType = "application/cache-digest"
	// headerSize is how many bytes precede the mask.
	headerSize = 128
	// maxBitsPerEntry is the largest number that does not crash a Squid, which stores it in a
	// signed byte.
	maxBitsPerEntry = 127
	// Hashes is k.
	Hashes = 4

	version     = 5 // what we write
	oldest      = 3 // the oldest version whose readers can read what we write
	maxMaskBits = 1<<31 - 1
)

// A header is the control block before the mask. Its numbers are the sender's; only those that
// determine the mask are checked.
type header struct {
	Version      int // of the format; at least 3
	Required     int // the least version that a reader must know; at most 5
	Capacity     int // entries that the mask was made for; at least 1
	Count        int // entries that were added; a Squid's is often wrong: see [Digest.Entries]
	Deleted      int // entries that left since; a Squid sends 0
	MaskBytes    int // length of the mask; follows from Capacity and BitsPerEntry
	BitsPerEntry int // m/n, from 1 to 127

	reserved [headerSize - 22]byte // as they came, so that they go out again
}

// Limits bound a digest, before memory is allocated for it. The zero value is the default.
type Limits struct {
	MaskBytes int // longest mask: 64 MiB if zero, enough for 100 million entries of 5 bits
}

func (l Limits) maskBytes() int {
	if l.MaskBytes <= 0 {
		return 64 << 20
	}
	return l.MaskBytes
}

// maskBytes is the length of a mask. The bits are below 2^31.
func maskBytes(capacity, bitsPerEntry int) int {
	return int((int64(capacity)*int64(bitsPerEntry) + 7) / 8)
}

// decodeHeader reads the control block, b, and checks it.
func decodeHeader(b []byte, lim Limits) (header, error) {
	word := func(at int) int { return int(int32(binary.BigEndian.Uint32(b[at:]))) }
	h := header{
		Version: int(binary.BigEndian.Uint16(b)), Required: int(binary.BigEndian.Uint16(b[2:])),
		Capacity: word(4), Count: word(8), Deleted: word(12), MaskBytes: word(16), BitsPerEntry: int(b[20]),
		reserved: [headerSize - 22]byte(b[22:headerSize]),
	}
	bits := int64(h.Capacity) * int64(h.BitsPerEntry)
	switch {
	case h.Version < oldest:
		return h, bad("version", 0, digest.ErrVersion, "%d is before %d", h.Version, oldest)
	case h.Required > version:
		return h, bad("required version", 2, digest.ErrVersion, "%d is after %d", h.Required, version)
	case h.Required > h.Version:
		return h, bad("required version", 2, digest.ErrCorrupt, "%d is after the version itself, %d", h.Required, h.Version)
	case h.Capacity <= 0:
		return h, bad("capacity", 4, digest.ErrCorrupt, "%d", h.Capacity)
	case h.MaskBytes <= 0:
		return h, bad("mask size", 16, digest.ErrCorrupt, "%d", h.MaskBytes)
	case h.BitsPerEntry == 0 || h.BitsPerEntry > maxBitsPerEntry:
		return h, bad("bits per entry", 20, digest.ErrCorrupt, "%d is not between 1 and %d", h.BitsPerEntry, maxBitsPerEntry)
	case b[21] != Hashes:
		return h, bad("hash functions", 21, digest.ErrCorrupt, "%d, want %d", b[21], Hashes)
	case bits > maxMaskBits:
		return h, bad("capacity", 4, digest.ErrCorrupt, "%d entries of %d bits are 2^31 bits or more", h.Capacity, h.BitsPerEntry)
	case h.MaskBytes != maskBytes(h.Capacity, h.BitsPerEntry):
		return h, bad("mask size", 16, digest.ErrCorrupt, "%d bytes for %d entries of %d bits", h.MaskBytes, h.Capacity, h.BitsPerEntry)
	case h.MaskBytes > lim.maskBytes():
		return h, bad("mask size", 16, digest.ErrTooLarge, "%d of %d bytes", h.MaskBytes, lim.maskBytes())
	}
	return h, nil
}

// appendTo appends the control block, 128 bytes.
func (h *header) appendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Version))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Required))
	for _, word := range []int{h.Capacity, h.Count, h.Deleted, h.MaskBytes} {
		dst = binary.BigEndian.AppendUint32(dst, uint32(int32(word)))
	}
	dst = append(dst, byte(h.BitsPerEntry), Hashes)
	return append(dst, h.reserved[:]...)
}

func bad(field string, offset int, sentinel error, format string, args ...any) error {
	return &digest.FormatError{Field: field, Offset: offset,
		Err: fmt.Errorf("%w: "+format, append([]any{sentinel}, args...)...)}
}
