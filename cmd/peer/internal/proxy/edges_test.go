package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// Whatever responses of a host vary by, siblings do not get cookies with questions, and
// are not asked for what cookies select.
func TestCookiesAreNotForSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Vary", "Cookie")
			io.WriteString(w, r.Header.Get("Cookie"))
		}, "a")
		defer w.close()
		var asked []*http.Request
		w.fakePeer("c", func(rw http.ResponseWriter, r *http.Request) {
			asked = append(asked, r)
			rw.WriteHeader(http.StatusGatewayTimeout)
		})
		for i, path := range []string{"/x", "/y", "/x"} {
			w.claim("c", path)
			for _, cookie := range []string{"Cookie: session=1", "Cookie: session=2"} {
				if r := w.get("a", path, cookie); r.body != strings.TrimPrefix(cookie, "Cookie: ") {
					t.Errorf("%d: %s got %q", i, cookie, r.body)
				}
				synctest.Wait()
			}
		}
		if len(asked) == 0 {
			t.Error("the sibling was never asked")
		}
		for _, r := range asked {
			if r.Header["Cookie"] != nil {
				t.Errorf("asked with %v", r.Header)
			}
		}
	})
}

// A body that HTTP/1.0 cannot have is no empty body.
func TestBodyWithoutLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %d", r.Method, len(body))
		}, "a")
		defer w.close()
		for _, c := range []struct{ request, status, body string }{
			{"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "411 Length Required", ""},
			{"POST /x HTTP/1.0\r\n\r\n", "411 Length Required", ""},
			{"POST /x HTTP/1.0\r\nContent-Length: 0\r\n\r\n", "200 OK", "POST 0"},
			{"POST /x HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", "200 OK", "POST 5"},
			{"DELETE /x HTTP/1.0\r\n\r\n", "200 OK", "DELETE 0"},
			{"PATCH /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "411 Length Required", ""},
			{"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "POST 5"},
			{"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200 OK", "POST 5"},
		} {
			conn, err := w.net.dial(t.Context(), "tcp", "peer-a:3128")
			if err != nil {
				t.Fatal(err)
			}
			go io.WriteString(conn, c.request)
			answers := bufio.NewReader(conn)
			r, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(r.Body)
			if r.Status != c.status || c.body != "" && string(body) != c.body {
				t.Errorf("%q: %s %q, want %s %q", c.request, r.Status, body, c.status, c.body)
			}
			if _, err := answers.ReadByte(); err != io.EOF {
				t.Errorf("%q: the connection goes on: %v", c.request, err)
			}
			conn.Close()
			synctest.Wait()
		}
	})
}
