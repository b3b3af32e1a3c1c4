package engine

import (
	"net/http"
	"testing"
	"testing/synctest"
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
