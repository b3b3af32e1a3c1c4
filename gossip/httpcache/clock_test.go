package httpcache

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/memstore"
)

// TestAgeOfRelayed: what is passed on without being stored has aged on its way: the header took a time, and so did the
// first byte.
func TestAgeOfRelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestMember(t, "c", nil, memstore.Open(64<<10))
		for _, age := range []string{"3", ""} {
			body, first := io.Pipe()
			c := m.Transport(roundTripFunc(func(r *http.Request) (*http.Response, error) {
				time.Sleep(2 * time.Second)
				go func() {
					time.Sleep(5 * time.Second)
					io.WriteString(first, "x")
					first.Close()
				}()
				h := http.Header{"Cache-Control": {"no-store"}}
				if age != "" {
					h.Set("Age", age)
				}
				return &http.Response{StatusCode: 200, Header: h, Body: body, ContentLength: 1, Request: r}, nil
			}))
			resp, err := c.RoundTrip(httptest.NewRequest("GET", "http://o.test/x", nil))
			if err != nil {
				t.Fatal(err)
			}
			io.ReadAll(resp.Body)
			if want := map[string]string{"3": "10"}[age]; resp.Header.Get("Age") != want {
				t.Errorf("Age %q is passed on as %q, want %q", age, resp.Header.Get("Age"), want)
			}
		}
	})
}
