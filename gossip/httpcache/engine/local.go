package engine

import (
	"bytes"
	"io"
	"net/http"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Body returns the stored body of an identity, unless the response has expired: then it is removed, and not
// validated.
func (c *Cache) Body(identity string) ([]byte, bool) {
	f := c.peek(identity)
	if f == nil {
		return nil, false
	}
	if f.entry.freshFor(c.now()) <= 0 || c.discredited(f.entry) {
		c.store.DeleteObject(f.obj)
		return nil, false
	}
	v, err := c.store.Open(f.obj, f.about)
	if err != nil {
		return nil, false
	}
	defer v.Close()
	src, err := v.Source(0, f.obj.Size())
	if err != nil {
		return nil, false
	}
	body := make([]byte, f.obj.Size())
	_, err = io.ReadFull(src, body)
	return body, err == nil
}

// Keep stores a response to r, 200 with this header, that no fetch has brought, unless it is invalidated meanwhile or
// has no lifetime. length is that of the body, -1 = unknown. The error is the body's or ctx's, or says why it is not
// stored, such as [bodies.ErrTooLarge].
func (c *Cache) Keep(r *http.Request, h http.Header, body io.Reader, length int64) error {
	q := c.request(r)
	resp := rfc9111.NewResponse(http.StatusOK, h, 0, q.now.wall)
	if resp.Lifetime <= resp.InitialAge {
		return nil
	}
	f := &fetch{r: q, began: c.tick()}
	w, err := c.store.Create(q.plain, length)
	if err != nil {
		return err
	}
	defer w.Abort() // does nothing after Commit
	buf := c.buffer()
	defer c.spare(buf)
	for err == nil {
		var n int
		n, err = body.Read(buf)
		if w.Write(r.Context(), buf[:n]) != nil {
			err = io.EOF // Commit says why
		}
	}
	if err != io.EOF {
		return err
	}
	e := newEntry(resp, q.now, c.via)
	m := c.meta(&e, new(bytes.Buffer))
	m.Wanted = func() bool { return !c.outdated(f, resp) }
	if _, err = w.Commit(m); err == bodies.ErrUnwanted {
		err = nil
	}
	return err
}
