package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
)

// atOnce is a body that returns its last bytes together with io.EOF.
type atOnce struct{ b []byte }

func (a *atOnce) Close() error { return nil }

func (a *atOnce) Read(p []byte) (int, error) {
	n := copy(p, a.b)
	if a.b = a.b[n:]; len(a.b) == 0 {
		return n, io.EOF
	}
	return n, nil
}

type atOnceOrigin struct{ body []byte }

func (o atOnceOrigin) RoundTrip(r *http.Request) (*http.Response, error) {
	length := int64(len(o.body))
	if r.URL.Query().Get("unsized") != "" {
		length = -1
	}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: length,
		Header: http.Header{"Cache-Control": {"max-age=600"}}, Body: &atOnce{o.body}}, nil
}

// TestUnwritableStore checks that a store whose directory is gone causes misses but no errors,
// however long the bodies are and however many clients wait for one.
func TestUnwritableStore(t *testing.T) {
	target, _ := url.Parse("http://origin.test")
	for _, size := range []int{1000, 64 << 10, 64<<10 + 1, 300_000, 3 << 20} {
		dir := filepath.Join(t.TempDir(), "store") // part of which may come back
		want := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		h, err := New(Config{Settings: Settings{Origin: target}, Config: httpcache.Config{Name: "a"}, Store: diskstore.Options{Dir: dir, MaxBytes: 64 << 20, MemoryBytes: 8 << 20}, OriginTransport: atOnceOrigin{want}})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(h)
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
				resp, err := http.Get(s.URL + "/" + query)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d of %d bytes, %v", query, len(got), size, err)
				}
			})
		}
		wg.Wait()
		s.Close()
		h.Close()
	}
}
