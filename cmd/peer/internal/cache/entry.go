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
	status   int
	header   http.Header   // end-to-end fields, as received; a Date, no Age
	received moment        // when the answer arrived that brought or confirmed it
	initial  time.Duration // its age then

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
// fields are gone. It takes over h. age is what the Age field said, delay the time
// from the request to the answer.
func newEntry(status int, h http.Header, age, delay time.Duration, received moment, via string) *entry {
	e := &entry{status: status, header: h, received: received}
	e.date = headerTime(h, "Date")
	if e.date.IsZero() {
		e.date = received.wall
	}
	e.initial = initialAge(age, delay, e.date, received.wall)
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

// ageUnknown is the age of a response that was received in the future: the clock
// was put back since, and nobody knows by how much. No lifetime is as long.
const ageUnknown = 2 * maxDelta

// age returns the current age (RFC 9111 section 4.2.3).
func (e *entry) age(now moment) time.Duration {
	since, known := now.since(e.received)
	if !known {
		return ageUnknown
	}
	return min(e.initial+since, ageUnknown)
}

// freshFor returns for how long the response stays fresh; negative = for how
// long it has been stale.
func (e *entry) freshFor(now moment) time.Duration { return e.lifetime - e.age(now) }

// generated is when the origin generated or last confirmed the response, as far
// as its age tells.
func (e *entry) generated() moment { return e.received.ago(e.initial) }

// encode writes the entry for the store: a line of numbers, then the header.
func (e *entry) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "2 %d %d %d %d %d\r\n", e.status, e.received.wall.UnixNano(), int64(e.initial), e.received.clock, int64(e.received.steady))
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
	n := make([]int64, len(fields))
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return nil, errEntry
		}
	}
	e := &entry{}
	switch {
	case len(n) == 6 && n[0] == 2:
		e.initial = time.Duration(n[3])
		e.received = moment{time.Unix(0, n[2]), n[4], time.Duration(n[5])}
	case len(n) == 5 && n[0] == 1: // with the time of the request, and no steady clock
		e.initial = time.Duration(n[4])
		e.received = moment{wall: time.Unix(0, n[3])}
	default:
		return nil, errEntry
	}
	e.status = int(n[1])
	h, err := r.ReadMIMEHeader()
	if err != nil {
		return nil, errEntry
	}
	e.header = http.Header(h)
	e.date = headerTime(e.header, "Date")
	if e.date.IsZero() {
		e.date = e.received.wall
	}
	e.derive(via)
	return e, nil
}
