package cache

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

// answerDirectly answers a hit, whole, by writing to the client's connection what
// was formatted once for all hits of the response, and the body after it in the
// same breath. That is what most answers of a busy cache are. It reports whether
// it did; if not, nothing was sent. A w that wants to know what is sent through it
// is left to do so.
func (c *Cache) answerDirectly(w http.ResponseWriter, r *request, f *found, p answerPlan, st status, via []string, v *store.View, res *Result) bool {
	e := f.entry
	if !st.hit || via != nil || p.status != e.status || p.contentRange != "" || noBody(p.status) ||
		r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Close {
		return false
	}
	to := conn.Of(r.Context())
	if _, watched := w.(Refusable); watched || to == nil {
		return false
	}
	var body io.Reader
	if r.Method != http.MethodHead && p.length > 0 {
		var err error
		if body, err = v.Source(p.offset, p.length); err != nil {
			return false
		}
	}
	h := append(to.Buffer(), e.wireHeader()...)
	h = append(h, "Age: "...)
	h = strconv.AppendInt(h, seconds(min(e.age(r.now), maxDelta)), 10)
	h = append(h, "\r\nCache-Status: "...)
	h = c.appendStatus(h, st)
	h = append(h, "\r\nContent-Length: "...)
	h = strconv.AppendInt(h, p.length, 10)
	h = append(h, "\r\n\r\n"...)
	res.Bytes, res.Err = to.Answer(h, body)
	if body != nil {
		if res.Err == nil && res.Bytes < p.length {
			res.Err = io.ErrUnexpectedEOF
		}
		c.finishStored(direct{to}, r, f, v, p, res)
	}
	res.Broken = res.Err != nil
	return true
}

// direct writes to a connection behind an answer that was begun on it.
type direct struct{ to *conn.Conn }

func (d direct) Write(p []byte) (int, error) {
	n, err := d.to.ReadFrom(bytes.NewReader(p))
	return int(n), err
}

// wireHeader returns the status line and the fields of a hit, but for those that
// depend on the time or the request.
func (e *entry) wireHeader() []byte {
	if w := e.wire.Load(); w != nil {
		return *w
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", e.status, http.StatusText(e.status))
	e.serve.WriteSubset(&b, map[string]bool{"Age": true, "Content-Length": true})
	w := b.Bytes()
	e.wire.Store(&w)
	return w
}

// shortBody is the length from which on a body does not fit the server's buffer
// beside its header.
const shortBody = 3 << 10

// writeBody sends a stored body whose header the server has, together with it if
// the connection can do that.
func writeBody(w http.ResponseWriter, r *request, v *store.View, p answerPlan) (int64, error) {
	to, ok := w.(io.ReaderFrom)
	c := conn.Of(r.Context())
	if !ok || c == nil || p.length < shortBody {
		return v.WriteRange(w, p.offset, p.length)
	}
	body, err := v.Source(p.offset, p.length)
	if err != nil {
		return 0, err
	}
	c.Hold()
	n := int64(0)
	err = http.NewResponseController(w).Flush() // the header, which is held
	if err == nil {
		n, err = to.ReadFrom(body)
	}
	if late := c.Release(); err == nil {
		err = late
	}
	if err == nil && n < p.length {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
