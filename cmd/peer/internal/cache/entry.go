package cache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// An entry is what the cache knows of a stored response besides its body. It is
// immutable and shared.
type entry struct {
	status    int
	header    http.Header // end-to-end fields, as received; a Date, no Age
	requested time.Time   // when the request was sent that brought or confirmed it
	received  time.Time   // when its answer arrived
	initial   time.Duration

	// Derived from the above.
	cc       directives
	lifetime time.Duration // freshness lifetime; 0 = always stale
	date     time.Time
	etag     string
	modified time.Time              // Last-Modified; zero if absent or invalid
	serve    http.Header            // header without what a cache must not send, with our Via
	wire     atomic.Pointer[[]byte] // serve as it is sent; made when it is needed
}

// newEntry describes a response whose header a cache may keep: hop-by-hop
// fields are gone. It takes over h. age is what the Age field said.
func newEntry(status int, h http.Header, age time.Duration, requested, received time.Time, via string) *entry {
	e := &entry{status: status, header: h, requested: requested, received: received}
	e.date = headerTime(h, "Date")
	if e.date.IsZero() {
		e.date = received
	}
	e.initial = initialAge(age, e.date, requested, received)
	e.derive(via)
	return e
}

func (e *entry) derive(via string) {
	var targeted bool
	e.cc, targeted = responseDirectives(e.header)
	e.lifetime = lifetime(e.status, e.header, &e.cc, targeted, e.date)
	e.etag = e.header.Get("Etag")
	e.modified = headerTime(e.header, "Last-Modified")
	e.serve = make(http.Header, len(e.header)+4)
	for name, lines := range e.header {
		e.serve[name] = lines
	}
	for _, name := range e.cc.noCacheFields { // these need validation (RFC 9111 section 5.2.2.4)
		delete(e.serve, name)
	}
	e.serve["Via"] = append(append([]string(nil), e.header["Via"]...), "1.1 "+via)
}

// age returns the current age (RFC 9111 section 4.2.3).
func (e *entry) age(now time.Time) time.Duration {
	return e.initial + max(0, now.Sub(e.received))
}

// freshFor returns for how long the response stays fresh; negative = for how
// long it has been stale.
func (e *entry) freshFor(now time.Time) time.Duration { return e.lifetime - e.age(now) }

// generated is when the origin generated or last confirmed the response, as far
// as its age tells.
func (e *entry) generated() time.Time { return e.received.Add(-e.initial) }

// encode writes the entry for the store: a line of numbers, then the header.
func (e *entry) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "1 %d %d %d %d\r\n", e.status, e.requested.UnixNano(), e.received.UnixNano(), int64(e.initial))
	e.header.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

var errEntry = errors.New("cache: not a stored response")

// decodeEntry reads what encode wrote.
func decodeEntry(data []byte, via string) (*entry, error) {
	r := textproto.NewReader(bufio.NewReader(bytes.NewReader(data)))
	line, err := r.ReadLine()
	if err != nil {
		return nil, errEntry
	}
	fields := strings.Fields(line)
	if len(fields) != 5 || fields[0] != "1" {
		return nil, errEntry
	}
	var n [4]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			return nil, errEntry
		}
	}
	h, err := r.ReadMIMEHeader()
	if err != nil {
		return nil, errEntry
	}
	e := &entry{status: int(n[0]), header: http.Header(h), requested: time.Unix(0, n[1]), received: time.Unix(0, n[2]), initial: time.Duration(n[3])}
	e.date = headerTime(e.header, "Date")
	if e.date.IsZero() {
		e.date = e.received
	}
	e.derive(via)
	return e, nil
}
