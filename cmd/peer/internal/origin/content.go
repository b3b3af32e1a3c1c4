package origin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Content is the body of an object, made up as it is read. It implements
// [io.ReadSeeker] and is for one goroutine at a time.
type Content struct {
	seed uint64
	size int64
	at   int64
}

// NewContent returns the body of size bytes that belongs to a request target.
func NewContent(target string, size int64) *Content {
	return &Content{seed: xxhash.Sum64String(target), size: size}
}

// word is the i-th 8 bytes of a body, little-endian: a counter mixed by the
// finalizer of SplitMix64, so that any place can be had without those before.
func (c *Content) word(i int64) uint64 {
	z := c.seed + uint64(i)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill writes the body's bytes from offset at on into p, which lies inside it.
func (c *Content) fill(p []byte, at int64) {
	var word [8]byte
	if skip := at % 8; skip != 0 {
		binary.LittleEndian.PutUint64(word[:], c.word(at/8))
		n := copy(p, word[skip:])
		p, at = p[n:], at+int64(n)
	}
	i := at / 8
	for ; len(p) >= 8; p, i = p[8:], i+1 {
		binary.LittleEndian.PutUint64(p, c.word(i))
	}
	if len(p) > 0 {
		binary.LittleEndian.PutUint64(word[:], c.word(i))
		copy(p, word[:])
	}
}

func (c *Content) Read(p []byte) (int, error) {
	left := c.size - c.at
	if left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), left)]
	c.fill(p, c.at)
	c.at += int64(len(p))
	return len(p), nil
}

// Seek implements [io.Seeker].
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return c.at, errors.New("origin: seek before the body's start")
	}
	c.at = offset
	return offset, nil
}

// Check reads body to its end and reports how it differs from the one of size
// bytes that belongs to target; nil means not at all. buf is used for reading.
func Check(body io.Reader, target string, size int64, buf []byte) error {
	want := NewContent(target, size)
	mine := buf[:len(buf)/2]
	theirs := buf[len(buf)/2:]
	for at := int64(0); ; {
		n, err := body.Read(theirs[:len(mine)])
		if at+int64(n) > size {
			return fmt.Errorf("body of %s goes on after its %d bytes", target, size)
		}
		want.fill(mine[:n], at)
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
