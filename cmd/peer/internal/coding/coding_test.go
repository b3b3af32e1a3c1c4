package coding

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/summarycache/summarycache/sim/cputime"
)

func response(body io.Reader) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, ContentLength: -1, Body: io.NopCloser(body)}
}

var get = &http.Request{Method: http.MethodGet, Header: http.Header{}}

func decoded(t *testing.T, r *http.Response) string {
	t.Helper()
	var from io.Reader
	var err error
	switch r.Header.Get("Content-Encoding") {
	case "zstd":
		from, err = zstd.NewReader(r.Body)
	case "gzip":
		from, err = gzip.NewReader(r.Body)
	default:
		from = r.Body
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Bodies of all lengths, in pieces of all lengths, are restored by decoding, also from reused
// encoders.
func TestRoundTrip(t *testing.T) {
	var c Compressor
	var group sync.WaitGroup
	for i := range 4 {
		coding := Codings()[i%2]
		group.Go(func() {
			for _, size := range []int{0, 1, 1000, 32 << 10, 64<<10 + 1, 1 << 20} {
				want := strings.Repeat("0123456789abcdefghij", size/20+1)[:size]
				for _, from := range []io.Reader{strings.NewReader(want), iotest.OneByteReader(strings.NewReader(want[:min(size, 5000)])),
					iotest.DataErrReader(strings.NewReader(want))} {
					r := response(from)
					c.Response(get, r, coding)
					if got := decoded(t, r); r.Header.Get("Content-Encoding") != coding || got != want && got != want[:min(size, 5000)] {
						t.Errorf("%s of %d bytes: %d bytes come back, %v", coding, size, len(got), r.Header)
					}
					r.Body.Close()
				}
			}
		})
	}
	group.Wait()
	if used, _ := c.atRest(); used != 0 {
		t.Errorf("%d MiB are in use", used)
	}
}

// atRest waits up to 10 s until no encoder is in use, and returns the memory in use and the number
// of spare gzip encoders.
func (c *Compressor) atRest() (used, spare int) {
	for range 1000 {
		c.mu.Lock()
		used, spare = c.used, len(c.spare["gzip"])
		c.mu.Unlock()
		if used == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return used, spare
}

// The compressed body ends with the error of the origin's body, and does not look complete.
func TestBroken(t *testing.T) {
	var c Compressor
	for _, coding := range Codings() {
		broken := errors.New("broken")
		r := response(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)))
		c.Response(get, r, coding)
		if got, err := io.ReadAll(r.Body); err != broken || bytes.Contains(got, []byte("abc\x03")) {
			t.Errorf("%s: %q, %v", coding, got, err)
		}
		r.Body.Close()
	}
}

// Bodies beyond the limit of memory are not compressed, and nothing waits. A body that ends, at
// whatever moment, makes room for another.
func TestBound(t *testing.T) {
	var c Compressor
	var open []*http.Response
	for i := range maxMemory + 1 {
		src, w := io.Pipe()
		defer w.Close()
		r := response(src)
		r.Body = src
		c.Response(get, r, "gzip")
		if coded := r.Header.Get("Content-Encoding") != ""; coded != (i < maxMemory) || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("body %d: %v", i, r.Header)
		}
		open = append(open, r)
	}
	for _, r := range open[:maxMemory] {
		done := make(chan error)
		go func() { _, err := io.ReadAll(r.Body); done <- err }()
		r.Body.Close()
		if err := <-done; err == nil {
			t.Error("a body that was closed looks whole")
		}
	}
	if used, spare := c.atRest(); used != 0 || spare != maxSpare {
		t.Errorf("%d MiB are in use, %d encoders are spare", used, spare)
	}
	var taken []encoder
	for range maxSpare {
		e, ok := c.take("gzip")
		if !ok {
			t.Fatal("take(gzip) has no encoder")
		}
		taken = append(taken, e)
	}
	if used, spare := len(taken), len(c.spare["gzip"]); spare != 0 {
		t.Errorf("%d encoders are spare after %d were taken, want none", spare, used)
	}
	for _, e := range taken {
		c.put("gzip", e)
	}
	r := response(strings.NewReader("abc"))
	if c.Response(get, r, "gzip"); decoded(t, r) != "abc" || r.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("after they left: %v", r.Header)
	}
}

// A 304 has the tag of what is validated, weak unless it is one that was asked for, and no fields that it did not have.
func TestConfirm(t *testing.T) {
	for name, tt := range map[string]struct{ asked, tag, vary, wantTag, wantVary string }{
		"the tag that was asked for": {`"a"`, `"a"`, "", `"a"`, ""},
		"one of several":             {`"b", "a"`, `"a"`, "", `"a"`, ""},
		"another tag":                {`"b"`, `"a"`, "", `W/"a"`, ""},
		"a weak one":                 {`"b"`, `W/"a"`, "", `W/"a"`, ""},
		"none":                       {`"b"`, "", "", "", ""},
		"that varies":                {`"a"`, `"a"`, "Accept", `"a"`, "Accept, Accept-Encoding"},
		"that varies by all":         {`"a"`, `"a"`, "*", `"a"`, "*"},
	} {
		r := &http.Request{Method: http.MethodGet, Header: http.Header{"If-None-Match": {tt.asked}}}
		resp := &http.Response{StatusCode: http.StatusNotModified, Header: http.Header{}}
		for field, value := range map[string]string{"Etag": tt.tag, "Vary": tt.vary} {
			if value != "" {
				resp.Header[field] = []string{value}
			}
		}
		fields := len(resp.Header)
		if coded := new(Compressor).Response(r, resp, "gzip"); !coded || len(resp.Header) != fields || resp.Header.Get("Etag") != tt.wantTag ||
			strings.Join(resp.Header["Vary"], ", ") != tt.wantVary {
			t.Errorf("%s: Response() = %v, %v, want Etag %s and Vary %s", name, coded, resp.Header, tt.wantTag, tt.wantVary)
		}
	}
}

func TestCompressibleType(t *testing.T) {
	for s, want := range map[string]bool{"text/html; charset=utf-8": true, "TEXT/CSS": true, "application/json": true, "application/ld+json": true, "image/svg+xml": true,
		"application/wasm": true, "": false, "text": false, "text/event-stream": false, "image/png": false, "application/octet-stream": false, "application/zip": false, "video/mp4": false} {
		if got := compressibleType(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// BenchmarkCoding compresses this project's manual, and all of its pages in one body.
func BenchmarkCoding(b *testing.B) {
	short, err := os.ReadFile("../../OPERATING.md")
	if err != nil {
		b.Fatal(err)
	}
	var all []byte
	for _, name := range []string{"../../*.md", "../../../../*/*.md"} {
		files, _ := filepath.Glob(name)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, text...)
		}
	}
	var c Compressor
	for _, text := range [][]byte{short, all} {
		for _, coding := range Codings() {
			b.Run(fmt.Sprintf("size=%dk/%s", len(text)>>10, coding), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				var n int64
				start := cputime.Used()
				for b.Loop() {
					r := response(bytes.NewReader(text))
					c.Response(get, r, coding)
					n, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
				b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
				b.ReportMetric(float64(n), "B/answer")
				b.ReportMetric(100*float64(n)/float64(len(text)), "%")
			})
		}
	}
}
