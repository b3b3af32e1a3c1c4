package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const byteOrderMark = "\xef\xbb\xbf" // of UTF-8

// maxWindow is the memory for unpacking, which suffices for zstd --long.
const maxWindow = 128 << 20

// packings are known by the first bytes of a file. Those without open are refused by name. What is packed twice is
// unpacked in this order.
var packings = []struct {
	magic, name string
	open        func(io.Reader) (io.Reader, func(), error)
}{
	{"\x1f\x8b", "gzip", func(src io.Reader) (io.Reader, func(), error) {
		z, err := gzip.NewReader(src)
		return z, func() {}, err
	}},
	{"\x28\xb5\x2f\xfd", "Zstandard", func(src io.Reader) (io.Reader, func(), error) {
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		return z, z.Close, err
	}},
	{"\xfd7zXZ", "xz", nil}, {"BZh", "bzip2", nil}, {"PK\x03\x04", "ZIP", nil},
	{"\xff\xfe", "UTF-16", nil}, {"\xfe\xff", "UTF-16", nil},
}

// unpack returns the lines of a file.
func unpack(name string, src io.Reader) (*lines, error) {
	l := &lines{bufio.NewReaderSize(src, maxSample), func() {}}
	for _, p := range packings {
		if magic, _ := l.Peek(len(p.magic)); !bytes.Equal(magic, []byte(p.magic)) {
			continue
		}
		if p.open == nil {
			return nil, fmt.Errorf("%s: this is %s: want text, plain, gzip or Zstandard", name, p.name)
		}
		plain, stop, err := p.open(l)
		if err != nil {
			return nil, fmt.Errorf("%s: not a %s file, though it begins like one: %w", name, p.name, err)
		}
		l = &lines{bufio.NewReaderSize(plain, maxSample), stop}
	}
	if mark, _ := l.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		l.Discard(len(mark))
	}
	return l, nil
}

// damage explains an error of the decompressor or the disk.
func damage(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the compressed data ends early: the file was cut short"
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		return "the compressed data is damaged: its checksum does not match"
	}
	return "cannot read on: " + err.Error()
}
