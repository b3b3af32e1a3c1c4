package engine

import (
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// An entry describes a stored response without its body. It is immutable and shared.
type entry struct {
	*rfc9111.Response
	of       place    // of a slice: where it is in the whole
	received moment   // when the answer arrived that brought or confirmed it
	given    *given   // by a sibling; nil = all of it is the origin's
	via      []string // the Via field that is served
	served   []string // parts of the stored header that a hit sends unchanged; nil = none, or it was not read from the store
}

// newEntry returns an entry that is served with the response's own Via and via.
func newEntry(r *rfc9111.Response, received moment, via []string) entry {
	if before := r.Header["Via"]; before != nil {
		via = slices.Concat(before, via)
	}
	return entry{Response: r, received: received, via: via}
}

// renewed returns an entry for the same body with another response, which arrived then.
func (e *entry) renewed(r *rfc9111.Response, received moment, via []string) *entry {
	fresh := newEntry(r, received, via)
	fresh.of, fresh.given = e.of, e.given
	return &fresh
}

// age returns the current age.
func (e *entry) age(now moment) time.Duration {
	since, known := now.since(e.received)
	if !known {
		since = -1
	}
	return e.Age(since)
}

// freshFor returns how long the response stays fresh and may be served without asking the
// origin; negative = how long ago that ended.
func (e *entry) freshFor(now moment) time.Duration {
	left := e.Lifetime - e.age(now)
	if e.given != nil {
		left = min(left, e.given.remaining(now))
	}
	return left
}

// generated returns when the origin generated or last confirmed the response, by its age.
func (e *entry) generated() moment { return e.received.ago(e.InitialAge) }

// encode writes the entry for the store into text, which it resets: a line of numbers, then the
// header.
func (e *entry) encode(text *bytes.Buffer) []byte {
	var room [256]byte
	version := int64(2)
	if e.given != nil {
		version = 3
	}
	if e.of.size > 0 {
		version += 2
	}
	line := strconv.AppendInt(room[:0], version, 10)
	number := func(n int64) { line = strconv.AppendInt(append(line, ' '), n, 10) }
	for _, n := range [...]int64{int64(e.Status), e.received.wall.UnixNano(), int64(e.InitialAge), e.received.clock, int64(e.received.steady)} {
		number(n)
	}
	if e.of.size > 0 {
		number(e.of.first)
		number(e.of.size)
	}
	if g := e.given; g != nil {
		for _, n := range [...]int64{g.at.wall.UnixNano(), g.at.clock, int64(g.at.steady), int64(g.left)} {
			number(n)
		}
		line = append(append(line, ' '), g.by...)
	}
	text.Reset()
	text.Write(append(line, "\r\n"...))
	e.Header.Write(text)
	text.WriteString("\r\n")
	return text.Bytes()
}

var errEntry = errors.New("cache: not a stored response")

// decodeEntry is the inverse of encode. It is called for each hit of a response that is not
// kept in memory, and so makes one string of data, of which the header's fields are parts.
func decodeEntry(data []byte, via []string) (*entry, error) {
	line, fields, ok := strings.Cut(string(data), "\r\n")
	if !ok {
		return nil, errEntry
	}
	by := ""
	if strings.HasPrefix(line, "3 ") || strings.HasPrefix(line, "5 ") {
		at := strings.LastIndexByte(line, ' ')
		line, by = line[:at], line[at+1:]
	}
	var room [12]int64
	n := room[:0]
	for more := true; more; { // each round takes a number
		var number string
		number, line, more = strings.Cut(line, " ")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil || len(n) == cap(n) {
			return nil, errEntry
		}
		n = append(n, v)
	}
	var of place
	if len(n) >= 8 && (n[0] == 4 || n[0] == 5) { // a slice
		if of = (place{n[6], n[7]}); of.first < 0 || of.size <= of.first {
			return nil, errEntry
		}
		n[0] -= 2
		n = slices.Delete(n, 6, 8)
	}
	var from *given
	switch {
	case len(n) == 10 && n[0] == 3 && by != "": // given by a sibling
		from = &given{by: by, at: moment{time.Unix(0, n[6]), n[7], time.Duration(n[8])}, left: time.Duration(n[9])}
	case len(n) != 6 || n[0] != 2:
		return nil, errEntry
	}
	initial, received := time.Duration(n[3]), moment{time.Unix(0, n[2]), n[4], time.Duration(n[5])}
	h, fields, ok := parseFields(fields)
	if !ok {
		return nil, errEntry
	}
	e := newEntry(rfc9111.Restore(int(n[1]), h, initial, received.wall), received, via)
	e.of, e.given, e.served = of, from, servedFields(fields, e.Control.NoCacheFields)
	return &e, nil
}

// parseFields parses a header that [http.Header.Write] wrote, up to the empty line after it.
// text is the header without that line; the strings in h are parts of it.
func parseFields(s string) (h http.Header, text string, ok bool) {
	lines := strings.Count(s, "\n")
	h = make(http.Header, lines)
	values := make([]string, 0, lines) // those of h, of which nearly each name has one
	for rest := s; ; {                 // each round takes a line
		var line string
		if line, rest, ok = strings.Cut(rest, "\n"); !ok || line == "" || strings.IndexByte(line, '\r') != len(line)-1 {
			return nil, "", false
		}
		if line == "\r" {
			return h, s[:len(s)-len(rest)-2], true
		}
		name, value, ok := strings.Cut(line[:len(line)-1], ":")
		if !ok || name == "" {
			return nil, "", false
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		values = append(values, strings.Trim(value, " \t"))
		if have := h[name]; have != nil {
			h[name] = append(have, values[len(values)-1])
		} else {
			h[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
}

// appendHit appends to b the status line and the fields of a hit, except those that depend
// on the time or the request.
func (e *entry) appendHit(b []byte, status int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(append(append(b, ' '), http.StatusText(status)...), "\r\n"...)
	served := e.served
	if served == nil { // the entry was not read from the store
		var text strings.Builder
		e.Header.Write(&text)
		served = servedFields(text.String(), e.Control.NoCacheFields)
	}
	for _, fields := range served {
		b = append(b, fields...)
	}
	for _, via := range e.via {
		b = append(append(append(b, "Via: "...), via...), "\r\n"...)
	}
	return b
}

// servedFields returns the parts of a header that are served unchanged: all except the lines that
// are computed for each answer, that only caches get, or that must not be served without validation.
func servedFields(fields string, unvalidated []string) (served []string) {
	from := 0
	for at := 0; at < len(fields); { // each round takes a line
		line := fields[at : at+strings.IndexByte(fields[at:], '\n')+1]
		name := line[:strings.IndexByte(line, ':')]
		switch at += len(line); {
		case name == "Age", name == "Via", name == "Content-Length", name == rfc9111.ClusterControl, slices.Contains(unvalidated, name):
			if before := fields[from : at-len(line)]; before != "" {
				served = append(served, before)
			}
			from = at
		}
	}
	if from < len(fields) {
		served = append(served, fields[from:])
	}
	return served
}

// A representation has what distinguishes the bytes of one response from those of another.
type representation struct {
	*rfc9111.Response
	length int64 // of the body; -1 = unknown
}

func (e *entry) representation(length int64) representation {
	return representation{e.Response, length}
}

// same reports whether the bytes of another representation may be the same, by its header and length. They may be if one
// of the two has no validator: some origins do not always send theirs.
func (p representation) same(o representation) bool {
	if p.length >= 0 && o.length >= 0 && p.length != o.length {
		return false
	}
	without := func(r *rfc9111.Response) bool { return r.ETag == "" && r.Header["Last-Modified"] == nil }
	return p.SameBytes(o.Response) || p.Status == o.Status && without(p.Response) != without(o.Response) &&
		p.Header.Get("Content-Encoding") == o.Header.Get("Content-Encoding") && p.Header.Get("Content-Type") == o.Header.Get("Content-Type")
}
