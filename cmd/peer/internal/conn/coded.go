package conn

import (
	"bytes"
	"context"
	"regexp"
)

// A codedScan looks for a Transfer-Encoding in the header of a connection's first request, if
// that is of HTTP/1.0. This version has none, so that some recipients delimit such a body by it
// and others by its Content-Length: the framing is faulty (RFC 9112 section 6.1). The server
// drops the field.
type codedScan struct {
	head  []byte // what came of a header that is not over
	past  bool   // what comes is of no interest
	clean bool   // the header is over, and has no such field
}

var (
	headerEnd  = regexp.MustCompile(`\n\r*\n`)
	codedField = regexp.MustCompile(`(?i)\ntransfer-encoding`)
)

// piece reads the next bytes.
func (s *codedScan) piece(p []byte) {
	if s.past || len(p) == 0 {
		return
	}
	b, fresh := p, 0 // fresh is where an end may be that was not found before
	if len(s.head) > 0 {
		fresh = bytes.LastIndexByte(s.head, '\n')
		s.head = append(s.head, p...)
		b = s.head
	}
	line, _, whole := bytes.Cut(b, []byte{'\n'})
	if whole && !bytes.HasSuffix(bytes.TrimRight(line, "\r"), []byte("HTTP/1.0")) {
		*s = codedScan{past: true}
	} else if end := headerEnd.FindIndex(b[max(fresh, 0):]); end != nil {
		*s = codedScan{past: true, clean: !codedField.Match(b[:max(fresh, 0)+end[0]])}
	} else if len(s.head) == 0 {
		s.head = bytes.Clone(p)
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
