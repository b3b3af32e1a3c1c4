package store

import (
	"errors"
	"io"
	"os"
)

// Source returns n bytes of the body from offset off on, for a connection that
// knows how to move them (see package conn): a body in memory has a method
// Bytes, one on disk a method Span. It is nil for a body whose checksums must be
// verified while it is read; WriteRange does that. It is valid until the view is
// closed.
func (v *View) Source(off, n int64) io.Reader {
	switch {
	case off < 0 || n < 0 || off+n > v.Size() || v.sums != nil:
		return nil
	case v.inMem:
		return &memory{v.data[off : off+n]}
	case v.f != nil:
		return &span{v.f.File, off, n}
	}
	return nil
}

// A memory is the part of a body in memory that is still to be read.
type memory struct{ b []byte }

func (m *memory) Bytes() []byte { return m.b }

func (m *memory) Read(p []byte) (int, error) {
	if len(m.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.b)
	m.b = m.b[n:]
	return n, nil
}

// A span is the part of a body on disk that is still to be read.
type span struct {
	f      *os.File
	off, n int64
}

func (s *span) Span() (f *os.File, off, n int64) { return s.f, s.off, s.n }

func (s *span) Read(p []byte) (int, error) {
	if s.n == 0 {
		return 0, io.EOF
	}
	k, err := s.f.ReadAt(p[:min(int64(len(p)), s.n)], s.off)
	s.off += int64(k)
	s.n -= int64(k)
	if k > 0 && errors.Is(err, io.EOF) {
		err = nil // the caller asks again if it wants more
	}
	return k, err
}
