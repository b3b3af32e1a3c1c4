package exchange

import "encoding/binary"

// A reader takes fields off the front of a message. The first field that is
// wrong sticks: everything read after it is zero, and err names it.
type reader struct {
	message string
	b       []byte
	off     int
	err     error
}

func (r *reader) fail(field string) {
	if r.err == nil {
		r.err = &FormatError{Message: r.message, Field: field, Offset: r.off, Err: ErrMalformed}
	}
}

func (r *reader) take(field string, n int) []byte {
	if r.err != nil || len(r.b)-r.off < n {
		r.fail(field)
		return nil
	}
	b := r.b[r.off : r.off+n]
	r.off += n
	return b
}

func (r *reader) byte(field string) byte {
	if b := r.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint32(field string) uint32 {
	if b := r.take(field, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64(field string) uint64 {
	if b := r.take(field, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uvarint reads a minimal uvarint.
func (r *reader) uvarint(field string) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.off:])
	if n <= 0 || n > 1 && r.b[r.off+n-1] == 0 {
		r.fail(field)
		return 0
	}
	r.off += n
	return v
}

func (r *reader) string8(field string) string {
	n := r.byte(field)
	return string(r.take(field, int(n)))
}

// rest returns what has not been read.
func (r *reader) rest() []byte {
	if r.err != nil {
		return nil
	}
	b := r.b[r.off:]
	r.off = len(r.b)
	return b
}

// end checks that nothing is left and returns the first error.
func (r *reader) end() error {
	if r.err == nil && r.off != len(r.b) {
		r.fail("trailing bytes")
	}
	return r.err
}

func appendString8(dst []byte, s string) []byte {
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}
