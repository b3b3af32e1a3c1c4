package proxy

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
)

// A stored body that is found corrupt in the middle of an answer is finished from the origin, in
// whichever way the answer is sent, and stored again. If the origin has another body by then, the
// connection is closed: nobody gets a mixture.
func TestSpoiltWithinAnswer(t *testing.T) {
	const size = 2_000_000
	body, other, cases := content(1, size), content(2, size), 0
	for _, tag := range []string{"", `"a"`} {
		for _, changed := range []bool{false, true} {
			for _, spoil := range []struct {
				name string
				do   func(f *os.File)
			}{
				{"a bit", func(f *os.File) { f.WriteAt([]byte{body[1_500_000] ^ 1}, 1_500_000) }},
				{"the end", func(f *os.File) { f.Truncate(1_500_000) }},
			} {
				for _, fields := range [][]string{nil, {"Range: bytes=100-"}, {"Range: bytes=1000000-1999998"}, {"Connection: close"}} {
					if !inShort(&cases, 5) {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
							w.Header().Set("Cache-Control", "max-age=600")
							w.Header().Set("Content-Length", strconv.Itoa(size))
							if tag != "" {
								w.Header().Set("ETag", tag)
							}
							if n > 0 && changed {
								w.Header().Del("ETag")
								w.Write(other)
								return
							}
							w.Write(body)
						})
						dir := t.TempDir()
						h := w.start("a", dir)
						defer w.close()
						w.get("a", "/x")
						synctest.Wait()
						files, _ := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
						if len(files) != 1 {
							t.Fatalf("%d files", len(files))
						}
						f, err := os.OpenFile(files[0], os.O_RDWR, 0)
						if err != nil {
							t.Fatal(err)
						}
						spoil.do(f)
						f.Close()
						r, err := w.try("a", "GET", "/x", "", fields...)
						if err != nil {
							t.Fatal(err)
						}
						from, to := 0, size
						if r.StatusCode == 206 {
							if from = 100; len(fields[0]) > 20 {
								from, to = 1_000_000, size-1
							}
						}
						whole := r.err == nil && bytes.Equal([]byte(r.body), body[from:to])
						anew := changed && r.err == nil && bytes.Equal([]byte(r.body), other[from:to])
						prefix := r.err != nil && bytes.HasPrefix(body[from:to], []byte(r.body))
						if !whole && !anew && !(changed && prefix) {
							t.Errorf("%s spoilt, %v, tag %q, changed=%v: %d, %d bytes, %v", spoil.name, fields, tag, changed, r.StatusCode, len(r.body), r.err)
						}
						synctest.Wait()
						if r := w.get("a", "/x"); r.err != nil || !bytes.Equal([]byte(r.body), body) && !changed {
							t.Errorf("%s spoilt, %v: then %d bytes, %v", spoil.name, fields, len(r.body), r.err)
						}
						if n := h.Store().Stats(); n.Corrupt != 1 || w.origin.count() > 2+len(fields) {
							t.Errorf("%s spoilt, %v: %d corrupt, %d origin requests", spoil.name, fields, n.Corrupt, w.origin.count())
						}
					})
				}
			}
		}
	}
}

// A sibling with another version, with the same header, does not supply the rest; the origin does.
func TestSpoiltBesideOlderSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 200_000
		body := content(1, size)
		w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=600")
			w.Header().Set("Content-Length", strconv.Itoa(size))
			w.Write(body)
		})
		dir := t.TempDir()
		w.start("a", dir)
		defer w.close()
		w.get("a", "/x")
		synctest.Wait()
		files, _ := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
		if len(files) != 1 {
			t.Fatalf("%d files", len(files))
		}
		f, err := os.OpenFile(files[0], os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte{body[150_000] ^ 1}, 150_000)
		f.Close()
		w.rogue("c", &faulty{body: content(2, size), fault: "cut", at: size})
		if r := w.get("a", "/x"); r.err != nil || !bytes.Equal([]byte(r.body), body) || w.origin.count() != 2 {
			t.Errorf("%d bytes, %v, %d origin requests; %s", len(r.body), r.err, w.origin.count(), r.status())
		}
	})
}

// A short part is sent together with its header. If its last block is corrupt, nothing has been
// sent yet, and any version of the origin will do.
func TestSpoiltShortPart(t *testing.T) {
	for _, fields := range [][]string{{"Range: bytes=65000-66000"}, {"Range: bytes=65000-66000", "Connection: close"}} {
		synctest.Test(t, func(t *testing.T) {
			const size = 200_000
			body, other := content(1, size), content(2, size)
			w := newWorld(t, false, func(w http.ResponseWriter, r *http.Request, n int) {
				w.Header().Set("Cache-Control", "max-age=600")
				w.Header().Set("Content-Length", strconv.Itoa(size))
				w.Write([][]byte{body, other}[min(n, 1)])
			})
			dir := t.TempDir()
			w.start("a", dir)
			defer w.close()
			w.get("a", "/x")
			synctest.Wait()
			files, _ := filepath.Glob(filepath.Join(dir, "objects", "*", "*"))
			if len(files) != 1 {
				t.Fatalf("%d files", len(files))
			}
			f, err := os.OpenFile(files[0], os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteAt([]byte{body[65_600] ^ 1}, 65_600)
			f.Close()
			r, err := w.try("a", "GET", "/x", "", fields...)
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != 206 || r.err != nil || !bytes.Equal([]byte(r.body), other[65_000:66_001]) {
				t.Errorf("%v: %d, %d bytes, %v", fields, r.StatusCode, len(r.body), r.err)
			}
		})
	}
}
