package cache

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// An entry is what the cache knows of a stored response besides its body. It is
// immutable and shared.
type entry struct {
	*rfc9111.Response
	received moment                 // when the answer arrived that brought or confirmed it
	given    *given                 // nil = no sibling had a part in it
	via      []string               // the Via field as it is served
	wire     atomic.Pointer[[]byte] // the header as it is served; made when it is needed
}

// newEntry returns one that is served with the response's own Via and via.
func newEntry(r *rfc9111.Response, received moment, via []string) *entry {
	if before := r.Header["Via"]; before != nil {
		via = slices.Concat(before, via)
	}
	return &entry{Response: r, received: received, via: via}
}

// age returns the current age.
func (e *entry) age(now moment) time.Duration {
	since, known := now.since(e.received)
	if !known {
		since = -1
	}
	return e.Age(since)
}

// freshFor returns for how long the response stays fresh, and its giver's word good;
// negative = for how long it has not been.
func (e *entry) freshFor(now moment) time.Duration {
	left := e.Lifetime - e.age(now)
	if e.given != nil {
		left = min(left, e.given.remaining(now))
	}
	return left
}

// generated is when the origin generated or last confirmed the response, as far
// as its age tells.
func (e *entry) generated() moment { return e.received.ago(e.InitialAge) }

// encode writes the entry for the store: a line of numbers, then the header.
func (e *entry) encode() []byte {
	var room [512]byte
	version := int64(2)
	if e.given != nil {
		version = 3
	}
	line := strconv.AppendInt(room[:0], version, 10)
	number := func(n int64) { line = strconv.AppendInt(append(line, ' '), n, 10) }
	for _, n := range [...]int64{int64(e.Status), e.received.wall.UnixNano(), int64(e.InitialAge), e.received.clock, int64(e.received.steady)} {
		number(n)
	}
	if g := e.given; g != nil {
		for _, n := range [...]int64{g.at.wall.UnixNano(), g.at.clock, int64(g.at.steady), int64(g.left)} {
			number(n)
		}
		line = append(append(line, ' '), g.by...)
	}
	b := bytes.NewBuffer(append(line, "\r\n"...))
	e.Header.Write(b)
	b.WriteString("\r\n")
	return b.Bytes()
}

var errEntry = errors.New("cache: not a stored response")

// decodeEntry reads what encode wrote.
func decodeEntry(data []byte, via []string) (*entry, error) {
	r := textproto.NewReader(bufio.NewReader(bytes.NewReader(data)))
	line, err := r.ReadLine()
	if err != nil {
		return nil, errEntry
	}
	fields := strings.Fields(line)
	by := ""
	if len(fields) == 11 && fields[0] == "3" {
		fields, by = fields[:10], fields[10]
	}
	n := make([]int64, len(fields))
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return nil, errEntry
		}
	}
	var initial time.Duration
	var received moment
	var from *given
	switch {
	case len(n) == 10 && n[0] == 3: // with what siblings had a part in
		initial = time.Duration(n[3])
		received = moment{time.Unix(0, n[2]), n[4], time.Duration(n[5])}
		from = &given{by: by, at: moment{time.Unix(0, n[6]), n[7], time.Duration(n[8])}, left: time.Duration(n[9])}
	case len(n) == 6 && n[0] == 2:
		initial = time.Duration(n[3])
		received = moment{time.Unix(0, n[2]), n[4], time.Duration(n[5])}
	case len(n) == 5 && n[0] == 1: // with the time of the request, and no steady clock
		initial = time.Duration(n[4])
		received = moment{wall: time.Unix(0, n[3])}
	default:
		return nil, errEntry
	}
	h, err := r.ReadMIMEHeader()
	if err != nil {
		return nil, errEntry
	}
	e := newEntry(rfc9111.Restore(int(n[1]), http.Header(h), initial, received.wall), received, via)
	e.given = from
	return e, nil
}

// A representation is what tells the bytes of one response from those of another.
type representation struct {
	*rfc9111.Response
	length int64 // of the body; -1 = unknown
}

func (e *entry) representation(length int64) representation {
	return representation{e.Response, length}
}

// same reports whether nothing in the description of another representation says
// that its bytes are others.
func (p representation) same(o representation) bool {
	return p.SameBytes(o.Response) && (p.length < 0 || o.length < 0 || p.length == o.length)
}
