package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

// FuzzFile: any bytes in place of an object's file are refused, or are an object
// whose parts lie within them.
func FuzzFile(f *testing.F) {
	body := []byte("the body")
	whole := appendTail(append([]byte(nil), body...), int64(len(body)), []uint64{xxhash.Sum64(body)}, "key", Meta{Data: []byte("data"), ListUntil: time.Unix(1, 0)}, 2)
	f.Add(whole)
	f.Add(whole[1:])
	f.Add(whole[:len(whole)-1])
	f.Add(appendTail(nil, 0, nil, "", Meta{}, 0))
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
		got, err := readFooter(h, buf)
		if err != nil {
			return
		}
		if got.fileSize() != int64(len(b)) || len(got.key) != got.footer.key {
			t.Fatalf("%+v from %d bytes", got, len(b))
		}
		_, data, sums, err := readTail(h, got.body)
		if err != nil || len(data) != got.data || int64(len(sums)) != blockCount(got.body) {
			t.Fatalf("readTail: %d, %d, %v", len(data), len(sums), err)
		}
	})
}
