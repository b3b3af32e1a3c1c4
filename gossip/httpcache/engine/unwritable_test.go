package engine

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

// withEOF is a body that returns its last bytes together with io.EOF.
type withEOF struct{ b []byte }

func (a *withEOF) Close() error { return nil }

func (a *withEOF) Read(p []byte) (int, error) {
	n := copy(p, a.b)
	if a.b = a.b[n:]; len(a.b) == 0 {
		return n, io.EOF
	}
	return n, nil
}

type originWithEOF struct{ body []byte }

func (o originWithEOF) RoundTrip(r *http.Request) (*http.Response, error) {
	length := int64(len(o.body))
	if r.URL.Query().Get("unsized") != "" {
		length = -1
	}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: length,
		Header: http.Header{"Cache-Control": {"max-age=600"}}, Body: &withEOF{o.body}}, nil
}

// TestUnwritableStore checks that a store whose directory is gone causes misses but no errors,
// however long the bodies are and however many clients wait for one.
func TestUnwritableStore(t *testing.T) {
	for _, size := range []int{1000, 64 << 10, 64<<10 + 1, 300_000, 3 << 20} {
		dir := filepath.Join(t.TempDir(), "store") // part of which may come back
		want := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		open := diskstore.Options{Dir: dir, MaxBytes: 64 << 20, MemoryBytes: 8 << 20}.Open
		c, err := New(Config{Name: "a", Open: open, Transport: originWithEOF{want}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				query := "?object=" + strconv.Itoa(i/8)
				if i/8%2 == 1 {
					query += "&unsized=1"
				}
				got := httptest.NewRecorder()
				res := c.Serve(got, httptest.NewRequest(http.MethodGet, "http://"+originHost+"/"+query, nil))
				if res.Broken || res.Err != nil || !bytes.Equal(got.Body.Bytes(), want) {
					t.Errorf("%s: %d of %d bytes, %v", query, got.Body.Len(), size, res.Err)
				}
			})
		}
		wg.Wait()
		c.Close()
	}
}
