// Package wire reads the messages of PROTOCOL.md field by field, and survives any bytes.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrMalformed: a message that PROTOCOL.md does not allow.
var ErrMalformed = errors.New("malformed message")

// FormatError names the wrong field of a message, and its position.
type FormatError struct {
	Message string // "advert", "hello", …
	Field   string // the name in PROTOCOL.md
	Offset  int    // byte within the message
	Err     error  // ErrMalformed, or a sentinel of the package that reads
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("gossip: %s: %s at byte %d: %v", e.Message, e.Field, e.Offset, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// A Reader reads the fields of a message in order. After the first wrong field it returns zero values,
// and Err names that field.
type Reader struct {
	Message string // its name
	B       []byte // all of it
	Off     int    // of the next field
	Err     error
}

// Fail records that the field just read, or the next one, is wrong.
func (r *Reader) Fail(field string) { r.FailAt(r.Off, field, ErrMalformed) }

// FailAt records that the field at an offset is wrong, and why.
func (r *Reader) FailAt(offset int, field string, why error) {
	if r.Err == nil {
		r.Err = &FormatError{r.Message, field, offset, why}
	}
}

// Take reads n bytes without copying them; nil if there are fewer.
func (r *Reader) Take(field string, n uint64) []byte {
	if r.Err != nil || uint64(len(r.B)-r.Off) < n {
		r.Fail(field)
		return nil
	}
	b := r.B[r.Off : r.Off+int(n)]
	r.Off += int(n)
	return b
}

// number reads n bytes, little-endian.
func (r *Reader) number(field string, n uint64) (v uint64) {
	for i, b := range r.Take(field, n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// Byte reads a byte.
func (r *Reader) Byte(field string) byte { return byte(r.number(field, 1)) }

// Uint24 reads three bytes.
func (r *Reader) Uint24(field string) uint32 { return uint32(r.number(field, 3)) }

// Uint32 reads four bytes.
func (r *Reader) Uint32(field string) uint32 { return uint32(r.number(field, 4)) }

// Uint64 reads eight bytes.
func (r *Reader) Uint64(field string) uint64 { return r.number(field, 8) }

// NonZero reads eight bytes that are not all zero.
func (r *Reader) NonZero(field string) uint64 {
	v := r.Uint64(field)
	if v == 0 {
		r.Fail(field)
	}
	return v
}

// Uvarint reads a minimal uvarint.
func (r *Reader) Uvarint(field string) uint64 {
	if r.Err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.B[r.Off:])
	if n <= 0 || n > 1 && r.B[r.Off+n-1] == 0 {
		r.Fail(field)
		return 0
	}
	r.Off += n
	return v
}

// Count reads the number of elements that follow, each at least so many bytes long; 0 after an error.
func (r *Reader) Count(field string, each int) int {
	at := r.Off
	n := r.Uvarint(field)
	if n > uint64(len(r.B)-r.Off)/uint64(each) {
		r.FailAt(at, field, ErrMalformed)
	}
	if r.Err != nil {
		return 0
	}
	return int(n)
}

// String8 reads a length byte and a string.
func (r *Reader) String8(field string) string {
	return string(r.Take(field, uint64(r.Byte(field))))
}

// Rest reads all remaining bytes.
func (r *Reader) Rest() []byte { return r.Take("rest", uint64(len(r.B)-r.Off)) }

// End checks that nothing is left and returns the first error.
func (r *Reader) End() error {
	if r.Err == nil && r.Off != len(r.B) {
		r.Fail("trailing bytes")
	}
	return r.Err
}

// AppendString8 appends a length byte and s.
func AppendString8(dst []byte, s string) []byte {
	return append(append(dst, byte(len(s))), s...)
}

// Extension returns the value of the first extension of a kind behind the fields that were read; "" if there is none.
// What is no extension there, as a later program may send it, ends them.
func (r *Reader) Extension(kind byte) string {
	for b := r.B[r.Off:]; r.Err == nil && len(b) >= 2 && len(b) >= 2+int(b[1]); b = b[2+int(b[1]):] {
		if b[0] == kind {
			return string(b[2 : 2+int(b[1])])
		}
	}
	return ""
}

// AppendExtension appends an extension, unless it is empty.
func AppendExtension(dst []byte, kind byte, value string) []byte {
	if value == "" {
		return dst
	}
	return AppendString8(append(dst, kind), value)
}

// Unexpected returns io.ErrUnexpectedEOF for the end of a stream within a message.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
