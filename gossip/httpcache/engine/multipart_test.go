package engine

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
)

// Several ranges of a stored object are the parts of one answer. Others than ascending ones give the whole, and so do
// more than 256, or so many that the answer would be longer than the body.
func TestSeveralRanges(t *testing.T) {
	body := content(1, 100_000)
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
			rw.Header().Set("Cache-Control", "max-age=60")
			rw.Header().Set("Etag", `"a"`)
			rw.Header().Set("Content-Digest", "sha-256=:AAAA:")
			rw.Header().Set("Content-Type", "text/x")
			rw.Write(body)
		}, "a")
		defer w.close()
		w.get("a", "/x")
		synctest.Wait()
		many := func(n, every int) (ranges string, want []string) {
			for at := 0; at < n*every; at += every {
				ranges += fmt.Sprintf("%d-%d,", at, at)
				want = append(want, fmt.Sprintf("bytes %d-%d/100000", at, at))
			}
			return ranges[:len(ranges)-1], want
		}
		dnf, parts := many(256, 300)
		tooMany, _ := many(257, 300)
		for _, c := range []struct {
			ranges string
			want   []string
		}{
			{"0-9,100-109", []string{"bytes 0-9/100000", "bytes 100-109/100000"}},
			{"0-9, 70000-, 200000-", []string{"bytes 0-9/100000", "bytes 70000-99999/100000"}},
			{"5-9,-1", []string{"bytes 5-9/100000", "bytes 99999-99999/100000"}},
			{"100-109,0-9", nil},
			{"0-9,5-20", nil},
			{"0-9,x", nil},
			{dnf, parts},
			{tooMany, nil},
		} {
			r := w.get("a", "/x", "Range: bytes="+c.ranges)
			if c.want == nil {
				if r.StatusCode != 200 || r.body != string(body) {
					t.Errorf("%s: %d, %d bytes", c.ranges, r.StatusCode, len(r.body))
				}
				continue
			}
			kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
			if r.StatusCode != 206 || r.err != nil || kind != "multipart/byteranges" || r.Header.Get("Content-Length") != strconv.Itoa(len(r.body)) ||
				r.Header["Content-Range"] != nil || r.Header["Content-Digest"] != nil {
				t.Errorf("%s: %d, %v, %v", c.ranges, r.StatusCode, r.Header, r.err)
				continue
			}
			parts := multipart.NewReader(bytes.NewReader([]byte(r.body)), params["boundary"])
			for _, want := range c.want {
				p, err := parts.NextRawPart()
				if err != nil {
					t.Errorf("%s: %v", c.ranges, err)
					break
				}
				got, err := io.ReadAll(p)
				span := (&answer{status: 206, header: http.Header{"Content-Range": {want}}})
				first, end, _ := span.span()
				if err != nil || p.Header.Get("Content-Range") != want || p.Header.Get("Content-Type") != "text/x" || !bytes.Equal(got, body[first:end]) {
					t.Errorf("%s: %v, %d bytes, %v", c.ranges, p.Header, len(got), err)
				}
			}
			if _, err := parts.NextRawPart(); err != io.EOF {
				t.Errorf("%s: then %v", c.ranges, err)
			}
		}
	})
}
