package conn

import (
	"bytes"
	"cmp"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// A plain is a request without a body that can be read in one way only: GET by HTTP/1.1, in lines that end with
// CRLF, whose fields say nothing of a body, of the connection except that it stays open, or of the protocol.
// Whatever else comes, the server reads. It is used again and again.
type plain struct {
	target span
	fields []field
	host   int // the index of the field
}

// A span is a part of the bytes that were read.
type span struct{ from, to int }

type field struct{ name, value span }

const (
	method    = "GET "
	version   = " HTTP/1.1\r"
	mostPlain = 32 // fields, so that they take no more than the connection has
)

// frame returns the length of the plain request that p begins with; 0 = p does not begin with a whole one.
func (q *plain) frame(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	q.target = span{len(method), end - len(version)}
	if q.target.to <= q.target.from || string(p[:len(method)]) != method || string(p[q.target.to:end]) != version || !within(p, q.target, '!') {
		return 0
	}
	q.fields, q.host = q.fields[:0], -1
	for at := end + 1; ; at = end + 1 { // each round reads a line
		length := bytes.IndexByte(p[at:], '\n')
		end = at + length
		switch {
		case length < 1 || p[end-1] != '\r':
			return 0
		case length == 1 && q.host >= 0:
			return end + 1
		case !q.add(p, span{at, end - 1}):
			return 0
		}
	}
}

// add reads a field's line, and reports whether a plain request may have it.
func (q *plain) add(p []byte, line span) bool {
	colon := bytes.IndexByte(p[line.from:line.to], ':')
	f := field{span{line.from, line.from + colon}, span{line.from + colon + 1, line.to}}
	for f.value.from < f.value.to && p[f.value.from] == ' ' {
		f.value.from++
	}
	for f.value.from < f.value.to && p[f.value.to-1] == ' ' {
		f.value.to--
	}
	if colon < 1 || len(q.fields) == mostPlain || !within(p, f.value, ' ') {
		return false
	}
	name, value := p[f.name.from:f.name.to], p[f.value.from:f.value.to]
	for _, b := range name {
		if !httpguts.IsTokenRune(rune(b)) {
			return false
		}
	}
	is := func(s string) bool { return len(name) == len(s) && strings.EqualFold(string(name), s) }
	switch {
	case is("Host"):
		if q.host >= 0 || len(value) == 0 {
			return false
		}
		q.host = len(q.fields)
	case is("Connection"):
		if !bytes.EqualFold(value, []byte("keep-alive")) {
			return false
		}
	case is("Content-Length"), is("Transfer-Encoding"), is("Trailer"), is("Te"), is("Expect"), is("Upgrade"), is("Pragma"):
		return false
	}
	q.fields = append(q.fields, f)
	return true
}

// within reports whether all bytes of a part are of ASCII, from the byte least on.
func within(p []byte, s span, least byte) bool {
	for _, b := range p[s.from:s.to] {
		if b < least || b > '~' {
			return false
		}
	}
	return true
}

// request makes r, which has what all have, what the server would make of the request that p consists of; nil = it
// would refuse it.
func (q *plain) request(r *http.Request, p []byte) *http.Request {
	text := string(p)
	target, host := text[q.target.from:q.target.to], q.fields[q.host].value
	u, err := url.ParseRequestURI(target)
	if err != nil || !httpguts.ValidHostHeader(text[host.from:host.to]) {
		return nil
	}
	r.URL, r.RequestURI = u, target
	r.Host = cmp.Or(u.Host, text[host.from:host.to])
	r.Header = make(http.Header, len(q.fields))
	values := make([]string, len(q.fields))
	for i, f := range q.fields {
		if i == q.host {
			continue
		}
		name := textproto.CanonicalMIMEHeaderKey(text[f.name.from:f.name.to])
		values[i] = text[f.value.from:f.value.to]
		if lines := r.Header[name]; lines != nil {
			r.Header[name] = append(lines, values[i])
		} else {
			r.Header[name] = values[i : i+1 : i+1]
		}
	}
	return r
}
