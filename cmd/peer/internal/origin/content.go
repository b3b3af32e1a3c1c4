package origin

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// NewContent returns the body of a request target, of size bytes. It is generated while it is read.
func NewContent(target string, size int64) *io.SectionReader {
	return io.NewSectionReader(content(xxhash.Sum64String(target)), 0, size)
}

// content is an endless body, given by its seed.
type content uint64

// word returns the i-th 8 bytes of a body, little-endian: a counter mixed by the finalizer of
// SplitMix64, so that any part can be generated alone.
func (c content) word(i int64) uint64 {
	z := uint64(c) + uint64(i)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ReadAt implements [io.ReaderAt].
func (c content) ReadAt(p []byte, at int64) (int, error) {
	n := len(p)
	var word [8]byte
	if skip := at % 8; skip != 0 {
		binary.LittleEndian.PutUint64(word[:], c.word(at/8))
		done := copy(p, word[skip:])
		p, at = p[done:], at+int64(done)
	}
	i := at / 8
	for ; len(p) >= 8; p, i = p[8:], i+1 {
		binary.LittleEndian.PutUint64(p, c.word(i))
	}
	if len(p) > 0 {
		binary.LittleEndian.PutUint64(word[:], c.word(i))
		copy(p, word[:])
	}
	return n, nil
}

// Check reads body to its end and returns how it differs from the body of target, of size bytes; nil =
// it does not. buf is used for reading.
func Check(body io.Reader, target string, size int64, buf []byte) error {
	want := content(xxhash.Sum64String(target))
	mine := buf[:len(buf)/2]
	theirs := buf[len(buf)/2:]
	for at := int64(0); ; {
		n, err := body.Read(theirs[:len(mine)])
		if at+int64(n) > size {
			return fmt.Errorf("body of %s goes on after its %d bytes", target, size)
		}
		want.ReadAt(mine[:n], at)
		if string(mine[:n]) != string(theirs[:n]) {
			return fmt.Errorf("body of %s is wrong between bytes %d and %d", target, at, at+int64(n))
		}
		at += int64(n)
		switch {
		case err == io.EOF && at < size:
			return fmt.Errorf("body of %s ends after %d of %d bytes", target, at, size)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("body of %s breaks off after %d of %d bytes: %w", target, at, size, err)
		}
	}
}
