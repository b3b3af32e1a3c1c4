package engine

import (
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// TestEntryFields: a stored header is served as net/http would write it, except for the fields
// that depend on the time or the request.
func TestEntryFields(t *testing.T) {
	for name, h := range map[string]http.Header{
		"none":       {},
		"usual":      {"Cache-Control": {"max-age=60"}, "Content-Type": {"text/plain"}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Etag": {`"a"`}},
		"several":    {"X-A": {"1", "2", "3"}, "X-B": {""}, "X-C": {"a:b, c"}},
		"left out":   {"Age": {"7"}, "Content-Length": {"5"}, "Via": {"1.1 before"}, rfc9111.ClusterControl: {"max-age=1"}, "X-Age": {"1"}},
		"no-cache":   {"Cache-Control": {`max-age=60, no-cache="set-cookie, x-a"`}, "Set-Cookie": {"a=b", "c=d"}, "X-A": {"1"}, "X-B": {"2"}},
		"odd values": {"X-A": {" padded\t"}, "X-B": {"two\r\nlines"}, "X-C": {"\xff"}},
	} {
		received := moment{time.Unix(1e9+1, 0), 77, time.Hour}
		before := newEntry(rfc9111.NewResponse(203, h, time.Second, received.wall), received, []string{"1.1 a"})
		stored, err := decodeEntry(before.encode(new(bytes.Buffer)), []string{"1.1 a"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for kind, e := range map[string]*entry{"as it came": &before, "from the store": stored} {
			want := http.Header{}
			e.Fill(want, rfc9111.Part{Status: e.Status, Length: -1}, 0, false)
			for _, name := range []string{"Age", rfc9111.ClusterControl} {
				delete(want, name)
			}
			want["Via"] = e.via
			var text bytes.Buffer
			want.Write(&text)
			status, got, _ := strings.Cut(string(e.appendHit(nil, e.Status)), "\r\n")
			if status != "HTTP/1.1 203 Non-Authoritative Information" {
				t.Errorf("%s, %s: %q", name, kind, status)
			}
			if g, w := parse(t, got), parse(t, text.String()); !reflect.DeepEqual(g, w) {
				t.Errorf("%s, %s: %q, want %q", name, kind, g, w)
			}
		}
	}
}

func parse(t *testing.T, fields string) http.Header {
	t.Helper()
	h, _, ok := parseFields(fields + "\r\n")
	if !ok {
		t.Fatalf("%q is no header", fields)
	}
	return h
}

// TestEntryBroken: data that is not a stored response is refused.
func TestEntryBroken(t *testing.T) {
	for _, data := range []string{"", "2 200 0 0 0 0", "2 200 0 0 0 0\r\n", "2 200 0 0 0\r\n\r\n", "2 200 0 0 0 0 0\r\n\r\n", "2 x 0 0 0 0\r\n\r\n", "4 200 0 0 0 0\r\n\r\n",
		"3 200 0 0 0 0 0 0 0 0\r\n\r\n", "1 2 3 4 5 6 7 8 9 10 11 12\r\n\r\n", "2 200 0 0 0 0\r\nA: b\r\n", "2 200 0 0 0 0\r\nA\r\n\r\n", "2 200 0 0 0 0\r\n: b\r\n\r\n",
		"2 200 0 0 0 0\r\nA: b\n\r\n", "2 200 0 0 0 0\r\nA: b\rc\r\n\r\n", "2 200 0 0 0 0\n\r\n\r\n"} {
		if e, err := decodeEntry([]byte(data), nil); err == nil {
			t.Errorf("%q: %+v", data, e)
		}
	}
}
