package cache

import (
	"net/http"
	"strconv"
)

// forwardHead passes a HEAD on. What it brings may speak for the response stored
// for GET, which is stale, or nil (RFC 9111 section 4.3.5).
func (c *Cache) forwardHead(w http.ResponseWriter, r *request, stored *found, reason string) Result {
	return c.pass(w, r.Request, reason, func(a *answer) {
		if stored == nil || a.status != http.StatusOK || r.cc.noStore {
			return
		}
		if sameRepresentation(a, stored) {
			c.freshenBy(r, a, stored)
		} else {
			c.store.DeleteObject(stored.obj)
		}
	})
}

// sameRepresentation reports whether the validators and the length that a HEAD
// brought are those of the stored response.
func sameRepresentation(a *answer, stored *found) bool {
	length := a.header.Get("Content-Length")
	return stored.entry.status == http.StatusOK &&
		a.header.Get("Etag") == stored.entry.etag &&
		headerTime(a.header, "Last-Modified").Equal(stored.entry.modified) &&
		(stored.entry.etag != "" || !stored.entry.modified.IsZero()) &&
		(length == "" || length == strconv.FormatInt(stored.obj.Size(), 10))
}

// freshenBy updates the stored response as a 304 with the answer's header would.
func (c *Cache) freshenBy(r *request, a *answer, stored *found) {
	e := stored.entry.freshened(a, c.cfg.Name)
	if !storable(r.Header, &r.cc, e.status, e.header) {
		c.store.DeleteObject(stored.obj)
		return
	}
	c.store.Update(stored.obj, c.meta(e))
}
