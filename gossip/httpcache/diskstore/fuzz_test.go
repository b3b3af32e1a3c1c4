package diskstore

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// FuzzFile reads any bytes as an object's file: they are refused, or are an object
// whose parts are within them.
func FuzzFile(f *testing.F) {
	body := []byte("the body")
	whole := appendTail(append([]byte(nil), body...), int64(len(body)), []uint64{xxhash.Sum64(body)}, "key", []byte("data"), stamp{listUntil: 1e9, written: 2})
	f.Add(whole)
	f.Add(whole[1:])
	f.Add(whole[:len(whole)-1])
	f.Add(appendTail(nil, 0, nil, "", nil, stamp{}))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 4<<10)
		h, err := system{}.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		got, err := readTail(h, -1, buf)
		if err != nil {
			return
		}
		if got.fileSize() != int64(len(b)) || len(got.key) != got.keyLen || len(got.data) != got.dataLen || int64(len(got.sums)) != 8*blockCount(got.body) {
			t.Fatalf("%+v from %d bytes", got, len(b))
		}
		again, err := readTail(h, got.body, nil)
		if err != nil || again.key != got.key || !bytes.Equal(again.data, got.data) || !bytes.Equal(again.sums, got.sums) {
			t.Fatalf("readTail where the body's length is known: %+v, %v, want %+v", again, err, got)
		}
	})
}

// FuzzIndex reads any bytes as a segment's index: they are read to their end or refused, with
// no more memory than an entry needs, and each entry read encodes to the same bytes.
func FuzzIndex(f *testing.F) {
	e := indexEntry{at: 8, body: 5, data: 7, seq: 3, stamp: stamp{listUntil: 1, written: 2, generated: 4, copied: true}}
	one := appendEntry([]byte(indexMagic), stateHeld, &e, "a key", []uint64{1, 2})
	f.Add(one)
	f.Add(appendEntry(one, stateRemoved, &e, "", nil))
	f.Add(one[:len(one)-1])
	f.Add(make([]byte, 100))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "index")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := system{}.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		r := newEntryReader(h, make([]byte, 100))
		for {
			e, raw, at, err := r.next()
			if len(r.buf) > entryHead+8*maxLabels+maxKey+7 {
				t.Fatalf("a buffer of %d bytes", len(r.buf))
			}
			if err != nil {
				if at > max(int64(len(b)), segmentHead) || err == io.EOF && at != max(int64(len(b)), segmentHead) {
					t.Fatalf("%v at %d of %d bytes", err, at, len(b))
				}
				return
			}
			state := byte(stateRemoved)
			if e.held {
				state = stateHeld
			}
			if e.at%8 != 0 || !bytes.Equal(raw, b[at:at+e.size]) {
				t.Fatalf("%+v at %d", e, at)
			}
			again := appendEntry(nil, state, &e, string(e.key), decodeUint64s(e.labels))
			if !bytes.Equal(again[:entryHead], raw[:entryHead]) {
				t.Fatalf("% x encodes to % x", raw, again)
			}
		}
	})
}

// FuzzRecord reads any bytes as a record: they are refused, or are a record whose parts are
// within them.
func FuzzRecord(f *testing.F) {
	b := appendRecord(nil, 7, "key", []byte("data"), []byte("body"), xxhash.Sum64String("body"))
	f.Add(b)
	f.Add(append(b, 1, 2, 3))
	f.Add(b[:len(b)-9])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b, 7, "key")
		if err == nil && (int64(len(b)) < recordHead+int64(len(r.data)+len(r.body)) || xxhash.Sum64(r.body) != r.bodySum) {
			t.Fatalf("%+v from %d bytes", r, len(b))
		}
	})
}
