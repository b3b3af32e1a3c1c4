package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
)

// TestInterim checks that 1xx responses are passed to the client that sent the request, and not
// stored.
func TestInterim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "final")
		}, "a")
		defer w.close()
		for i, method := range []string{"GET", "GET", "POST"} {
			hints := 0
			tr := &http.Transport{DialContext: w.net.dial, DisableKeepAlives: true}
			ctx := traceHints(t.Context(), &hints)
			req, _ := http.NewRequestWithContext(ctx, method, "http://peer-a:3128/x", nil)
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if want := []int{1, 0, 1}[i]; hints != want || string(b) != "final" || resp.Header.Get("Link") != "" {
				t.Errorf("request %d: %d hints, %q, Link %q", i, hints, b, resp.Header.Get("Link"))
			}
			synctest.Wait()
		}
	})
}

// TestInterimLeavesOurFields checks that a 1xx response does not remove the proxy's own fields from
// the final response.
func TestInterimLeavesOurFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, "final")
		}, "a")
		defer w.close()
		conn := w.dial("a")
		defer conn.Close()
		fmt.Fprint(conn, "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
		from := bufio.NewReader(conn)
		for { // ends with the answer
			resp, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode == http.StatusOK {
				if !resp.Close {
					t.Error("the connection stays open after a request whose end is not certain")
				}
				return
			}
		}
	})
}
