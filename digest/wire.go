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
	checksumBytes = 4
)

// A reader reads the fields of a message. It keeps its first error, and all later fields are
// zero.
type reader struct {
	b   []byte
	off int
	err error

	seen *[]field // if not nil, every field that is read is appended: see Dump
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
	at := r.off
	r.off += n
	r.saw(field, at, "")
	return r.b[at:r.off]
}

func (r *reader) u8(field string) uint8   { return uint8(r.fixed(field, 1, "%d")) }
func (r *reader) u32(field string) uint32 { return uint32(r.fixed(field, 4, "%#08x")) }
func (r *reader) u64(field string) uint64 { return r.fixed(field, 8, "%#016x") }

// fixed reads an integer of n bytes, which [Dump] prints in that format.
func (r *reader) fixed(field string, n int, format string) uint64 {
	var whole [8]byte
	if copy(whole[:], r.take(field, n)) == 0 {
		return 0
	}
	v := binary.LittleEndian.Uint64(whole[:])
	r.annotate(format, v)
	return v
}

func (r *reader) uvarint(field string) uint64 {
	if r.err != nil {
		return 0
	}
	at := r.off
	v, n := minimalUvarint(r.b[at:])
	if n <= 0 {
		r.corrupt(field, at, "not a minimal integer")
		return 0
	}
	r.off += n
	r.saw(field, at, v)
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

// minimalUvarint is binary.Uvarint, except that it refuses encodings that are longer than
// necessary. It returns a length of zero or less for a truncated, overlong or too large
// integer.
func minimalUvarint(b []byte) (uint64, int) {
	v, n := binary.Uvarint(b)
	if n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// start begins to decode a message of any kind. It checks what all kinds have in common, and
// leaves the reader at the kind.
func start(b []byte, lim Limits) reader {
	r := reader{b: b}
	if len(b) > lim.Bytes {
		r.err = r.tooLong(lim)
		return r
	}
	r.open()
	r.verify()
	return r
}

func (r *reader) tooLong(lim Limits) error {
	return &FormatError{Field: "message", Err: fmt.Errorf("%w: %d bytes, %d allowed", ErrTooLarge, len(r.b), lim.Bytes)}
}

// open reads magic and format version.
func (r *reader) open() {
	m := r.take("magic", len(magic))
	if r.err == nil && string(m) != magic {
		r.corrupt("magic", 0, "%q", m)
	}
	r.annotate("%s", m)
	at := r.off
	if v := r.u8("format version"); r.err == nil && v != formatVersion {
		r.fail("format version", at, fmt.Errorf("%w: %d", ErrVersion, v))
	}
}

// verify checks the checksum and removes it from the reader.
func (r *reader) verify() {
	if r.err != nil {
		return
	}
	end := len(r.b) - checksumBytes
	if end < r.off {
		r.corrupt("checksum", len(r.b), "message ends")
		return
	}
	if got, want := checksum(r.b[:end]), binary.LittleEndian.Uint32(r.b[end:]); got != want {
		r.corrupt("checksum", end, "message has %08x, not %08x", got, want)
		return
	}
	r.b = r.b[:end]
}

// finish refuses bytes that are left over.
func (r *reader) finish() error {
	if r.err == nil && r.off != len(r.b) {
		r.corrupt("end", r.off, "%d bytes too many", len(r.b)-r.off)
	}
	return r.err
}

// seal appends the checksum of the message that begins at start.
func seal(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[start:]))
}

func checksum(b []byte) uint32 { return uint32(xxhash.Sum64(b)) }
