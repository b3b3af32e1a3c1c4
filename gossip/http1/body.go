package http1

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"

	"golang.org/x/net/http/httpguts"
)

// mostLine is how long the line of a chunk's size may be, mostExcess what the lines may have beyond what their chunks
// explain, and mostTrailer all trailers, in bytes.
const (
	mostLine    = 4 << 10
	mostExcess  = 16 << 10
	mostTrailer = 16 << 10
)

// errBelow is the error of an answer that has no length, and perhaps not all of its bytes: anybody on the way can close
// the connection (RFC 9112 section 9.8).
var errBelow = fmt.Errorf("%w: the connection was closed, but TLS was not (close_notify)", io.ErrUnexpectedEOF)

// A body is that of an answer. One goroutine may read it while another closes it.
type body struct {
	x       *exchange
	left    int64 // bytes of it, or of the chunk; toEnd = all that come
	chunked bool
	begun   bool  // chunked: a chunk was read, whose CRLF comes next
	excess  int64 // chunked: bytes of the lines of sizes that the chunks do not explain
	err     error // how it ended; of the goroutine that reads
}

// Read implements [io.Reader]. The last bytes of a length come with [io.EOF].
func (b *body) Read(p []byte) (n int, err error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if b.x.ended.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.chunked && b.left == 0 {
		b.err = b.nextChunk()
	}
	if b.err == nil {
		n, b.err = b.read(p)
	}
	if b.err == nil && b.left == 0 && !b.chunked {
		b.err = io.EOF
	}
	switch b.err {
	case nil:
	case io.EOF:
		b.x.end(b.left != toEnd)
	default:
		b.err = b.x.failed(b.err)
		b.x.end(false)
	}
	return n, b.err
}

// read reads what is left of the body, or of the chunk.
func (b *body) read(p []byte) (n int, err error) {
	c := b.x.conn
	if b.left >= 0 && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	if c.from < c.to {
		n = copy(p, c.rest())
		c.from += n
	} else {
		if !b.chunked {
			c.release() // a long body does not need it
		}
		n, err = c.Conn.Read(p)
	}
	if b.left >= 0 {
		b.left -= int64(n)
		if err == io.EOF && (b.left > 0 || b.chunked) {
			err = io.ErrUnexpectedEOF
		} else if err == io.EOF {
			err = nil // what follows says whether it was the end
		}
	} else if err == io.EOF && c.below != nil && c.below.ended {
		err = errBelow
	}
	if n > 0 && err != io.EOF {
		return n, nil // another error comes again
	}
	return n, err
}

// nextChunk reads the line of the next chunk's size (section 7.1), and after the last the trailers; it returns io.EOF
// then.
func (b *body) nextChunk() error {
	if b.begun {
		if end, err := b.line(len("\r\n")); err != nil || len(end) != 0 {
			return cmp.Or(err, malformed("section 7.1: a chunk is longer than its size"))
		}
	}
	line, err := b.line(mostLine)
	if err != nil {
		return err
	}
	size, ext, _ := bytes.Cut(line, []byte(";"))
	size = bytes.TrimRight(size, " \t")
	n, err := strconv.ParseUint(string(size), 16, 63)
	if err != nil || len(size) > 16 || !httpguts.ValidHeaderFieldValue(string(ext)) {
		return malformed("section 7.1: the size of a chunk is %.40q", line)
	}
	if n == 0 {
		return b.trailers()
	}
	b.left, b.begun = int64(n), true
	// As by net/http, chunks of one byte are granted, and extensions of twice the length of the data.
	if b.excess = max(0, b.excess+int64(len(line))-16-2*min(b.left, mostExcess)); b.excess > mostExcess {
		return malformed("section 7.1.1: its chunk extensions are too long beside its data")
	}
	return nil
}

// line reads a line of up to most bytes, and returns it without its CRLF. It is valid until the next call.
func (b *body) line(most int) ([]byte, error) {
	c := b.x.conn
	for { // each round but the last has a byte more
		p := c.rest()
		if i := bytes.IndexByte(p[:min(len(p), most)], '\n'); i >= 0 {
			if i == 0 || p[i-1] != '\r' {
				return nil, malformed("section 2.2: a line of the chunked coding ends with LF alone")
			}
			c.from += i + 1
			return p[:i-1], nil
		}
		if len(p) >= most {
			return nil, malformed("section 7.1: a line of the chunked coding is longer than %d bytes, or a chunk "+
				"than its size", most)
		}
		if err := c.fill(bufferSize); err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
	}
}

// trailers reads the trailers (section 7.1.2) and returns io.EOF after them.
func (b *body) trailers() error {
	var text []byte
	for { // each round reads a line
		line, err := b.line(mostLine)
		switch {
		case err != nil:
			return err
		case len(line) == 0:
			fields, err := parseFields(string(text))
			if b.x.Trailer == nil && len(fields) > 0 {
				b.x.Trailer = make(http.Header)
			}
			maps.Copy(b.x.Trailer, fields)
			return cmp.Or(err, io.EOF)
		case len(text)+len(line) > mostTrailer:
			return malformed("its trailers are longer than %d bytes", mostTrailer)
		}
		text = append(append(text, line...), "\r\n"...)
	}
}

// Close ends the answer. If it was not read to its end, the connection is closed.
func (b *body) Close() error {
	b.x.end(false)
	return nil
}
