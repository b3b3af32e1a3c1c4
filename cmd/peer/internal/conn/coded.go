package conn

import (
	"bytes"
	"context"
	"regexp"
)

// A codedScan looks for a Transfer-Encoding in the headers of a connection's requests, while these are of
// HTTP/1.0 and come one by one. This version has none, so that some recipients delimit such a body by it, and others
// by its Content-Length: the framing is faulty (RFC 9112 section 6.1). The server drops the field.
type codedScan struct {
	head    []byte // what came of a header that is not over
	past    bool   // what comes is of no interest
	lost    bool   // it is not known where the next header begins
	framing Framing
}

// Framing is what is known of the framing of a request of HTTP/1.0.
type Framing int

const (
	Unknown Framing = iota // it came together with others, or after one of HTTP/1.1
	Plain                  // it has no Transfer-Encoding
	Coded                  // it has one
	Unseen                 // its connection has TLS, or no [Gate] counts it
)

var (
	headerEnd  = regexp.MustCompile(`\n\r*\n`)
	codedField = regexp.MustCompile(`(?i)\ntransfer-encoding[\s:]`)
)

// next says that what comes is the next header, unless its beginning was lost.
func (s *codedScan) next() { *s = codedScan{past: s.lost, lost: s.lost} }

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
		*s = codedScan{past: true, lost: true}
	} else if end := headerEnd.FindIndex(b[max(fresh, 0):]); end != nil {
		*s = codedScan{past: true, lost: max(fresh, 0)+end[1] < len(b), framing: Plain}
		if codedField.Match(b[:max(fresh, 0)+end[0]+1]) {
			s.framing = Coded
		}
	} else if len(s.head) == 0 {
		s.head = bytes.Clone(p)
	}
}

// FramingOf returns what is known of the framing of the request of HTTP/1.0 under a context.
func FramingOf(ctx context.Context) Framing {
	if c := Of(ctx); c != nil && c.pass.gate != nil {
		return c.pass.scan.framing
	}
	return Unseen
}
