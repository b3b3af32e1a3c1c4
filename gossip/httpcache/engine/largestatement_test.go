package engine

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestLargeStatement checks a statement with more checksums than fit into the server's buffer:
// nothing of it is left on the connection after the answer.
func TestLargeStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 40 << 20
		body := content(1, size)
		w := newCluster(t, func(rw http.ResponseWriter, r *http.Request, n int) {
			rw.Header().Set("Cache-Control", "max-age=1000")
			rw.Header().Set("Content-Length", strconv.Itoa(size))
			rw.Write(body)
		})
		w.tune = func(c *peerConfig) { c.Store.MaxBytes = 1 << 30 }
		w.start("a", t.TempDir())
		defer w.close()
		c := w.dial("a")
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		in := bufio.NewReader(c)
		for i, directive := range []string{"max-stale", "only-if-cached", "only-if-cached", "only-if-cached"} {
			fmt.Fprintf(c, "GET http://%s/x HTTP/1.1\r\nHost: %s\r\nCache-Control: %s\r\n\r\n", originHost, originHost, directive)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if said := len(resp.Header.Get("Summarycache-Body")); n != size || err != nil || resp.StatusCode != 200 || said > 4096 != (i > 0) {
				t.Fatalf("answer %d: %s, %d bytes, %v, %d bytes of sums", i, resp.Status, n, err, said)
			}
			synctest.Wait()
		}
	})
}
