package engine

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// statementField is sent with a body from one cache to another: gossip/PROTOCOL.md, section 13.
const statementField = "Summarycache-Body"

// maxStated is the number of blocks up to which a body has such a field.
const maxStated = 16 << 10

// A statement is the decoded field.
type statement struct {
	sums []byte        // 8 bytes for each block
	left time.Duration // how long a response that a sibling gave may still be served; < 0 = it is the origin's own
	of   place         // of a slice, whose blocks the sums are of; the zero value = they are of the whole
}

// append appends the field's value to b.
func (s statement) append(b []byte) []byte {
	b = append(b, ':')
	b = base64.StdEncoding.AppendEncode(b, s.sums)
	b = append(b, ':')
	if s.left >= 0 {
		b = append(b, ";left="...)
		b = strconv.AppendInt(b, int64(min(s.left, rfc9111.MaxDelta)/time.Second), 10)
	}
	if s.of.size > 0 {
		b = append(b, ";slice="...)
		b = strconv.AppendInt(b, s.of.first, 10)
	}
	return b
}

var errStatement = errors.New("cache: a sibling's answer with a broken " + statementField)

// parseStatement parses the field in a header. It returns nil if there is none.
func parseStatement(h http.Header) (*statement, error) {
	lines, ok := h[statementField]
	if !ok {
		return nil, nil
	}
	item, err := httpsfv.UnmarshalItem(lines)
	if err != nil {
		return nil, errStatement
	}
	s := &statement{left: -1}
	if s.sums, ok = item.Value.([]byte); !ok || len(s.sums) > 8*maxStated {
		return nil, errStatement
	}
	if left, stated := item.Params.Get("left"); stated {
		n, ok := left.(int64)
		if !ok || n < 0 || n > int64(rfc9111.MaxDelta/time.Second) {
			return nil, errStatement
		}
		s.left = time.Duration(n) * time.Second
	}
	if from, stated := item.Params.Get("slice"); stated {
		n, ok := from.(int64)
		if !ok || n < 0 || n%SliceSize != 0 {
			return nil, errStatement
		}
		s.of = place{n, n + 1} // the size is that of the answer
	}
	return s, nil
}

// state adds the statement to the header of an answer to a sibling. It has no sums if no byte of the
// body is sent.
func (c *Cache) state(h http.Header, e *entry, sums bodies.Sums) {
	if sums.Len() > maxStated {
		return
	}
	s := statement{sums: sums.Append(nil), left: -1, of: e.of}
	if e.given != nil {
		s.left = max(0, e.given.remaining(c.now()))
	}
	h[statementField] = []string{string(s.append(nil))}
}

// stated removes the statement from the header of a sibling's answer, and checks the body by it as
// it is read.
func (c *Cache) stated(a *answer) {
	s, err := parseStatement(a.header)
	delete(a.header, statementField)
	a.given = &given{by: a.sibling.Peer, at: a.received, left: rfc9111.MaxDelta}
	if c.tuning.Load().SiblingMaxAge > 0 {
		a.given.left = c.tuning.Load().SiblingMaxAge
	}
	if err != nil || s == nil {
		a.unusable = err != nil
		return
	}
	if s.left >= 0 {
		a.given.left = min(a.given.left, s.left)
	}
	from, to, size := a.span()
	if size < 0 || a.status == http.StatusNotModified {
		return
	}
	if s.of.size > 0 {
		size = min(s.of.first+SliceSize, size) - s.of.first
		from, to = from-s.of.first, to-s.of.first
	}
	sums, ok := bodies.SumsOf(s.sums, size)
	if !ok || from < 0 || to > size {
		a.unusable = true
		return
	}
	a.body = &checkedBody{a.body, sums.Check(a.body, from, to), func() { c.accuse(a.sibling.Peer, "a body does not match its checksums") }}
}

// span returns which part of the whole body an answer has: from one offset up to another.
// size is that of the whole, -1 = unknown.
func (a *answer) span() (from, to, size int64) {
	if a.status != http.StatusPartialContent {
		return 0, a.length, a.length
	}
	return rfc9111.ContentRange(a.header)
}

// A checkedBody is a sibling's body whose blocks are checked before they are returned.
type checkedBody struct {
	io.ReadCloser
	checked *bodies.Checked
	wrong   func()
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.checked.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return n, io.ErrUnexpectedEOF // it ended early; the blocks before were right
	}
	if errors.Is(err, bodies.ErrDiffers) {
		b.wrong()
	}
	return n, err
}

// given says which sibling sent a response, or a part of it, and how long it may be served without
// the origin's confirmation.
type given struct {
	by   string // the sibling
	at   moment
	left time.Duration
}

// remaining returns how much longer it may be served; negative or 0 = no longer. It returns 0 if the
// response was received in the future by a wall clock that was corrected since: its true age is
// unknown.
func (g *given) remaining(now moment) time.Duration {
	since, known := now.since(g.at)
	if !known {
		return 0
	}
	return g.left - since
}

// overdue reports whether a response was given by a sibling so long ago that the whole must be
// requested from the origin: a 304 would not confirm the body.
func (e *entry) overdue(now moment) bool {
	return e.given != nil && e.given.remaining(now) <= 0
}

// discredited reports whether a response was given by a sibling that was found to lie afterwards.
func (c *Cache) discredited(e *entry) bool {
	if e.given == nil {
		return false
	}
	at, ok := c.liars.get(e.given.by)
	return ok && (e.given.at.clock != c.clock || e.given.at.steady <= at)
}

// standsIn reports whether the stale copy of a fetch may be served because the origin gave no
// answer (status 0) or an error. An overdue copy may be served while it is fresh by its own header.
func (c *Cache) standsIn(f *fetch, status int) bool {
	e, now := f.stored.entry, c.now()
	age := e.age(now)
	if e.StaleOnError(&f.r.cc, status, age) {
		return true
	}
	use, _ := e.Reuse(&f.r.cc, age)
	return (status == 0 || status >= 500) && e.overdue(now) && use == rfc9111.ServeFresh
}
