package engine

import (
	"bytes"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// A purge of a large object, by URL, prefix or soft, is for the requests that come after it: the downloads under way end with
// the version with which they began, whether the origin has another one by then or not.
func TestPurgeCutsNoDownload(t *testing.T) {
	const size = 20*sliceLength + 5
	for name, purge := range map[string]func(c *Cache){
		"by URL":     func(c *Cache) { c.Purge(TargetOf("http://origin.test/x")) },
		"by prefix":  func(c *Cache) { c.Purge(below("http://origin.test/")) },
		"everywhere": func(c *Cache) { c.Invalidated(TargetOf("http://origin.test/x")) },
		"by another download": func(c *Cache) {
			r := httptest.NewRequest("GET", "http://origin.test/x", nil)
			r.Header.Set("Cache-Control", "no-cache")
			c.Serve(httptest.NewRecorder(), r)
		},
	} {
		for _, replaced := range []bool{true, false} {
			if !replaced && testing.Short() { // with the race detector
				continue
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newSliceWorld(t, size, "a")
					defer w.close()
					w.get("a")
					synctest.Wait()
					old := w.body
					rec := &purgingClient{ResponseRecorder: httptest.NewRecorder(), after: 3 * sliceLength, purge: func() {
						if w.mu.Lock(); replaced {
							w.tag, w.body = `"2"`, content(7, size)
						}
						w.mu.Unlock()
						purge(w.caches["a"])
					}}
					res := w.caches["a"].Serve(rec, httptest.NewRequest("GET", "http://origin.test/x", nil))
					if res.Err != nil || !bytes.Equal(rec.Body.Bytes(), old) {
						t.Errorf("replaced %v: %d bytes of %d, right so far %v, %v", replaced, rec.Body.Len(), size, bytes.HasPrefix(old, rec.Body.Bytes()), res.Err)
					}
					then, _ := w.get("a")
					if !bytes.Equal(then.Body.Bytes(), w.body) {
						t.Errorf("replaced %v: then %d bytes, the old ones %v", replaced, then.Body.Len(), bytes.HasPrefix(old, then.Body.Bytes()))
					}
					if n := len(w.caches["a"].kept.rests); n > 0 {
						t.Errorf("slices are kept for %d answers that are over", n)
					}
				})
			})
		}
	}
}

// A purgingClient purges when it has so many bytes.
type purgingClient struct {
	*httptest.ResponseRecorder
	after int
	purge func()
}

func (c *purgingClient) Write(p []byte) (int, error) {
	if c.after -= len(p); c.after < 0 && c.purge != nil {
		purge := c.purge
		c.purge = nil
		purge()
	}
	return c.ResponseRecorder.Write(p)
}
