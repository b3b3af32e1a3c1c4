package diskstore

import (
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// blocks reads a body from its file, block by block, and returns no byte of a block before its checksum was verified.
// It verifies at every read, not only at the first: the system may drop pages of a file from memory at any time, and
// what is then read again from the disk may differ. See trust for blocks that the kernel sends.
type blocks struct {
	store *store // has the buffers
	f     io.ReaderAt
	body  int64
	sums  []uint64
	buf   *[blockSize]byte // nil = given back
	have  int64            // the block in buf; -1 = none
	trust *trust           // to note verified blocks in
}

// at returns the body from off on, to the end of off's block. The result is valid until the next call of a method. An
// error wraps errBroken, unless the disk hangs.
func (b *blocks) at(off int64) ([]byte, error) {
	i := off / blockSize
	n := min(blockSize, b.body-i*blockSize)
	if b.buf == nil {
		b.buf = b.store.buffers.Get().(*[blockSize]byte)
		b.have = -1
	}
	if b.have != i {
		b.have = -1
		if err := b.store.reads.begin(); err != nil {
			return nil, err
		}
		changed := b.trust.before()
		k, err := b.f.ReadAt(b.buf[:n], i*blockSize)
		b.store.reads.end()
		if int64(k) < n {
			return nil, fmt.Errorf("%w: block %d: %w", errBroken, i, err)
		}
		if xxhash.Sum64(b.buf[:n]) != b.sums[i] {
			return nil, fmt.Errorf("%w: checksum of block %d", errBroken, i)
		}
		b.have = i
		b.trust.note(i, changed)
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

// A span reads a body on disk, or a part of one. Its methods are those of conn.Spans.
type span struct {
	obj    *object
	blocks blocks
	off    int64 // of the next byte
	end    int64
}

// Next returns the next bytes, up to the end of a block, checked. They are valid until the next call of a method. At
// the end of the span it returns io.EOF. Any other error wraps [bodies.ErrCorrupt], and the object was removed.
func (s *span) Next() ([]byte, error) {
	if s.off >= s.end {
		return nil, io.EOF
	}
	b, err := s.blocks.at(s.off)
	if err != nil {
		return nil, s.blocks.store.dropCorrupt(s.obj, err)
	}
	return b[:min(int64(len(b)), s.end-s.off)], nil
}

// trusted returns how many of the next bytes, up to offset end, the kernel may send.
func (s *span) trusted(end int64) int64 {
	if s.off >= end {
		return 0
	}
	return s.blocks.trust.sendable(s.off, end)
}

// Span returns the part of a file that has the next bytes, if the kernel may send them: n bytes from offset off on.
// If n is 0, the caller uses Next.
func (s *span) Span() (f *os.File, off, n int64) {
	if s.blocks.buf != nil && s.blocks.have == s.off/blockSize {
		return nil, 0, 0 // the block is in the buffer
	}
	if n = s.trusted(s.end); n == 0 {
		return nil, 0, 0
	}
	return s.blocks.trust.file.Descriptor(), s.off, n
}

// Distrust is called if the kernel could not send what Span returned. Next then reads it.
func (s *span) Distrust() { s.blocks.trust.forget() }

// Advance skips n bytes.
func (s *span) Advance(n int) { s.off += int64(n) }

// Park gives the buffer back; Next takes one again.
func (s *span) Park() { s.blocks.park() }

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

func (s *span) WriteTo(w io.Writer) (done int64, err error) {
	defer s.Park()
	for { // each round returns or writes at least one byte
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

// dropCorrupt removes a corrupt object, or the object with a newer description of the same body, unless it is ourFault.
// It returns cause as an error that wraps ErrCorrupt.
func (s *store) dropCorrupt(o *object, cause error) error {
	mine := ourFault(cause)
	cause = fmt.Errorf("%w: %w", bodies.ErrCorrupt, cause)
	same := func(cur *object) bool { return cur == o || o.file != nil && cur.file == o.file }
	if !mine && s.removeIf(o.key, same) {
		s.corrupt.Add(1)
		s.log.Warn("an object is corrupt; removed it", "key", o.key, "error", cause)
	}
	return cause
}
