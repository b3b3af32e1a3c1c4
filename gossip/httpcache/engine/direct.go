package engine

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A Conn is a client's connection.
type Conn interface {
	// Buffer returns an empty slice to append a header to, for Answer.
	Buffer() []byte
	// Answer sends header and body (nil = none) as the whole answer to a request. It returns how many
	// bytes of the body it sent.
	Answer(header []byte, body io.Reader) (int64, error)
	// ReadFrom sends the rest of a body after Answer, or a body whose header net/http has sent.
	ReadFrom(body io.Reader) (int64, error)
}

// connOf returns the connection on which r can be answered past net/http; nil = none.
func (c *Cache) connOf(r *request) Conn {
	if c.cfg.Conn == nil {
		return nil
	}
	return c.cfg.Conn(r.Context())
}

// answerDirectly writes the header and the body of an answer to the client's connection at
// once. Most answers of a busy cache are of this kind. It returns the connection; nil = nothing was
// sent: the answer is neither whole nor a part, the connection is not plain HTTP/1.1, or w is [Refusable] and must
// see what is sent. n is the length of body, which may be the beginning of what the answer has.
func (c *Cache) answerDirectly(w http.ResponseWriter, r *request, e *entry, p rfc9111.Part, st rfc9111.Status, via []string, body io.Reader, n int64, res *Result) Conn {
	if p.Status != e.Status && p.Status != http.StatusPartialContent || noBody(p.Status) || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Close ||
		!st.Hit && !st.Collapsed && e.Control.NoCacheFields != nil || // these were validated, see Fill
		p.Status == http.StatusPartialContent && (e.Header["Content-Digest"] != nil || e.Header["Content-Md5"] != nil) {
		return nil
	}
	to := c.connOf(r)
	if _, watched := w.(Refusable); watched || to == nil {
		return nil
	}
	h := e.appendHit(to.Buffer(), p.Status)
	h = append(h, "Age: "...)
	h = strconv.AppendInt(h, int64(min(e.age(c.now()), rfc9111.MaxDelta)/time.Second), 10)
	h = append(h, "\r\nCache-Status: "...)
	for _, nearer := range via {
		h = append(append(h, nearer...), ", "...)
	}
	st.Cache = c.cfg.Name
	h = st.Append(h)
	if lines := w.Header()[statementField]; lines != nil {
		h = append(append(h, "\r\n"+statementField+": "...), lines[0]...)
	}
	if r.cc.OnlyIfCached {
		for _, line := range e.Header[rfc9111.ClusterControl] {
			h = append(append(h, "\r\n"+rfc9111.ClusterControl+": "...), line...)
		}
	}
	if p.ContentRange != "" {
		h = append(append(h, "\r\nContent-Range: "...), p.ContentRange...)
	}
	h = append(h, "\r\nContent-Length: "...)
	h = strconv.AppendInt(h, p.Length, 10)
	h = append(h, "\r\n\r\n"...)
	clear(w.Header()) // the server's own answer is dropped: it must fit one write
	res.Bytes, res.Err = to.Answer(h, body)
	if body != nil && res.Err == nil && res.Bytes < n {
		res.Err = io.ErrUnexpectedEOF
	}
	return to
}

// direct writes the rest of an answer that was begun on a connection.
type direct struct{ to Conn }

func (d direct) ReadFrom(body io.Reader) (int64, error) { return d.to.ReadFrom(body) }

func (d direct) Write(p []byte) (int, error) {
	n, err := d.to.ReadFrom(bytes.NewReader(p))
	return int(n), err
}

// writeBody sends n bytes of a stored body. Those in blocks take no memory of this process, where
// the connection can do that.
func (c *Cache) writeBody(w io.Writer, r *request, body io.Reader, n int64) (done int64, err error) {
	to, ok := w.(io.ReaderFrom)
	if _, inBlocks := body.(interface{ Park() }); ok && inBlocks && c.connOf(r) != nil {
		if answer, ok := w.(http.ResponseWriter); ok {
			err = http.NewResponseController(answer).Flush() // sends the header; otherwise the server would read the first bytes
		}
		if err == nil {
			done, err = to.ReadFrom(body)
		}
	} else {
		done, err = io.Copy(w, body)
	}
	if err == nil && done < n {
		err = io.ErrUnexpectedEOF
	}
	return done, err
}
