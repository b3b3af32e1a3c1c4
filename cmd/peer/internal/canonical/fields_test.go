package canonical

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	fields := NewFields([]string{"x_api_version", "X-Original-URL"})
	for _, c := range []struct {
		name, method  string
		body, trusted bool
		in            string // names, or "name: value", separated by " | "
		kept          string // names
	}{
		{"usual ones", "GET", false, false, "Accept: a/b | Cookie | X-Custom | If-None-Match", "Accept Cookie If-None-Match X-Custom"},
		{"underscores", "POST", true, false, "X_forwarded_host | Content_length | X.y | X~y | X-Y", "X-Y"},
		{"host, scheme, path, client", "GET", false, false, "X-Host | Front-End-Https | X-Rewrite-Url | X-Real-Ip | Proxy | X-Forwarded-Anything | X-Forwarded | Forwarded-For | X-Original-Method", ""},
		{"of a stranger", "GET", false, false, "X-Forwarded-For | X-Forwarded-Proto | X-Forwarded-Host | Forwarded", ""},
		{"of a trusted proxy", "GET", false, true, "X-Forwarded-For | X-Forwarded-Proto | X-Forwarded-Host | Forwarded | X-Forwarded-Port | X-Real-Ip",
			"Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto"},
		{"another method", "GET", false, false, "X-Http-Method-Override", ""},
		{"another method of a POST", "POST", true, false, "X-Http-Method-Override", "X-Http-Method-Override"},
		{"kept by a setting", "GET", false, false, "X_api_version | X_other | X-Original-Url | X-Original-Uri", "X-Original-Url X_api_version"},
		{"of the connection", "GET", false, false, "Connection: x-a, close | X-A | Keep-Alive | Te | Upgrade | X-B", "X-B"},
		{"of the connection without being named", "GET", false, false, "Proxy-Authentication-Info | Proxy-Connection | X-A", "X-A"},
		{"no options of the connection", "GET", false, false, "Connection: cache-control, Via, Cookie | Cache-Control | Via | Cookie", "Cache-Control Via"},
		{"no preference", "GET", false, false, "Accept-Language | Accept-Language:  , | Accept | Accept-Encoding", "Accept-Encoding"},
		{"trailers for a GET", "GET", false, false, "Te: trailers", ""},
		{"trailers for a POST", "POST", true, false, "Te: Trailers | Connection: Te | X-A", "Te X-A"},
		{"other codings for a POST", "POST", true, false, "Te: gzip", ""},
		{"expectation with a body", "PUT", true, false, "Expect: 100-continue", "Expect"},
		{"expectation without", "GET", false, false, "Expect: 100-continue", ""},
		{"content", "GET", false, false, "Content-Encoding: x | Content-Type: a/b | Content-Length: 0", ""},
		{"content of a POST", "POST", false, false, "Content-Encoding: x | Content-Type: a/b", "Content-Encoding Content-Type"},
		{"content of a GET with a body", "GET", true, false, "Content-Encoding: x | Content-Type: a/b", "Content-Encoding Content-Type"},
		{"range", "GET", false, false, "Range: bytes=0-0,5-,-3 | If-Range", "If-Range Range"},
		{"range in another case", "GET", false, false, "Range: Bytes = 1-2", "Range"},
		{"beyond every number", "GET", false, false, "Range: bytes=99999999999999999999-100000000000000000000", "Range"},
		{"two lines", "GET", false, false, "Range: bytes=0-0 | Range: bytes=1-1", ""},
		{"another unit", "GET", false, false, "Range: items=0-0", ""},
		{"no unit", "HEAD", false, false, "Range: cow", ""},
		{"no range", "GET", false, false, "Range: bytes=", ""},
		{"backwards", "GET", false, false, "Range: bytes=5-4", ""},
		{"backwards, padded", "GET", false, false, "Range: bytes=0010-9", ""},
		{"no number", "GET", false, false, "Range: bytes=a-b", ""},
		{"one number", "GET", false, false, "Range: bytes=5", ""},
		{"only a dash", "GET", false, false, "Range: bytes=-", ""},
		{"one of several is none", "GET", false, false, "Range: bytes=0-0,x", ""},
		{"of another method", "POST", true, false, "Range: items=0-0", "Range"},
	} {
		h, size := http.Header{}, 0
		for field := range strings.SplitSeq(c.in, " | ") {
			name, value, _ := strings.Cut(field, ": ")
			h[name] = append(h[name], value)
			size += len(name) + len(value) + 4
		}
		before := h.Clone()
		got, n := fields.Clean(h, c.method, c.body, c.trusted)
		if kept := strings.Join(slices.Sorted(maps.Keys(got)), " "); kept != c.kept || n != size {
			t.Errorf("%s: Clean keeps %q of %d bytes, want %q of %d", c.name, kept, n, c.kept, size)
		}
		if !maps.EqualFunc(h, before, slices.Equal) {
			t.Errorf("%s: Clean changed the header to %v", c.name, h)
		}
		if again, _ := fields.Clean(got, c.method, c.body, c.trusted); len(again) != len(got) {
			t.Errorf("%s: cleaned twice: %v", c.name, again)
		}
	}
}

func BenchmarkClean(b *testing.B) {
	fields := NewFields(nil)
	h := http.Header{"Accept": {"*/*"}, "User-Agent": {"x"}, "Accept-Encoding": {"gzip, br"}, "Accept-Language": {"en"}, "Cookie": {"a=b"}}
	b.ReportAllocs()
	for b.Loop() {
		fields.Clean(h, "GET", false, false)
	}
}
