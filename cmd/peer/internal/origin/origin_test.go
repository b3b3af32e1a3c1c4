package origin

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

func body(t *testing.T, target string, size int64) []byte {
	t.Helper()
	b, err := io.ReadAll(NewContent(target, size))
	if err != nil || int64(len(b)) != size {
		t.Fatalf("ReadAll = %d bytes, %v, want %d", len(b), err, size)
	}
	return b
}

func TestContent(t *testing.T) {
	for _, size := range []int64{0, 1, 7, 8, 9, 1000, 100_003} {
		if err := iotest.TestReader(NewContent("/a", size), body(t, "/a", size)); err != nil {
			t.Errorf("Content of %d bytes: %v", size, err)
		}
	}
	if a, b := body(t, "/a", 64), body(t, "/b", 64); bytes.Equal(a[:8], b[:8]) || bytes.Equal(a[:8], a[8:16]) {
		t.Error("bodies repeat themselves")
	}
	if !bytes.Equal(body(t, "/a", 50), body(t, "/a", 64)[:50]) {
		t.Error("a body's bytes depend on its size")
	}
}

func TestCheck(t *testing.T) {
	right := body(t, "/a", 10_000)
	wrong := bytes.Clone(right)
	wrong[7_777]++
	buf := make([]byte, 4096)
	for name, c := range map[string]struct {
		body io.Reader
		want string // "" = the body is right
	}{
		"right":      {bytes.NewReader(right), ""},
		"in bits":    {iotest.OneByteReader(bytes.NewReader(right)), ""},
		"data+EOF":   {iotest.DataErrReader(bytes.NewReader(right)), ""},
		"one byte":   {bytes.NewReader(wrong), "wrong between bytes 6144 and 8192"},
		"other's":    {bytes.NewReader(body(t, "/b", 10_000)), "wrong between bytes 0 and"},
		"short":      {bytes.NewReader(right[:9_999]), "ends after 9999 of 10000"},
		"long":       {bytes.NewReader(append(bytes.Clone(right), 0)), "goes on after its 10000"},
		"empty":      {strings.NewReader(""), "ends after 0 of 10000"},
		"broken off": {io.MultiReader(bytes.NewReader(right[:500]), iotest.ErrReader(io.ErrClosedPipe)), "breaks off after 500"},
	} {
		err := Check(c.body, "/a", 10_000, buf)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: Check = %v, want %q", name, err, c.want)
		}
	}
}

func TestHandler(t *testing.T) {
	var fetched []string
	h := &Handler{
		Sizes:   map[string]int64{"/a?x=1": 1000, "/b": 0, "/c%20d": 5, "//": 7},
		Fetched: func(r *http.Request) { fetched = append(fetched, r.URL.RequestURI()) },
	}
	do := func(method, target string, header ...string) *http.Response {
		r := httptest.NewRequest(method, target, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	for target, size := range h.Sizes {
		answer := do("GET", target)
		if err := Check(answer.Body, target, size, make([]byte, 512)); answer.StatusCode != 200 || err != nil {
			t.Errorf("GET %s = %s, %v", target, answer.Status, err)
		}
		if got := answer.Header.Get("Cache-Control"); got != "public, max-age=86400" {
			t.Errorf("GET %s has Cache-Control %q", target, got)
		}
	}
	answer := do("GET", "/a?x=1", "Range", "bytes=10-19")
	if part, _ := io.ReadAll(answer.Body); answer.StatusCode != 206 || !bytes.Equal(part, body(t, "/a?x=1", 1000)[10:20]) {
		t.Errorf("range request = %s, %x", answer.Status, part)
	}
	if answer := do("GET", "/a?x=1", "If-None-Match", answer.Header.Get("ETag")); answer.StatusCode != 304 {
		t.Errorf("conditional request = %s, want 304", answer.Status)
	}
	if answer := do("HEAD", "/a?x=1"); answer.ContentLength != 1000 {
		t.Errorf("HEAD has length %d, want 1000", answer.ContentLength)
	}
	if h.Requests() != 7 || h.Bytes() != 1022 || len(fetched) != 7 {
		t.Errorf("%d requests with %d bytes and %d calls of Fetched, want 7 with 1022 and 7", h.Requests(), h.Bytes(), len(fetched))
	}
	if answer := do("GET", "/none"); answer.StatusCode != 404 {
		t.Errorf("unknown object = %s, want 404", answer.Status)
	}
	if answer := do("POST", "/b"); answer.StatusCode != 405 {
		t.Errorf("POST = %s, want 405", answer.Status)
	}
	if h.Requests() != 7 {
		t.Error("requests that no object answers are counted")
	}
}
