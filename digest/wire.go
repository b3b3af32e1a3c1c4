package digest

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// The fixed parts of a message: FORMAT.md, section 4.
const (
	magic         = "SCD"
	formatVersion = 1
	checksumBytes = 8
)

// A reader takes a message apart. Its first error stays, and everything after it
// reads as zero.
type reader struct {
	b   []byte
	off int
	err error
}

func (r *reader) fail(field string, at int, err error) {
	if r.err == nil {
		r.err = &FormatError{Field: field, Offset: at, Err: err}
	}
}

func (r *reader) corrupt(field string, at int, format string, args ...any) {
	r.fail(field, at, fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...)))
}

// take returns the next n bytes.
func (r *reader) take(field string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.b)-r.off {
		r.corrupt(field, r.off, "message ends")
		return nil
	}
	b := r.b[r.off : r.off+n]
	r.off += n
	return b
}

func (r *reader) u8(field string) uint8 {
	if b := r.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u32(field string) uint32 {
	if b := r.take(field, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64(field string) uint64 {
	if b := r.take(field, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint(field string) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := minimalUvarint(r.b[r.off:])
	if n <= 0 {
		r.corrupt(field, r.off, "no minimal integer")
		return 0
	}
	r.off += n
	return v
}

// bounded is uvarint for a value that must lie in [low, high].
func (r *reader) bounded(field string, low, high uint64) uint64 {
	at := r.off
	v := r.uvarint(field)
	if r.err == nil && (v < low || v > high) {
		r.corrupt(field, at, "%d is not in [%d, %d]", v, low, high)
		return 0
	}
	return v
}

// minimalUvarint is binary.Uvarint without its second spellings. It returns a
// length of zero or less for a truncated, overlong or too large integer.
func minimalUvarint(b []byte) (uint64, int) {
	v, n := binary.Uvarint(b)
	if n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// open checks what is the same in every message and returns a reader of what lies
// between, positioned at the kind.
func open(b []byte) reader {
	r := reader{b: b}
	if m := r.take("magic", len(magic)); r.err == nil && string(m) != magic {
		r.corrupt("magic", 0, "%q", m)
	}
	at := r.off
	if v := r.u8("format version"); r.err == nil && v != formatVersion {
		r.fail("format version", at, fmt.Errorf("%w: %d", ErrVersion, v))
	}
	return r
}

// verify checks the checksum and hides it from the reader.
func (r *reader) verify() {
	if r.err != nil {
		return
	}
	end := len(r.b) - checksumBytes
	if end < r.off {
		r.corrupt("checksum", len(r.b), "message ends")
		return
	}
	if got, want := xxhash.Sum64(r.b[:end]), binary.LittleEndian.Uint64(r.b[end:]); got != want {
		r.corrupt("checksum", end, "message has %016x, not %016x", got, want)
		return
	}
	r.b = r.b[:end]
}

// finish refuses bytes that belong to nothing.
func (r *reader) finish() error {
	if r.err == nil && r.off != len(r.b) {
		r.corrupt("end", r.off, "%d bytes too many", len(r.b)-r.off)
	}
	return r.err
}

// seal appends the checksum of the message that begins at start.
func seal(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}
