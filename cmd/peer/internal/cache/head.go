package cache

import (
	"bytes"
	"net/http"
)

// forwardHead passes a HEAD to the origin. Its response may freshen or invalidate the stale response
// that is stored for GET (RFC 9111 section 4.3.5); stored may be nil.
func (c *Cache) forwardHead(w http.ResponseWriter, r *request, stored *found, reason string) Result {
	return c.pass(w, r.Request, reason, func(a *answer) {
		if stored == nil || a.status != http.StatusOK || r.cc.NoStore {
			return
		}
		if stored.entry.MatchesHead(a.header, stored.obj.Size()) {
			c.freshenBy(r, a, stored)
		} else {
			c.store.DeleteObject(stored.obj)
		}
	})
}

// freshenBy updates the stored response as a 304 with the answer's header would.
func (c *Cache) freshenBy(r *request, a *answer, stored *found) {
	e := c.freshened(stored.entry, a)
	if !r.mayStore(e.Response) {
		c.store.DeleteObject(stored.obj)
		return
	}
	c.store.Update(stored.obj, c.meta(e, new(bytes.Buffer)))
}
