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

// A body without a length in HTTP/1.0 is refused, and not taken for an empty one.
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

// An origin's response with both Content-Length and Transfer-Encoding, which RFC 9112 section 6.3 wants handled as an
// error, is refused, and so are two lengths and unknown codings. No byte of it is taken for the response to another
// request.
func TestOriginsAnswersOfTwoLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]string{
			"/short":  "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"/long":   "Transfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"/hidden": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhidden",
			"/differ": "Content-Length: 5\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"/coded":  "Content-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"/twice":  "Content-Length: 5\r\nTransfer-Encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"/lines":  "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			"/next":   "Content-Length: 4\r\n\r\nnext",
		}
		w := newWorld(t, true, nil, "a")
		w.servers[0].Close()
		l := w.net.listen(originHost + ":80")
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					for in := bufio.NewReader(c); ; {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						io.WriteString(c, "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"+answers[r.URL.Path])
					}
				}()
			}
		}()
		defer w.close()
		for _, row := range []struct {
			path   string
			status int
			body   string
		}{{"/short", 502, ""}, {"/long", 502, ""}, {"/hidden", 502, ""}, {"/differ", 502, ""}, {"/coded", 502, ""}, {"/twice", 502, ""}, {"/lines", 502, ""}} {
			for _, way := range []string{"fwd=uri-miss", "hit"} {
				r := w.get("a", row.path)
				synctest.Wait()
				if r.StatusCode != row.status || row.status == 200 && (r.body != row.body || r.err != nil || !strings.Contains(r.status(), way)) {
					t.Errorf("%s: %s, %q, %v, %v", row.path, r.Status, r.body, r.Header, r.err)
				}
				if way == "hit" && row.status == 200 && r.ContentLength != int64(len(row.body)) {
					t.Errorf("%s is kept with a length of %d", row.path, r.ContentLength)
				}
				if r := w.get("a", "/next", "Cache-Control: no-cache"); r.body != "next" || r.StatusCode != 200 {
					t.Errorf("after %s: %s, %q", row.path, r.Status, r.body)
				}
			}
		}
	})
}
