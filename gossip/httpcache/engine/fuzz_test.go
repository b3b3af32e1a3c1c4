package engine

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// FuzzEntry: any data decodes to an entry or an error, and an entry
// is the same after it is encoded and decoded again.
func FuzzEntry(f *testing.F) {
	received := moment{time.Unix(1e9+1, 0), 77, time.Hour}
	e := newEntry(rfc9111.NewResponse(200, http.Header{"Cache-Control": {"max-age=60"}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "X-A": {"1", "2"}},
		time.Second, received.wall), received, []string{"1.1 a"})
	f.Add(e.encode(new(bytes.Buffer)))
	f.Add([]byte("2 200 0 0 0 0\r\n\r\n"))
	f.Add([]byte("1 200 0 0 0\r\n\r\n"))
	e.given = &given{by: "b", at: received, left: time.Hour}
	f.Add(e.encode(new(bytes.Buffer)))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeEntry(data, []string{"1.1 a"})
		if err != nil {
			return
		}
		again, err := decodeEntry(e.encode(new(bytes.Buffer)), []string{"1.1 a"})
		if err != nil {
			t.Fatalf("%q: %v", e.encode(new(bytes.Buffer)), err)
		}
		if again.Status != e.Status || again.Lifetime != e.Lifetime || again.InitialAge != e.InitialAge || !again.received.wall.Equal(e.received.wall) || again.received.steady != e.received.steady || again.received.clock != e.received.clock {
			t.Fatalf("%+v, then %+v", e, again)
		}
		if (e.given == nil) != (again.given == nil) || e.given != nil && (again.given.by != e.given.by || again.given.left != e.given.left ||
			again.given.at.clock != e.given.at.clock || again.given.at.steady != e.given.at.steady || !again.given.at.wall.Equal(e.given.at.wall)) {
			t.Fatalf("given %+v, then %+v", e.given, again.given)
		}
	})
}
