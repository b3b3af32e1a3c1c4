package engine

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// serveParts answers r, which wants several parts of a stored whole, by multipart/byteranges (RFC 9110 section 14.6). It isn't
// ok, and nothing was sent, if r wants something else or the response can't be read. An answer whose body turns out to be
// bad is cut: it has no rest that another request would bring.
func (c *Cache) serveParts(w http.ResponseWriter, r *request, f *found, st rfc9111.Status, via []string) (res Result, ok bool) {
	if f.entry.of.size > 0 || r.Header["Range"] == nil {
		return res, false
	}
	parts := f.entry.PartsFor(r.Request, f.obj.Size())
	if parts == nil {
		return res, false
	}
	v, err := c.store.Open(f.obj, f.about)
	if err != nil {
		return res, false
	}
	defer v.Close()
	boundary := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	of := ""
	if kind := f.entry.Header.Get("Content-Type"); kind != "" {
		of = "Content-Type: " + kind + "\r\n"
	}
	end := "\r\n--" + boundary + "--\r\n"
	whole := rfc9111.Part{Status: http.StatusPartialContent, Length: int64(len(end)), ContentRange: "none"}
	heads := make([]string, len(parts))
	for i, p := range parts {
		heads[i] = "\r\n--" + boundary + "\r\n" + of + "Content-Range: " + p.ContentRange + "\r\n\r\n"
		whole.Length += int64(len(heads[i])) + p.Length
	}
	h := w.Header()
	f.entry.Fill(h, whole, f.entry.age(c.now()), !st.Hit && !st.Collapsed)
	delete(h, "Content-Range")
	h["Content-Type"] = []string{"multipart/byteranges; boundary=" + boundary}
	c.begin(w, whole.Status, st, f.entry.via, via, f.entry.given, false)
	res.Status = whole.Status
	for i, p := range parts {
		var n int
		if n, res.Err = io.WriteString(w, heads[i]); res.Err != nil {
			break
		}
		var body io.Reader
		if body, res.Err = v.Source(p.Offset, p.Length); res.Err != nil {
			break
		}
		var sent int64
		sent, res.Err = io.Copy(w, body)
		if res.Bytes += int64(n) + sent; res.Err != nil {
			break
		}
	}
	if res.Err == nil {
		var n int
		n, res.Err = io.WriteString(w, end)
		res.Bytes += int64(n)
	}
	res.Broken = res.Err != nil
	return res, true
}
