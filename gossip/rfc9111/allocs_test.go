//go:build !race

package rfc9111

import (
	"net/http"
	"net/url"
	"testing"
	"time"
)

// TestAllocations: the allocations of the rules for a miss, from NewResponse to Fill.
func TestAllocations(t *testing.T) {
	const most = 5
	request := &http.Request{Method: "GET", Header: header("Accept-Encoding: gzip | User-Agent: x")}
	target, _ := url.Parse("http://origin.test/some/path/of/usual/length")
	response := header(`Cache-Control: public, max-age=60 | Etag: "e" | Date: Thu, 01 Jan 2026 12:00:00 GMT | ` +
		`Last-Modified: Thu, 01 Jan 2026 11:00:00 GMT | Content-Type: text/plain | Content-Length: 1234`)
	answer := make(http.Header, 16)
	got := testing.AllocsPerRun(100, func() {
		cc := RequestDirectives(request.Header)
		id := Identity(CanonicalURL(target), VaryFields(response), request.Header)
		r := NewResponse(200, response, time.Second, noon)
		if id == "" || !r.Storable(&cc, false) || !r.Useful() {
			t.Fatal("it is not stored")
		}
		r.Fill(answer, r.PartFor(request, 1234), r.Age(0), true)
		status := Status{Cache: "a", Fwd: "uri-miss", FwdStatus: 200, Stored: true}
		status.Add(answer)
		delete(answer, "Cache-Status")
	})
	t.Logf("%v allocations", got)
	if got > most {
		t.Errorf("the rules take %v allocations of a miss, want %d at most", got, most)
	}
}
