package diskstore

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// FuzzIndex reads any bytes as a segment's index: they are read to their end or refused, with
// no more memory than an entry needs, and each entry read encodes to the same bytes.
func FuzzIndex(f *testing.F) {
	sealed := func(dst []byte, e *entry, key string, labels []uint64) []byte {
		start := len(dst)
		dst = appendEntry(dst, e, key, labels)
		sealEntry(dst[start:], e.at, e.seq)
		return dst
	}
	e := entry{at: 8, body: 5, data: 7, seq: 3, stamp: stamp{listUntil: 1, written: 2, generated: 4, copied: true}}
	one := sealed([]byte(indexMagic), &e, "a key", []uint64{1, 2})
	f.Add(one)
	f.Add(appendRemoval(one, 3))
	e.file, e.body = 9, 1<<20
	f.Add(sealed(one, &e, "", nil))
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
		r := newEntryReader(h, make([]byte, 100), int64(len(b)))
		for {
			e, raw, at, err := r.next()
			if len(r.buf) > entryHead+8+8*maxLabels+maxKey+7 {
				t.Fatalf("a buffer of %d bytes", len(r.buf))
			}
			if err != nil {
				if at > max(int64(len(b)), segmentHead) || err != io.EOF && !errors.Is(err, errBroken) {
					t.Fatalf("%v at %d of %d bytes", err, at, len(b))
				}
				return
			}
			if !bytes.Equal(raw, b[at:at+e.size]) {
				t.Fatalf("%+v at %d", e, at)
			}
			var again []byte
			if e.state == stateRemoval {
				again = appendRemoval(nil, e.seq)
			} else {
				again = sealed(nil, &e, string(e.key), decodeUint64s(e.labels))
				again[0] = e.state
			}
			if n := min(len(again), entryHead); !bytes.Equal(again[8:min(n, 56)], raw[8:min(n, 56)]) && e.state != stateRemoval || len(again) != len(raw) {
				t.Fatalf("% x encodes to % x", raw, again)
			}
		}
	})
}

// FuzzRecord reads any bytes as a record: they are refused, or are a record whose parts are
// within them.
func FuzzRecord(f *testing.F) {
	b := appendRecord(nil, []byte("data"), []byte("body"), xxhash.Sum64String("body"))
	sealRecord(b, 7, "key")
	f.Add(b)
	f.Add(append(b, 1, 2, 3))
	f.Add(b[:len(b)-9])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b, 7, "key")
		if err == nil && (int64(len(b)) < recordHead+int64(len(r.data)+len(r.content)) || xxhash.Sum64(r.content) != r.sum) {
			t.Fatalf("%+v from %d bytes", r, len(b))
		}
	})
}
