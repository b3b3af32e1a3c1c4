package conn

import (
	"bytes"
	"context"
)

// A codedScan looks through the header of a connection's first request, if it is of HTTP/1.0,
// for a Transfer-Encoding.
// That version has none, so that some read such a body by it and others by its Content-Length;
// the framing is faulty (RFC 9112 section 6.1). The server drops the field.
type codedScan struct {
	past    bool    // what comes is of no interest
	clean   bool    // since the header is over, without the field
	empty   bool    // the line has nothing yet
	fields  bool    // the first line is over
	tail    [9]byte // the end of the first line
	matched int     // bytes of the field's name that the line began with; -1 = it is another field
}

const (
	oldVersion = "HTTP/1.0"
	codedField = "transfer-encoding"
)

// piece reads the next bytes. Its loop ends: each round takes a line, or the rest.
func (s *codedScan) piece(p []byte) {
	for len(p) > 0 && !s.past {
		end := bytes.IndexByte(p, '\n')
		line := p
		if end >= 0 {
			line, p = p[:end], p[end+1:]
		} else {
			p = nil
		}
		if s.fields {
			s.field(line)
		} else {
			s.first(line)
		}
		if end < 0 {
			return
		}
		switch version := bytes.TrimRight(s.tail[:], "\r\x00"); {
		case s.fields && s.empty:
			s.clean, s.past = true, true
		case s.fields:
		case len(version) == 0: // an empty line before the request
			continue
		default:
			s.fields, s.past = true, !bytes.HasSuffix(version, []byte(oldVersion))
		}
		s.matched, s.empty = 0, true
	}
}

// first takes a part of the first line.
func (s *codedScan) first(line []byte) {
	if n := len(line); n >= len(s.tail) {
		copy(s.tail[:], line[n-len(s.tail):])
	} else {
		copy(s.tail[:], s.tail[n:])
		copy(s.tail[len(s.tail)-n:], line)
	}
}

// field takes a part of another line.
func (s *codedScan) field(line []byte) {
	for _, b := range line {
		s.empty = s.empty && b == '\r'
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		switch {
		case s.matched < 0:
			return
		case b == codedField[s.matched]:
			if s.matched++; s.matched == len(codedField) {
				s.past = true
				return
			}
		default:
			s.matched = -1
		}
	}
}

// Framed reports whether the request under a context, of HTTP/1.0 and with a Content-Length,
// can be read in one way only: it is the first of its connection, since of others it is not
// known, and has no Transfer-Encoding. Of connections with TLS, or that no [Gate] counts, it
// is not known either, and they count as framed.
func Framed(ctx context.Context) bool {
	c := Of(ctx)
	return c == nil || c.pass.gate == nil || c.pass.requests == 1 && c.pass.scan.clean
}
