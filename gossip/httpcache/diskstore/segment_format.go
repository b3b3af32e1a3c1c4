package diskstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// A segment holds small objects, bodies of one block, in two files in
// objects/segments: N.data has records with their descriptions and bodies, and N.index has
// an entry for each record, with its key and offset. N has 16 hexadecimal digits and grows. Each
// file begins with 8 bytes, its magic and version. All integers are little-endian. Records and
// entries begin at multiples of 8 bytes, and are padded with zeros.
//
// A record in the data file:
//
//	offset size
//	 0      8   xxhash64 of bytes 8 to 32, the key and the data
//	 8      8   xxhash64 of the body
//	16      8   number of the object, in the order of commits
//	24      4   length of the data
//	28      4   length of the body, at most 64 KiB
//	32          data | body
//
// An entry in the index file:
//
//	offset size
//	 0      1   'L' = the object is held; 0 = it is not; anything else is broken
//	 1      1   1 = a copy: another cache has the same object; 0 = not, or unknown
//	 2      2   number of labels
//	 4      4   length of the key
//	 8      4   offset of the record, in units of 8 bytes
//	12      4   length of the body
//	16      4   length of the data
//	20      4   zero
//	24      8   number of the object, as in the record
//	32      8   when the object stops being listed, Unix nanoseconds; 0 = never listed
//	40      8   when the object or its description was written, Unix nanoseconds
//	48      8   when the object was generated, Unix nanoseconds; 0 = unknown
//	56      8   xxhash64 of the entry without its first byte and this field
//	64          labels, 8 bytes each | key
//
// A record is appended first, then its entry. Afterwards only the first byte of the entry
// changes: 0 removes the object. Of two held entries of one key, the one with the higher number
// counts; an object that is moved keeps its number. Entries are read up to the first broken
// one: after a crash nothing valid follows it, and otherwise nothing behind it can be located.
// A record is checked when it is read.
const (
	dataFamily  = "sumcdat"
	indexFamily = "sumcind"
	dataMagic   = dataFamily + "1"
	indexMagic  = indexFamily + "1"

	segmentHead  = 8 // bytes before the first record or entry
	recordHead   = 32
	entryHead    = 64
	maxLabels    = 1<<16 - 1
	stateHeld    = 'L'
	stateRemoved = 0
)

// aligned rounds n up to a multiple of 8.
func aligned(n int64) int64 { return (n + 7) &^ 7 }

func recordSize(data, body int) int64 { return aligned(recordHead + int64(data) + int64(body)) }

func entrySize(labels, key int) int64 { return aligned(entryHead + 8*int64(labels) + int64(key)) }

// appendRecord appends a record to dst, whose length is a multiple of 8.
func appendRecord(dst []byte, seq uint64, key string, data, body []byte, bodySum uint64) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, 0)
	dst = le.AppendUint64(dst, bodySum)
	dst = le.AppendUint64(dst, seq)
	dst = le.AppendUint32(dst, uint32(len(data)))
	dst = le.AppendUint32(dst, uint32(len(body)))
	dst = append(dst, data...)
	le.PutUint64(dst[start:], descriptionSum(dst[start:], key, len(data)))
	dst = append(dst, body...)
	return append(dst, make([]byte, aligned(int64(len(dst)))-int64(len(dst)))...)
}

// descriptionSum computes the first field of the record that b begins with.
func descriptionSum(b []byte, key string, data int) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(b[8:recordHead])
	d.WriteString(key)
	d.Write(b[recordHead : recordHead+data])
	return d.Sum64()
}

// A record is a decoded record whose checksums are right.
type record struct {
	data, body []byte
	bodySum    uint64
	size       int64 // in the file
}

// parseRecord decodes the record that b begins with, and checks that it is that of the object
// with this key and number. Other bytes may follow it.
func parseRecord(b []byte, seq uint64, key string) (r record, err error) {
	if len(b) < recordHead {
		return r, fmt.Errorf("%w: a record ends within its head", errBroken)
	}
	le := binary.LittleEndian
	data, body := int64(le.Uint32(b[24:])), int64(le.Uint32(b[28:]))
	switch {
	case data > maxData || body > blockSize:
		return r, fmt.Errorf("%w: lengths of a record out of range", errBroken)
	case int64(len(b)) < recordHead+data+body:
		return r, fmt.Errorf("%w: a record is cut off", errBroken)
	case le.Uint64(b) != descriptionSum(b, key, int(data)), le.Uint64(b[16:]) != seq:
		return r, fmt.Errorf("%w: checksum of a record", errBroken)
	}
	r.data = b[recordHead : recordHead+data : recordHead+data]
	r.body = b[recordHead+data : recordHead+data+body : recordHead+data+body]
	r.bodySum, r.size = le.Uint64(b[8:]), recordSize(int(data), int(body))
	if xxhash.Sum64(r.body) != r.bodySum {
		return r, fmt.Errorf("%w: checksum of a body", errBroken)
	}
	return r, nil
}

// An indexEntry is a decoded entry.
type indexEntry struct {
	stamp
	held   bool
	at     int64 // the record's offset
	body   uint32
	data   uint32
	seq    uint64
	labels []byte // 8 bytes each, in the buffer that was parsed
	key    []byte // in the buffer that was parsed
	size   int64  // in the file
}

// appendEntry appends an entry to dst, whose length is a multiple of 8. It uses the labels and the
// key given, not those of e.
func appendEntry(dst []byte, state byte, e *indexEntry, key string, labels []uint64) []byte {
	start := len(dst)
	le := binary.LittleEndian
	copied := byte(0)
	if e.copied {
		copied = 1
	}
	dst = append(dst, state, copied)
	dst = le.AppendUint16(dst, uint16(len(labels)))
	dst = le.AppendUint32(dst, uint32(len(key)))
	dst = le.AppendUint32(dst, uint32(e.at/8))
	dst = le.AppendUint32(dst, e.body)
	dst = le.AppendUint32(dst, e.data)
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint64(dst, e.seq)
	dst = e.appendTimes(dst)
	dst = le.AppendUint64(dst, 0)
	dst = appendUint64s(dst, labels)
	dst = append(dst, key...)
	dst = append(dst, make([]byte, aligned(int64(len(dst)))-int64(len(dst)))...)
	sealEntry(dst[start:])
	return dst
}

// moveEntry changes the record offset and the state in an encoded entry.
func moveEntry(b []byte, state byte, at int64) {
	b[0] = state
	binary.LittleEndian.PutUint32(b[8:], uint32(at/8))
	sealEntry(b)
}

func sealEntry(b []byte) { binary.LittleEndian.PutUint64(b[56:], entrySum(b)) }

func entrySum(b []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(b[1:56])
	d.Write(b[entryHead:])
	return d.Sum64()
}

// emptySum is the checksum of an empty body.
var emptySum = xxhash.Sum64(nil)

// errMore means that an entry is not complete in the bytes read so far.
var errMore = errors.New("more bytes are needed")

// parseEntry decodes the entry that b begins with. If b ends before the entry does, the
// error is errMore, and e.size is the length of the entry as far as known.
func parseEntry(b []byte) (e indexEntry, err error) {
	e.size = entryHead
	if len(b) < entryHead {
		return e, errMore
	}
	le := binary.LittleEndian
	labels, key := int(le.Uint16(b[2:])), le.Uint32(b[4:])
	e.body, e.data = le.Uint32(b[12:]), le.Uint32(b[16:])
	if key > maxKey || e.body > blockSize || e.data > maxData || b[1] > 1 || le.Uint32(b[20:]) != 0 {
		return e, fmt.Errorf("%w: lengths of an entry out of range", errBroken)
	}
	e.size = entrySize(labels, int(key))
	if int64(len(b)) < e.size {
		return e, errMore
	}
	b = b[:e.size]
	if le.Uint64(b[56:]) != entrySum(b) {
		return e, fmt.Errorf("%w: checksum of an entry", errBroken)
	}
	if b[0] != stateHeld && b[0] != stateRemoved {
		return e, fmt.Errorf("%w: state of an entry", errBroken)
	}
	e.held, e.copied = b[0] == stateHeld, b[1] == 1
	e.at = int64(le.Uint32(b[8:])) * 8
	e.seq = le.Uint64(b[24:])
	e.parseTimes(b[32:])
	e.labels = b[entryHead : entryHead+8*labels]
	e.key = b[entryHead+8*labels : entryHead+8*labels+int(key)]
	return e, nil
}

// An entryReader reads the entries of an index file in order.
type entryReader struct {
	f    File
	buf  []byte // it grows if an entry is longer
	rest []byte // the part of buf that is not parsed yet
	off  int64  // of the end of rest in the file
	end  bool   // the file ends at off
}

func newEntryReader(f File, buf []byte) *entryReader {
	return &entryReader{f: f, buf: buf, off: segmentHead}
}

// next returns the next entry, its bytes, and its offset. They are valid until the
// next call. At the end of the file the error is io.EOF. After an error that wraps errBroken
// no more entries can be read.
func (r *entryReader) next() (e indexEntry, b []byte, at int64, err error) {
	for { // each round returns, or reads at least a byte or to the end
		at = r.off - int64(len(r.rest))
		if len(r.rest) == 0 && r.end {
			return e, nil, at, io.EOF
		}
		e, err = parseEntry(r.rest)
		switch {
		case err == nil:
			b, r.rest = r.rest[:e.size], r.rest[e.size:]
			return e, b, at, nil
		case err != errMore:
			return e, nil, at, err
		case r.end:
			return e, nil, at, fmt.Errorf("%w: an entry is cut off", errBroken)
		}
		if e.size > int64(len(r.buf)) { // parseEntry has checked the lengths, so this is less than 1 MiB
			r.buf = append(make([]byte, 0, e.size), r.rest...)[:e.size]
		} else {
			copy(r.buf, r.rest)
		}
		have := len(r.rest)
		n, err := r.f.ReadAt(r.buf[have:], r.off)
		if err != nil && err != io.EOF {
			return e, nil, at, err
		}
		r.end = err == io.EOF
		r.off += int64(n)
		r.rest = r.buf[:have+n]
	}
}

// checkMagic checks the first bytes of a segment's file.
func checkMagic(f File, family, magic string) error {
	var b [segmentHead]byte
	if err := readAt(f, b[:], 0); err != nil {
		return err
	}
	switch {
	case string(b[:]) == magic:
		return nil
	case string(b[:7]) == family:
		return otherFormat(b[7])
	}
	return fmt.Errorf("%w: not a segment's file", errBroken)
}
