package engine

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A slice was fetched ahead, stored, and evicted at once, as in a store that large objects turn over; its fetch may still be
// joined for a moment, but nobody can follow its body any more. An answer that needs the slice fetches it itself.
func TestRestJoinsNoFetchThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10*sliceLength + 12345
		w := newSliceWorld(t, size, "a")
		defer w.close()
		c := w.caches["a"]
		var over *fetch
		w.answered = func(r *http.Request, _ *http.Response) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, f := range c.fetches {
				if r.Header.Get("Range") == "bytes=1048576-2097151" {
					over = f
				}
			}
		}
		w.get("a", "Range: bytes=0-0")
		synctest.Wait()
		w.get("a", "Range: bytes=1048576-1048576")
		synctest.Wait()
		if over == nil || !over.delivered() {
			t.Fatal("no fetch of the second slice")
		}
		for key := range c.store.Keys() {
			if o, ok := c.store.Peek(key); ok && key == over.result.id {
				c.store.DeleteObject(o)
			}
		}
		w.answered = nil
		c.mu.Lock()
		c.fetches[over.key] = over
		c.mu.Unlock()
		rec, res := w.get("a")
		w.wantPart(rec, res, 0, size)
	})
}

// The same for a whole response that was stored, and has left the store since.
func TestRestJoinsNoFetchWhoseObjectIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := content(1, 700_000)
		var c *Cache
		var over *fetch
		w := newCluster(t, func(w http.ResponseWriter, r *http.Request, n int) {
			c.mu.Lock()
			for _, f := range c.fetches {
				over = f
			}
			c.mu.Unlock()
			w.Header().Set("Cache-Control", "max-age=600")
			w.Write(body)
		})
		defer w.close()
		c = w.start("a", t.TempDir()).Cache
		w.get("a", "/x")
		synctest.Wait()
		q, held, sums := begun(t, c)
		c.store.DeleteObject(held.obj)
		over.result = &result{entry: held.entry, obj: held, id: q.plain}
		c.mu.Lock()
		c.fetches[q.plain] = over
		c.mu.Unlock()
		got := httptest.NewRecorder()
		const sent = 458_752
		res := c.restOf(got, &q, held.entry, held.obj.Size(), rfc9111.Part{Length: int64(len(body))}, Result{Bytes: sent, Err: io.ErrUnexpectedEOF}, sums).goOn()
		if res.Err != nil || !bytes.Equal(got.Body.Bytes(), body[sent:]) {
			t.Errorf("%d bytes of %d: %v", got.Body.Len(), len(body)-sent, res.Err)
		}
	})
}
