package store

import (
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"
)

// blocks reads a body from its file, block by block, and returns no byte of a block
// before its checksum was found right. It checks at every read, not only at the first:
// the system drops pages of a file from memory when it likes, and what comes back
// from the disk need not be what was there. See trust for what is not read at all.
type blocks struct {
	store *Store // lends the buffers
	f     io.ReaderAt
	body  int64
	sums  []uint64
	buf   *[blockSize]byte // nil = given back
	have  int64            // the block in it; -1 = none
	trust *trust           // notes blocks that are right; nil = nothing does
}

// at returns the body from off on, to the end of the block that off stands in.
// It is good until the next call of a method. An error wraps errBroken.
func (b *blocks) at(off int64) ([]byte, error) {
	i := off / blockSize
	n := min(blockSize, b.body-i*blockSize)
	if b.buf == nil {
		b.buf = b.store.buffers.Get().(*[blockSize]byte)
		b.have = -1
	}
	if b.have != i {
		b.have = -1
		if k, err := b.f.ReadAt(b.buf[:n], i*blockSize); int64(k) < n {
			return nil, fmt.Errorf("%w: block %d: %w", errBroken, i, err)
		}
		if xxhash.Sum64(b.buf[:n]) != b.sums[i] {
			return nil, fmt.Errorf("%w: checksum of block %d", errBroken, i)
		}
		b.have = i
		if b.trust != nil {
			b.trust.note(i, b.buf[:n])
		}
	}
	return b.buf[off-i*blockSize : n], nil
}

// park gives the buffer back; the next at reads and checks its block again.
func (b *blocks) park() {
	if b.buf != nil {
		b.store.buffers.Put(b.buf)
		b.buf = nil
	}
}

// A memory is the part of a body in memory that is still to be read.
type memory struct{ b []byte }

// Bytes returns all of it.
func (m *memory) Bytes() []byte { return m.b }

func (m *memory) Read(p []byte) (int, error) {
	if len(m.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.b)
	m.b = m.b[n:]
	return n, nil
}

// WriteTo implements io.WriterTo.
func (m *memory) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.b)
	m.b = m.b[n:]
	return int64(n), err
}

// A span is the part of a body on disk that is still to be read.
type span struct {
	obj    *Object
	blocks blocks
	off    int64
	end    int64
}

// Next returns the bytes that come next, as many as one block has. They are good
// until the next call of a method, and checked. At the end of the span it returns
// io.EOF. Any other error wraps [ErrCorrupt]: the object was dropped.
func (s *span) Next() ([]byte, error) {
	if s.off >= s.end {
		return nil, io.EOF
	}
	var b []byte
	if t := s.blocks.trust; t != nil {
		b = t.held(s.off)
	}
	if b == nil {
		var err error
		if b, err = s.blocks.at(s.off); err != nil {
			return nil, s.blocks.store.spoiled(s.obj, err)
		}
	}
	return b[:min(int64(len(b)), s.end-s.off)], nil
}

// trusted returns how many bytes of those that come next, up to offset end, may be
// sent unread.
func (s *span) trusted(end int64) int64 {
	if s.blocks.trust == nil || s.off >= end {
		return 0
	}
	return s.blocks.trust.run(s.off, end)
}

// Span returns a part of a file that may be sent as the bytes that come next: n
// bytes from offset off on. 0 = ask for the bytes by Next.
func (s *span) Span() (f *os.File, off, n int64) {
	if s.blocks.buf != nil && s.blocks.have == s.off/blockSize {
		return nil, 0, 0 // it was just read
	}
	if n = s.trusted(s.end); n == 0 {
		return nil, 0, 0
	}
	return s.blocks.trust.file.Descriptor(), s.off, n
}

// Distrust says that the kernel could not send what Span returned: Next reads it.
func (s *span) Distrust() { s.blocks.trust.forget() }

// Advance skips n bytes.
func (s *span) Advance(n int) { s.off += int64(n) }

// Park gives the buffer back until Next is called again.
func (s *span) Park() { s.blocks.park() }

// Read implements io.Reader.
func (s *span) Read(p []byte) (int, error) {
	b, err := s.Next()
	if err != nil {
		s.Park()
		return 0, err
	}
	n := copy(p, b)
	s.Advance(n)
	return n, nil
}

// WriteTo implements io.WriterTo.
func (s *span) WriteTo(w io.Writer) (done int64, err error) {
	defer s.Park()
	for { // each round ends it or takes at least a byte of the span
		b, err := s.Next()
		if err == io.EOF {
			return done, nil
		} else if err != nil {
			return done, err
		}
		n, err := w.Write(b)
		s.Advance(n)
		done += int64(n)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return done, err
		}
	}
}

// spoiled removes an object whose bytes are not those that were stored, or a newer description
// of the same body. It returns cause as an error that wraps ErrCorrupt.
func (s *Store) spoiled(o *Object, cause error) error {
	cause = fmt.Errorf("%w: %w", ErrCorrupt, cause)
	same := func(cur *Object) bool { return cur == o || !o.is(objSmall) && !cur.is(objSmall) && cur.file == o.file }
	if s.removeIf(o.key, same) {
		s.corrupt.Add(1)
		s.limited.Warn("disk", "an object is corrupt; removed it", "key", o.key, "error", cause)
	}
	return cause
}
