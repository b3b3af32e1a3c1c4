package conn

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A reply is the [http.ResponseWriter] of a plain request that no server of net/http has read. The answer is one of
// HTTP/1.1: by its length, or in chunks where the handler tells none and writes more than mostHeld. Unlike net/http's
// it guesses no Content-Type. What a handler writes leaves with the header where it can.
type reply struct {
	c      *Conn
	header http.Header

	status   int      // 0 = the handler has not said it
	length   int64    // of the body, as the handler has said; -1 = it has not
	trailers []string // whose names the header had

	begun   bool // the header is complete, in c.head or sent
	chunked bool
	closes  bool // the connection ends with this answer
	held    []byte
	written int64 // of the body, by the handler
}

// mostHeld is up to how many bytes of a body of unknown length are held back, since their end may follow at once.
const mostHeld = 2 << 10

// framing are the fields by which a reply says where it ends, and which it therefore writes itself; none are those of
// an answer without a body (RFC 9110 section 15.4.5).
var (
	framing = map[string]bool{"Content-Length": true, "Transfer-Encoding": true}
	none    = map[string]bool{"Content-Length": true, "Transfer-Encoding": true, "Content-Type": true}
)

// text is an [io.Writer] to a slice.
type text []byte

func (t *text) Write(p []byte) (int, error)       { *t = append(*t, p...); return len(p), nil }
func (t *text) WriteString(s string) (int, error) { *t = append(*t, s...); return len(s), nil }

// Header implements [http.ResponseWriter].
func (w *reply) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *reply) WriteHeader(status int) {
	if w.status != 0 || w.c.quick.taken.Load() {
		return
	}
	t := text(w.c.head[:0])
	t.WriteString("HTTP/1.1 ")
	t = strconv.AppendInt(t, int64(status), 10)
	t.WriteString(" " + cmp.Or(http.StatusText(status), "status code "+strconv.Itoa(status)) + "\r\n")
	switch {
	case status < 100 || status > 999 || status == http.StatusSwitchingProtocols:
		panic("conn: a reply cannot have the status " + strconv.Itoa(status))
	case status < 200:
		w.header.WriteSubset(&t, framing)
		t.WriteString("\r\n")
		w.c.head = t
		w.c.writeHead() // an error shows at the next write
		return
	}
	w.status = status
	exclude := framing
	if status == http.StatusNotModified {
		exclude = none
	}
	w.header.WriteSubset(&t, exclude) // without those of [http.TrailerPrefix], which are no names of fields
	if _, ok := w.header["Date"]; !ok {
		t.WriteString("Date: ")
		t = time.Now().UTC().AppendFormat(t, http.TimeFormat)
		t.WriteString("\r\n")
	}
	if w.length = -1; hasBody(status) {
		if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
	for _, line := range w.header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); httpguts.ValidTrailerHeader(name) {
				w.trailers = append(w.trailers, name)
			}
		}
	}
	if w.closes = httpguts.HeaderValuesContainsToken(w.header["Connection"], "close"); !w.closes && w.c.pass.gate.closing.Load() {
		w.closes = true
		t.WriteString("Connection: close\r\n")
	}
	w.c.head = t
}

func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// begin completes the header. The body is whole if the handler has returned.
func (w *reply) begin(whole bool) {
	w.begun = true
	t := text(w.c.head)
	switch {
	case !hasBody(w.status):
	case w.length >= 0, whole && w.trailers == nil:
		if w.length < 0 {
			w.length = w.written
		}
		t.WriteString("Content-Length: ")
		t = strconv.AppendInt(t, w.length, 10)
		t.WriteString("\r\n")
	default:
		w.chunked = true
		t.WriteString("Transfer-Encoding: chunked\r\n")
	}
	t.WriteString("\r\n")
	w.c.head = t
}

// wants begins the body, and returns why n bytes more cannot be part of it.
func (w *reply) wants(n int) error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.c.quick.taken.Load():
		return http.ErrHijacked
	case !hasBody(w.status):
		return http.ErrBodyNotAllowed
	case w.length >= 0 && w.written+int64(n) > w.length:
		w.closes = true
		return http.ErrContentLength
	}
	return nil
}

// Write implements [io.Writer].
func (w *reply) Write(p []byte) (int, error) {
	if err := w.wants(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	w.written += int64(len(p))
	if !w.begun && len(w.held)+len(p) <= mostHeld {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	if !w.begun {
		w.begin(false)
	}
	return w.send(p)
}

// send sends what is held, and p. n counts bytes of p.
func (w *reply) send(p []byte) (n int, err error) {
	c := w.c
	chunk := w.chunked && len(w.held)+len(p) > 0
	if chunk {
		c.head = append(strconv.AppendInt(c.head, int64(len(w.held)+len(p)), 16), "\r\n"...)
	}
	c.head = append(c.head, w.held...)
	w.held = w.held[:0]
	before := int64(len(c.head))
	all := net.Buffers{c.head, p}
	total := before + int64(len(p))
	if chunk {
		all = append(all, []byte("\r\n"))
		total += int64(len("\r\n"))
	}
	done, err := c.patiently(total, func(int64) (int64, error) { return all.WriteTo(c.Conn) })
	c.head = c.head[:0]
	return int(min(max(0, done-before), int64(len(p)))), err
}

// ReadFrom implements [io.ReaderFrom]. A body of known length goes the way of [Conn.ReadFrom].
func (w *reply) ReadFrom(body io.Reader) (int64, error) {
	if err := w.wants(0); err != nil {
		return 0, err
	}
	if w.length < 0 {
		return io.Copy(struct{ io.Writer }{w}, body)
	}
	if !w.begun {
		w.begin(false)
		w.c.head = append(w.c.head, w.held...)
		w.held = w.held[:0]
	}
	n, err := w.c.ReadFrom(body)
	w.written += n
	return n, err
}

// Flush implements [http.Flusher].
func (w *reply) Flush() { w.FlushError() }

// FlushError is for [http.ResponseController].
func (w *reply) FlushError() error {
	switch {
	case w.c.quick.taken.Load(), w.c.replace:
		return nil
	case w.status == 0:
		w.WriteHeader(http.StatusOK)
	}
	if !w.begun {
		w.begin(false)
	}
	if len(w.held)+len(w.c.head) == 0 {
		return nil
	}
	_, err := w.send(nil)
	return err
}

// Hijack implements [http.Hijacker], for a handler that closes the connection: it may have read the next request
// already, so that there is nothing to read or write by.
func (w *reply) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.c.quick.taken.Store(true)
	return w.c.Conn, nil, nil
}

// end sends what is left when the handler has returned. After an error the connection must be closed; it is io.EOF if
// nothing more is to be said of that.
func (w *reply) end() error {
	c := w.c
	if c.quick.taken.Load() {
		return io.EOF
	}
	if c.replace {
		c.replace = false
		return c.writeHead()
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.begun {
		w.begin(true)
	}
	if w.chunked {
		w.appendTrailers()
	} else {
		c.head = append(c.head, w.held...)
	}
	if err := c.writeHead(); err != nil || w.closes || hasBody(w.status) && w.length > w.written {
		return io.EOF
	}
	return nil
}

// appendTrailers ends a body in chunks.
func (w *reply) appendTrailers() {
	t := text(w.c.head)
	if len(w.held) > 0 {
		t = append(strconv.AppendInt(t, int64(len(w.held)), 16), "\r\n"...)
		t = append(append(t, w.held...), "\r\n"...)
	}
	t.WriteString("0\r\n")
	late := make(http.Header)
	for name, lines := range w.header {
		if of, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			late[of] = lines
		} else if slices.Contains(w.trailers, name) {
			late[name] = lines
		}
	}
	late.Write(&t)
	t.WriteString("\r\n")
	w.c.head = t
}
