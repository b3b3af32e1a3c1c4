package diskstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// A file is
//
//	body | sums | key | data | footer
//
// sums holds the xxhash64 of each block of the body (the last may be short), so that a part of a
// body can be checked without reading the whole. The footer has a fixed size. It is at the end,
// because the length and the sums of a body that is still arriving are not known before. All
// integers are little-endian:
//
//	offset size
//	 0      8   magic, with the version of this format
//	 8      8   length of the body
//	16      4   length of the key
//	20      3   length of the data
//	23      1   1 = a copy: another cache has the same object; 0 = not, or unknown
//	24      8   when the object stops being listed, Unix nanoseconds; 0 = never listed
//	32      8   when the object or its description was written, Unix nanoseconds
//	40      8   when the object was generated, Unix nanoseconds; 0 = unknown
//	48      8   xxhash64 of sums, key and data
//	56      8   xxhash64 of the footer's first 56 bytes
//
// The parts fill the file exactly; a file of any other length is broken. A new
// description of the same body ([bodies.Meta]) overwrites key, data and footer
// in place: a crash in between leaves a broken file, which the next Open removes.
//
// A block has 64 KiB. A reader needs memory for one block, and another cache holds back one block
// until it is verified. Blocks of 16 KiB would cost a third more to read and check. The checksums
// are xxhash64, which takes 3 us for 64 KiB; a cryptographic hash takes 18 (BLAKE3) or 38
// (SHA-256), and a disk is no adversary. Another cache checks a body by the same sums
// ([bodies.View]).
//
// Version 2 had blocks of 256 KiB. Open refuses a store with files of another version. All versions have a
// footer of 64 bytes that begins with the magic and ends with its checksum.
const (
	family     = "sumcach"
	magic      = family + "3"
	footerSize = 64
	copiedBit  = 1 << 24  // beside the length of the data
	blockSize  = 64 << 10 // bytes of body under one checksum

	maxKey  = 64 << 10
	maxData = 1 << 20
)

// footer is the decoded end of a file.
type footer struct {
	body            int64
	keyLen, dataLen int
	tailSum         uint64
	stamp
}

// A stamp has the fields of fixed length that both formats keep of an object. Times are in Unix
// nanoseconds.
type stamp struct {
	listUntil int64 // when it stops being listed; 0 = never listed
	written   int64 // when it or its description was written
	generated int64 // 0 = unknown
	copied    bool  // another cache has a copy
}

func stampOf(m bodies.Meta, written int64) stamp {
	return stamp{nanos(m.ListUntil), written, nanos(m.Generated), m.Copied}
}

func (s *stamp) appendTimes(dst []byte) []byte {
	return appendUint64s(dst, []uint64{uint64(s.listUntil), uint64(s.written), uint64(s.generated)})
}

func (s *stamp) parseTimes(b []byte) {
	le := binary.LittleEndian
	s.listUntil, s.written, s.generated = int64(le.Uint64(b)), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))
}

// blockCount returns the number of blocks of a body of n bytes.
func blockCount(n int64) int64 { return (n + blockSize - 1) / blockSize }

// tailSize returns the bytes of a file between its body and its footer.
func (f *footer) tailSize() int64 { return 8*blockCount(f.body) + int64(f.keyLen) + int64(f.dataLen) }

// fileSize returns the length of the whole file.
func (f *footer) fileSize() int64 { return f.body + f.tailSize() + footerSize }

// appendTail appends everything that follows the body to dst.
func appendTail(dst []byte, body int64, sums []uint64, key string, data []byte, st stamp) []byte {
	start := len(dst)
	dst = appendUint64s(dst, sums)
	dst = append(dst, key...)
	dst = append(dst, data...)
	tail := xxhash.Sum64(dst[start:])

	copied := uint32(0)
	if st.copied {
		copied = copiedBit
	}
	start = len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(body))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(key)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data))|copied)
	dst = st.appendTimes(dst)
	dst = binary.LittleEndian.AppendUint64(dst, tail)
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

var errBroken = errors.New("broken file")

// errOther is the error for a file that is whole, but of another version of this format.
var errOther = errors.New("a format that this program does not read: empty the directory, or use another one")

func otherFormat(version byte) error { return fmt.Errorf("version %q of %w", version, errOther) }

// parseFooter decodes the last footerSize bytes of a file of size bytes.
func parseFooter(b []byte, size int64) (footer, error) {
	var f footer
	le := binary.LittleEndian
	switch {
	case len(b) != footerSize || string(b[:len(family)]) != family:
		return f, fmt.Errorf("%w: no footer", errBroken)
	case le.Uint64(b[56:]) != xxhash.Sum64(b[:56]):
		return f, fmt.Errorf("%w: footer checksum", errBroken)
	case string(b[:8]) != magic:
		return f, otherFormat(b[7])
	case le.Uint32(b[16:]) > maxKey || le.Uint32(b[20:])&^copiedBit > maxData:
		return f, fmt.Errorf("%w: lengths out of range", errBroken)
	}
	f.body = int64(le.Uint64(b[8:]))
	f.keyLen = int(le.Uint32(b[16:]))
	f.dataLen, f.copied = int(le.Uint32(b[20:])&^copiedBit), b[23] == 1
	f.parseTimes(b[24:])
	f.tailSum = le.Uint64(b[48:])
	if f.body < 0 || f.body > size || f.fileSize() != size {
		return f, fmt.Errorf("%w: lengths do not add up", errBroken)
	}
	return f, nil
}

// A tail is all that follows the body of a file.
type tail struct {
	footer
	sums []byte // of the body's blocks, 8 bytes each
	key  string
	data []byte // the owner's
}

// readTail reads and checks the tail of a file. It begins at offset from; if from is negative,
// its offset is unknown, and as much of the file's end as fits into buf is read first. The result
// may point into buf. An error wraps errBroken unless the file can't be read; errOther is not broken.
func readTail(f File, from int64, buf []byte) (t tail, err error) {
	size, err := f.Size()
	if err != nil {
		return t, err
	}
	if from < 0 {
		from = max(0, size-int64(len(buf)))
	}
	n := size - from
	if n < footerSize || n > footerSize+8*blockCount(from)+maxKey+maxData {
		return t, fmt.Errorf("%w: length out of range", errBroken)
	}
	if n > int64(len(buf)) {
		buf = make([]byte, n)
	}
	b := buf[:n]
	if err := readAt(f, b, from); err != nil {
		return t, err
	}
	if t.footer, err = parseFooter(b[n-footerSize:], size); err != nil {
		return t, err
	}
	if t.body < from { // at most once: then from is the body's length, which does not change
		return readTail(f, t.body, nil)
	}
	b = b[t.body-from : n-footerSize]
	if xxhash.Sum64(b) != t.tailSum {
		return t, fmt.Errorf("%w: checksum", errBroken)
	}
	t.sums, b = b[:8*blockCount(t.body)], b[8*blockCount(t.body):]
	t.key, t.data = string(b[:t.keyLen]), b[t.keyLen:]
	return t, nil
}

// readTailOf reads the tail of o's file. Any error wraps errBroken.
func readTailOf(f File, o *object) (tail, error) {
	t, err := readTail(f, o.file.body, nil)
	switch {
	case err != nil && !errors.Is(err, errBroken):
		err = fmt.Errorf("%w: %w", errBroken, err)
	case err == nil && (t.key != o.key || t.body != o.file.body):
		err = fmt.Errorf("%w: it holds another object", errBroken)
	}
	return t, err
}

// readAt fills b from offset off. If the file is too short, the error wraps errBroken.
func readAt(f File, b []byte, off int64) error {
	_, err := f.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return err
}

// appendUint64s appends the numbers to dst, 8 bytes each.
func appendUint64s(dst []byte, all []uint64) []byte {
	for _, n := range all {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return dst
}

// decodeUint64s is the inverse of appendUint64s; it returns nil if there are no numbers.
func decodeUint64s(b []byte) (all []uint64) {
	if len(b) > 0 {
		all = make([]uint64, len(b)/8)
	}
	for i := range all {
		all[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return all
}

// instant is the inverse of nanos.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// nanos returns t in Unix nanoseconds, and 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
