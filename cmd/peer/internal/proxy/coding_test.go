package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

var prose = strings.Repeat("What is said once is kept once, whatever it is asked for by. ", 500)

// compressing starts peers that compress what an origin sends.
func compressing(t *testing.T, origin func(http.ResponseWriter, *http.Request, int), peers ...string) *world {
	w := newWorld(t, true, origin)
	w.tune = func(c *Config) { c.Rules = rules.Set{{Name: "compress", Compress: []string{"zstd", "gzip"}}} }
	for _, name := range peers {
		w.start(name, t.TempDir())
	}
	return w
}

// plain is the body of a reply without its coding.
func plain(t *testing.T, r reply) string {
	t.Helper()
	var from io.Reader = strings.NewReader(r.body)
	var err error
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "zstd":
		from, err = zstd.NewReader(from)
	case "gzip":
		from, err = gzip.NewReader(from)
	case "":
	default:
		t.Fatalf("Content-Encoding: %s", coding)
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(from)
	if err != nil {
		t.Fatalf("the body cannot be decoded: %v", err)
	}
	return string(body)
}

func text(w http.ResponseWriter, r *http.Request, n int) {
	h := w.Header()
	h.Set("Cache-Control", "max-age=60")
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Etag", `"abc"`)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", strconv.Itoa(len(prose)))
	if r.Method != http.MethodHead {
		io.WriteString(w, prose)
	}
}

// An uncompressed response reaches each client in its best coding, is compressed once for each
// coding, and is found at siblings.
func TestCompressedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := compressing(t, text, "a", "b")
		defer w.close()
		asked := 0
		for _, c := range []struct{ accept, coding string }{
			{"gzip", "gzip"}, {"deflate, gzip", "gzip"}, {"gzip, deflate, br", "gzip"}, {"br;q=1.0, gzip;q=0.8, *;q=0.1", "zstd"},
			{"gzip, deflate, br, zstd", "zstd"}, {"zstd", "zstd"}, {"identity", ""}, {"", ""}, {"br", ""}, {"gzip;q=0", ""},
		} {
			var fields []string
			if c.accept != "" {
				fields = []string{"Accept-Encoding: " + c.accept}
			}
			for _, peer := range []string{"a", "b", "a"} {
				r := w.get(peer, "/x", fields...)
				synctest.Wait()
				if got := plain(t, r); got != prose || r.StatusCode != 200 || r.err != nil {
					t.Errorf("%s at %s: %d, %d bytes, %v, %v", c.accept, peer, r.StatusCode, len(got), r.Header, r.err)
				}
				tag := `"abc"`
				if c.coding != "" {
					tag = `W/"abc"`
					if len(r.body) > len(prose)/10 {
						t.Errorf("%s: %d bytes of %d", c.accept, len(r.body), len(prose))
					}
				}
				hit := strings.Contains(r.status(), "; hit") && !strings.Contains(r.status(), "recoded") // which has no length yet
				if r.Header.Get("Content-Encoding") != c.coding || r.Header.Get("Vary") != "Accept-Encoding" || r.Header.Get("Etag") != tag ||
					(r.Header.Get("Accept-Ranges") != "") != (c.coding == "") || hit && peer == "a" && r.ContentLength != int64(len(r.body)) {
					t.Errorf("%s at %s: %v, Content-Length %d", c.accept, peer, r.Header, r.ContentLength)
				}
			}
			if r := w.do("a", "HEAD", "/x", "", fields...); r.ContentLength < 0 || r.Header.Get("Content-Encoding") != c.coding || !strings.Contains(r.status(), "; hit") {
				t.Errorf("HEAD, %s: %v", c.accept, r.Header)
			}
			for _, tag := range []string{`"abc"`, `W/"abc"`} { // whichever variant the client has
				if r := w.get("a", "/x", append(fields, "If-None-Match: "+tag)...); r.StatusCode != 304 {
					t.Errorf("%s with %s: %s", c.accept, tag, r.Status)
				}
			}
			if r := w.get("a", "/x", append(fields, "If-None-Match: \"old\"")...); r.StatusCode != 200 {
				t.Errorf("%s with another tag: %s", c.accept, r.Status)
			}
			if n := w.origin.count() - asked; n > 1 || c.accept == "gzip" && n != 1 {
				t.Errorf("%s: the origin got %d requests", c.accept, n)
			}
			asked = w.origin.count()
		}
		if asked != 1 {
			t.Errorf("the origin got %d requests, want 1 for all codings and the uncompressed body", asked)
		}
		// A range is of the uncompressed bytes.
		for _, fields := range [][]string{{"Range: bytes=5-14"}, {"Range: bytes=5-14", "Accept-Encoding: gzip"}, {"Range: bytes=5-14", "Accept-Encoding: gzip", `If-Range: "abc"`}} {
			if r := w.get("a", "/x", fields...); r.StatusCode != 206 || r.body != prose[5:15] || r.Header.Get("Content-Encoding") != "" {
				t.Errorf("%q: %s, %q, %v", fields, r.Status, r.body, r.Header)
			}
		}
		if r := w.get("a", "/x", "Range: bytes=5-14", "Accept-Encoding: gzip", `If-Range: W/"abc"`); r.StatusCode != 200 || plain(t, r) != prose {
			t.Errorf("a range of a compressed response: %s, %v", r.Status, r.Header)
		}
		if r := w.get("a", "/x", "Cache-Control: no-transform", "Accept-Encoding: gzip"); r.body != prose {
			t.Errorf("no-transform of the client: %v", r.Header)
		}
		e, said, err := w.peers["a"].Explain("GET", "/x", http.Header{"Accept-Encoding": {"gzip, br"}})
		if err != nil || len(e.Stored) != 3 || len(said) != 1 || said[0].What != "compress gzip" || said[0].Rule != "compress" {
			t.Errorf("Explain: %+v, %v, %v", e, said, err)
		}
		if n, err := purge(w.peers["a"], "/x", false); n != 3 || err != nil {
			t.Errorf("Purge = %d, %v", n, err)
		}
	})
}

// A response that must not be compressed, or does not gain by it, is the same object for all.
func TestNotCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := map[string]struct {
			status int
			fields []string
			length int
			want   string // Content-Encoding
			vary   string
		}{
			"text":            {200, []string{"Content-Type: text/plain"}, 1000, "gzip", "Accept-Encoding"},
			"api":             {200, []string{"Content-Type: application/problem+json"}, 1000, "gzip", "Accept-Encoding"},
			"varying":         {200, []string{"Content-Type: text/plain", "Vary: X-A"}, 1000, "gzip", "X-A, Accept-Encoding"},
			"varying already": {200, []string{"Content-Type: text/plain", "Vary: accept-encoding"}, 1000, "gzip", "accept-encoding"},
			"not found":       {404, []string{"Content-Type: text/html"}, 1000, "gzip", "Accept-Encoding"},
			"just long":       {200, []string{"Content-Type: text/plain"}, 256, "gzip", "Accept-Encoding"},
			"short":           {200, []string{"Content-Type: text/plain"}, 255, "", ""},
			"picture":         {200, []string{"Content-Type: image/png"}, 1000, "", ""},
			"no type":         {200, nil, 1000, "", ""},
			"no-transform":    {200, []string{"Content-Type: text/plain", "Cache-Control: max-age=60, No-Transform"}, 1000, "", ""},
			"coded":           {200, []string{"Content-Type: text/plain", "Content-Encoding: br"}, 1000, "br", ""},
			"events":          {200, []string{"Content-Type: text/event-stream"}, 1000, "", ""},
			"digest":          {200, []string{"Content-Type: text/plain", "Repr-Digest: sha-256=:AA==:"}, 1000, "", ""},
			"redirect":        {301, []string{"Content-Type: text/html", "Location: /y"}, 1000, "", ""},
			"part":            {206, []string{"Content-Type: text/plain", "Content-Range: bytes 0-999/2000"}, 1000, "", ""},
		}
		w := compressing(t, func(w http.ResponseWriter, r *http.Request, n int) {
			row := rows[strings.ReplaceAll(r.URL.Path[1:], "_", " ")]
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header()["Content-Type"] = nil
			for _, f := range row.fields {
				name, value, _ := strings.Cut(f, ": ")
				w.Header().Set(name, value)
			}
			w.Header().Set("Content-Length", strconv.Itoa(row.length))
			w.WriteHeader(row.status)
			if r.Method != http.MethodHead {
				io.WriteString(w, strings.Repeat("a", row.length))
			}
		}, "a")
		defer w.close()
		for name, row := range rows {
			for _, method := range []string{"HEAD", "GET"} { // told alike
				r := w.do("a", method, "/"+strings.ReplaceAll(name, " ", "_"), "", "Accept-Encoding: gzip")
				synctest.Wait()
				if got := strings.Join(r.Header["Vary"], ", "); r.StatusCode != row.status || r.Header.Get("Content-Encoding") != row.want || got != row.vary {
					t.Errorf("%s of %s: %s, %v", method, name, r.Status, r.Header)
				}
				if (r.ContentLength == int64(row.length)) == (row.want == "gzip") {
					t.Errorf("%s of %s: Content-Length %d", method, name, r.ContentLength)
				}
			}
		}
	})
}

// A compressed copy is validated by the origin's own validator.
func TestCompressedIsValidated(t *testing.T) {
	for name, validator := range map[string][2]string{"tag": {"Etag", `"abc"`}, "date": {"Last-Modified", "Thu, 01 Jan 1998 00:00:00 GMT"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := compressing(t, func(w http.ResponseWriter, r *http.Request, n int) {
					h := w.Header()
					h.Set("Cache-Control", "max-age=5")
					h.Set(validator[0], validator[1])
					h.Set("Vary", "X-A")
					asked := r.Header.Get("If-None-Match")
					if strings.TrimPrefix(asked, "W/") == validator[1] || asked == "" && r.Header.Get("If-Modified-Since") == validator[1] {
						w.WriteHeader(http.StatusNotModified)
						return
					}
					h.Set("Content-Type", "text/plain")
					io.WriteString(w, prose)
				}, "a")
				defer w.close()
				for i, field := range []string{"Accept-Encoding: gzip", "Accept-Encoding: identity"} {
					asked := w.origin.count()
					first := w.get("a", "/x", field)
					if got := strings.Contains(first.status(), "a; hit"); got != (i == 1) { // by what a Range below brought
						t.Errorf("%s: %s", field, first.status())
					}
					time.Sleep(10 * time.Second)
					again := w.get("a", "/x", field)
					synctest.Wait()
					if n := w.origin.count() - asked; n != 2-i || !strings.Contains(again.status(), "fwd-status=304") {
						t.Errorf("%s: %d requests, %v", field, n, again.Header)
					}
					for _, r := range []reply{first, again, w.get("a", "/x", field)} {
						tag := r.Header.Get("Etag")
						if plain(t, r) != prose || strings.HasPrefix(tag, `W/"`) != (i == 0) || strings.Join(r.Header["Vary"], ", ") != "X-A, Accept-Encoding" {
							t.Errorf("%s: %v", field, r.Header)
						}
						if tag != "" && w.get("a", "/x", field, "If-None-Match: "+tag).StatusCode != 304 {
							t.Errorf("%s: 200 for its own tag %s", field, tag)
						}
					}
					// A date is not a strong validator: another peer may have compressed to other bytes.
					if r := w.get("a", "/x", "Accept-Encoding: gzip", "Range: bytes=3-", "If-Range: "+validator[1]); i == 0 && r.StatusCode == 206 && r.Header.Get("Content-Encoding") != "" {
						t.Errorf("a range of a compressed response: %v", r.Header)
					}
					synctest.Wait()
				}
			})
		})
	}
}

// A body is compressed while it arrives: when the origin pauses, everything received so far is
// passed on.
func TestCompressedAsItComes(t *testing.T) {
	for _, coding := range []string{"zstd", "gzip"} {
		t.Run(coding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := compressing(t, func(w http.ResponseWriter, r *http.Request, n int) {
					w.Header().Set("Content-Type", "text/html")
					w.Header().Set("Cache-Control", "max-age=60")
					for i := range 3 {
						fmt.Fprintf(w, "part %d\n", i)
						w.(http.Flusher).Flush()
						time.Sleep(5 * time.Second)
					}
				}, "a")
				defer w.close()
				conn := w.dial("a")
				defer conn.Close()
				start := time.Now()
				go io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: "+originHost+"\r\nAccept-Encoding: "+coding+"\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				var from io.Reader
				if coding == "zstd" {
					from, err = zstd.NewReader(resp.Body, zstd.WithDecoderConcurrency(1))
				} else {
					from, err = gzip.NewReader(resp.Body)
				}
				if err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewReader(from)
				for i := range 3 {
					line, err := lines.ReadString('\n')
					if took := time.Since(start).Round(time.Second); err != nil || line != fmt.Sprintf("part %d\n", i) || took != time.Duration(i)*5*time.Second {
						t.Errorf("%q after %v, %v", line, took, err)
					}
				}
				if _, err := lines.ReadByte(); err != io.EOF {
					t.Errorf("the end: %v", err)
				}
			})
		})
	}
}

// A body that breaks off does not look complete and is not stored. It is continued if the origin
// can still supply the rest.
func TestCompressedBreaksOff(t *testing.T) {
	numbers := 200_000
	if testing.Short() { // with the race detector
		numbers = 40_000
	}
	for _, mends := range []bool{false, true} {
		t.Run(fmt.Sprint("mends=", mends), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var long bytes.Buffer
				for i := range numbers {
					fmt.Fprintf(&long, "%x ", i*i)
				}
				w := compressing(t, func(w http.ResponseWriter, r *http.Request, n int) {
					w.Header().Set("Cache-Control", "max-age=60")
					w.Header().Set("Content-Type", "text/plain")
					w.Header().Set("Content-Length", strconv.Itoa(long.Len()))
					if n == 0 || !mends {
						w.Write(long.Bytes()[:long.Len()/2])
						panic(http.ErrAbortHandler)
					}
					w.Write(long.Bytes())
				}, "a")
				defer w.close()
				r := w.get("a", "/x", "Accept-Encoding: gzip")
				if mends {
					if r.err != nil || plain(t, r) != long.String() {
						t.Errorf("%d bytes, %v", len(r.body), r.err)
					}
				} else if r.err == nil {
					t.Errorf("it looks whole: %v, %d bytes", r.Header, len(r.body))
				}
				synctest.Wait()
				if hit := strings.Contains(w.get("a", "/x", "Accept-Encoding: gzip", "Cache-Control: only-if-cached").status(), "a; hit"); hit != mends {
					t.Errorf("it is stored: %v", hit)
				}
			})
		})
	}
}
