package diskstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// The log is written in segments, each a pair of files in objects/segments: N.index has its entries, and N.data the
// descriptions of the objects and the bodies of up to 64 KiB. A longer body is a file of its own,
// objects/bodies/XX/ID, with nothing else in it, which is written once. N and ID have 16 hexadecimal digits. N grows;
// XX are the last two digits of ID. N.index and N.data begin with 8 bytes, their magic and version. All integers are
// little-endian. Records and entries begin at multiples of 8 bytes, and are padded with zeros.
//
// A record in N.data:
//
//	offset size
//	 0      8   xxhash64 of bytes 8 to 32, the key and the data
//	 8      8   xxhash64 of the content
//	16      8   number of the object, in the order of the log
//	24      4   length of the data, the owner's description
//	28      4   length of the content
//	32          data | content: the body or, if that is a file, the xxhash64 of each of its blocks of 64 KiB
//
// An entry in N.index says that an object is stored,
//
//	offset size
//	 0      1   'L' = it is held; 0 = it was removed, on a disk that took no more bytes
//	 1      1   1 = a copy: another cache has the same object; 2 = the body is a file; 3 = both
//	 2      2   number of labels
//	 4      4   length of the key
//	 8      4   offset of the record, in units of 8 bytes
//	12      4   length of the data
//	16      8   length of the body
//	24      8   number of the object, as in the record
//	32      8   when the object stops being listed, Unix nanoseconds; 0 = never listed
//	40      8   when the object or its description was written, Unix nanoseconds
//	48      8   when the object was generated, Unix nanoseconds; 0 = unknown
//	56      8   xxhash64 of the entry without its first byte and this field
//	64          ID if the body is a file, 8 bytes | labels, 8 bytes each | key
//
// or that an object of the same segment was removed:
//
//	 0      1   'R'
//	 1      7   zero
//	 8      8   number of the object
//	16      8   xxhash64 of the first 16 bytes
//
// Of two held entries of one key, the one with the higher number counts. An object that is moved keeps its number. An
// index is cut off before an entry that is not complete at its end, and before one of which a sector has only zeros,
// since a power cut undid its writing. Any other broken entry costs all of the segment: what it removed is not known.
const (
	dataFamily  = "sumcdat"
	indexFamily = "sumcind"
	dataMagic   = dataFamily + "2"
	indexMagic  = indexFamily + "2"

	segmentHead  = 8 // bytes before the first record or entry
	recordHead   = 32
	entryHead    = 64
	removalSize  = 24
	sector       = 512 // bytes that a disk writes at once
	maxLabels    = 1<<16 - 1
	stateHeld    = 'L'
	stateRemoved = 0
	stateRemoval = 'R'
	flagCopied   = 1
	flagFile     = 2

	blockSize = bodies.BlockSize // bytes of body under one checksum
	maxKey    = 64 << 10
	maxData   = 1 << 20
	maxBody   = 255 << 30 // an index weight of 32 bits counts grains
)

var (
	errBroken = errors.New("broken file")
	errMore   = errors.New("more bytes are needed") // an entry is not complete in the bytes read so far
	// errOther is the error for a file that is whole, but of another version of this format.
	errOther = errors.New("a format that this program does not read: empty the directory, or use another one")

	emptySum = xxhash.Sum64(nil)
)

// A stamp has the times of an object, in Unix nanoseconds, and whether it is a copy.
type stamp struct {
	listUntil int64 // when it stops being listed; 0 = never listed
	written   int64 // when it or its description was written
	generated int64 // 0 = unknown
	copied    bool  // another cache has a copy
}

func stampOf(m bodies.Meta, written int64) stamp {
	return stamp{nanos(m.ListUntil), written, nanos(m.Generated), m.Copied}
}

// aligned rounds n up to a multiple of 8.
func aligned(n int64) int64 { return (n + 7) &^ 7 }

func recordSize(data, content int64) int64 { return aligned(recordHead + data + content) }

// pad appends zeros to dst up to a multiple of 8 bytes.
func pad(dst []byte) []byte {
	return append(dst, make([]byte, aligned(int64(len(dst)))-int64(len(dst)))...)
}

// appendRecord appends a record to dst, whose length is a multiple of 8. sealRecord completes it.
func appendRecord(dst []byte, data, content []byte, contentSum uint64) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, 0)
	dst = le.AppendUint64(dst, contentSum)
	dst = le.AppendUint64(dst, 0)
	dst = le.AppendUint32(dst, uint32(len(data)))
	dst = le.AppendUint32(dst, uint32(len(content)))
	dst = append(dst, data...)
	return pad(append(dst, content...))
}

// sealRecord writes the number of an object, and the checksum of its description, into its record.
func sealRecord(b []byte, seq uint64, key string) {
	le := binary.LittleEndian
	le.PutUint64(b[16:], seq)
	le.PutUint64(b, descriptionSum(b, key, int64(le.Uint32(b[24:]))))
}

// descriptionSum computes the first field of the record that b begins with.
func descriptionSum(b []byte, key string, data int64) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(b[8:recordHead])
	d.WriteString(key)
	d.Write(b[recordHead : recordHead+data])
	return d.Sum64()
}

// A record is a decoded record whose checksums are right.
type record struct {
	data, content []byte
	sum           uint64 // of the content
	size          int64  // in the file
}

// parseRecord decodes the record that b begins with, and checks that it is that of the object with this key and
// number. Other bytes may follow it.
func parseRecord(b []byte, seq uint64, key string) (r record, err error) {
	if len(b) < recordHead {
		return r, fmt.Errorf("%w: a record ends within its head", errBroken)
	}
	le := binary.LittleEndian
	data, content := int64(le.Uint32(b[24:])), int64(le.Uint32(b[28:]))
	switch {
	case data > maxData:
		return r, fmt.Errorf("%w: lengths of a record out of range", errBroken)
	case int64(len(b)) < recordHead+data+content:
		return r, fmt.Errorf("%w: a record is cut off", errBroken)
	case le.Uint64(b) != descriptionSum(b, key, data), le.Uint64(b[16:]) != seq:
		return r, fmt.Errorf("%w: checksum of a record", errBroken)
	}
	r.data = b[recordHead : recordHead+data : recordHead+data]
	r.content = b[recordHead+data : recordHead+data+content : recordHead+data+content]
	r.sum, r.size = le.Uint64(b[8:]), recordSize(data, content)
	if xxhash.Sum64(r.content) != r.sum {
		return r, fmt.Errorf("%w: checksum of a body", errBroken)
	}
	return r, nil
}

// An entry is a decoded entry of an index.
type entry struct {
	stamp
	state  byte
	at     uint32 // offset of the record, in units of 8 bytes
	data   uint32 // length of the data
	body   int64  // length of the body
	seq    uint64
	file   uint64 // of the body; 0 = the record has it
	labels []byte // 8 bytes each, in the buffer that was parsed
	key    []byte // likewise
	size   int64  // in the index
}

// content returns the length of the content of the record.
func (e *entry) content() int64 {
	if e.file != 0 {
		return 8 * bodies.BlockCount(e.body)
	}
	return e.body
}

// appendEntry appends the entry of an object that is stored to dst, whose length is a multiple of 8. sealEntry
// completes it.
func appendEntry(dst []byte, e *entry, key string, labels []uint64) []byte {
	le := binary.LittleEndian
	flags := byte(0)
	if e.copied {
		flags = flagCopied
	}
	if e.file != 0 {
		flags |= flagFile
	}
	dst = append(dst, stateHeld, flags)
	dst = le.AppendUint16(dst, uint16(len(labels)))
	dst = le.AppendUint32(dst, uint32(len(key)))
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint32(dst, e.data)
	dst = appendUint64s(dst, []uint64{uint64(e.body), 0, uint64(e.listUntil), uint64(e.written), uint64(e.generated), 0})
	if e.file != 0 {
		dst = le.AppendUint64(dst, e.file)
	}
	return pad(append(appendUint64s(dst, labels), key...))
}

// sealEntry writes the place of the record, the number of the object and the checksum into an entry.
func sealEntry(b []byte, at uint32, seq uint64) {
	le := binary.LittleEndian
	b[0] = stateHeld
	le.PutUint32(b[8:], at)
	le.PutUint64(b[24:], seq)
	le.PutUint64(b[56:], entrySum(b))
}

func entrySum(b []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(b[1:56])
	d.Write(b[entryHead:])
	return d.Sum64()
}

func entrySize(labels, key int, file bool) int64 {
	if file {
		labels++
	}
	return aligned(entryHead + 8*int64(labels) + int64(key))
}

// appendRemoval appends the entry that removes the object with that number.
func appendRemoval(dst []byte, seq uint64) []byte {
	dst = appendUint64s(dst, []uint64{stateRemoval, seq})
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[len(dst)-16:]))
}

// parseEntry decodes the entry that b begins with. If b ends before the entry does, the error is errMore, and e.size
// is the length of the entry as far as known.
func parseEntry(b []byte) (e entry, err error) {
	e.size = removalSize
	if len(b) < removalSize {
		return e, errMore
	}
	le := binary.LittleEndian
	if e.state = b[0]; e.state == stateRemoval {
		e.seq = le.Uint64(b[8:])
		if le.Uint64(b[16:]) != xxhash.Sum64(b[:16]) {
			return e, fmt.Errorf("%w: checksum of a removal", errBroken)
		}
		return e, nil
	}
	labels, key := int(le.Uint16(b[2:])), le.Uint32(b[4:])
	if e.data = le.Uint32(b[12:]); key > maxKey || e.data > maxData || b[1] > flagCopied|flagFile {
		return e, fmt.Errorf("%w: lengths of an entry out of range", errBroken)
	}
	file := b[1]&flagFile != 0
	if e.size = entrySize(labels, int(key), file); int64(len(b)) < e.size {
		return e, errMore
	}
	b = b[:e.size]
	if e.state != stateHeld && e.state != stateRemoved || le.Uint64(b[56:]) != entrySum(b) {
		return e, fmt.Errorf("%w: checksum of an entry", errBroken)
	}
	e.at, e.body, e.seq = le.Uint32(b[8:]), int64(le.Uint64(b[16:])), le.Uint64(b[24:])
	e.listUntil, e.written = int64(le.Uint64(b[32:])), int64(le.Uint64(b[40:]))
	e.generated, e.copied = int64(le.Uint64(b[48:])), b[1]&flagCopied != 0
	b = b[entryHead:]
	if file {
		e.file, b = le.Uint64(b), b[8:]
	}
	if e.body < 0 || e.body > maxBody || !file && e.body > blockSize || file && e.file == 0 {
		return e, fmt.Errorf("%w: length of a body out of range", errBroken)
	}
	e.labels, e.key = b[:8*labels], b[8*labels:8*labels+int(key)]
	return e, nil
}

// An entryReader reads the entries of an index in order.
type entryReader struct {
	f    File
	buf  []byte // it grows if an entry is longer
	rest []byte // the part of buf that is not parsed yet
	off  int64  // of the end of rest in the file
	end  int64  // where reading ends
}

func newEntryReader(f File, buf []byte, end int64) *entryReader {
	return &entryReader{f: f, buf: buf, off: segmentHead, end: end}
}

// next returns the next entry, its bytes, and its offset. They are valid until the next call. At the end the error is
// io.EOF, also where the rest is to be cut off. After an error that wraps errBroken no more entries can be read.
func (r *entryReader) next() (e entry, b []byte, at int64, err error) {
	for { // each round returns, or reads at least a byte
		at = r.off - int64(len(r.rest))
		if at >= r.end {
			return e, nil, at, io.EOF
		}
		e, err = parseEntry(r.rest)
		switch {
		case err == nil:
			b, r.rest = r.rest[:e.size], r.rest[e.size:]
			return e, b, at, nil
		case err == errMore && r.off < r.end:
		case err == errMore && r.torn() || r.undone(at, e.size):
			return e, nil, at, io.EOF
		case err == errMore:
			return e, nil, at, fmt.Errorf("%w: the length of an entry", errBroken)
		default:
			return e, nil, at, err
		}
		if e.size > int64(len(r.buf)) { // parseEntry has checked the lengths, so this is less than 1 MiB
			r.buf = append(make([]byte, 0, e.size), r.rest...)[:e.size]
		} else {
			copy(r.buf, r.rest)
		}
		have := len(r.rest)
		n, err := r.f.ReadAt(r.buf[have:min(int64(len(r.buf)), int64(have)+r.end-r.off)], r.off)
		if err == io.EOF { // another process has cut it off
			r.end = r.off + int64(n)
		} else if err != nil {
			return e, nil, at, err
		}
		r.off += int64(n)
		r.rest = r.buf[:have+n]
	}
}

// torn reports whether no entry begins in what follows: then it is the first part of one.
func (r *entryReader) torn() bool {
	for b := r.rest; len(b) > 8; {
		if b = b[8:]; b[0] != stateRemoved {
			if _, err := parseEntry(b); err == nil {
				return false
			}
		}
	}
	return true
}

// undone reports whether a power cut undid the writing of the entry that begins at an offset, and has at least size
// bytes: a sector has only zeros where bytes of it should be. What was written later may be there.
func (r *entryReader) undone(at, size int64) bool {
	var zeros, b [sector]byte
	for from := at; from < min(at+size, r.end); {
		to := min(from/sector*sector+sector, r.end)
		n, err := r.f.ReadAt(b[:to-from], from)
		if bytes.Equal(b[:n], zeros[:to-from]) {
			return true
		} else if err != nil {
			return false
		}
		from = to
	}
	return false
}

// checkMagic checks the first bytes of a segment's file.
func checkMagic(f File, family, magic string) error {
	var b [segmentHead]byte
	if _, err := f.ReadAt(b[:], 0); errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errBroken, err)
	} else if err != nil {
		return err
	}
	switch {
	case string(b[:]) == magic:
		return nil
	case string(b[:7]) == family:
		return fmt.Errorf("version %q of %w", b[7], errOther)
	}
	return fmt.Errorf("%w: not a segment's file", errBroken)
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
