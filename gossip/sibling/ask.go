package sibling

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

const (
	idleFactor    = 10          // a body may pause for this many times the deadline to the first byte
	arrivingPause = time.Minute // or for this long, if the sibling is itself waiting for it
)

// ErrStalled is the cause ([context.Cause]) by which a request is canceled whose body made
// no progress.
var ErrStalled = errors.New("sibling: body stalled")

var (
	errNoFirstByte = errors.New("sibling: no answer within the deadline")
	errGone        = errors.New("sibling: no longer a member")
)

// ask puts the question to one sibling.
func (in *Lookup) ask(asking context.Context, cancel context.CancelCauseFunc, to Ranked, conditions http.Header) (*Answer, outcome) {
	timeout := in.c.deadline()
	e := &exchange{c: in.c, from: to, asking: asking, cancel: cancel, late: errNoFirstByte, pause: idleFactor * timeout}
	in.c.begin(e)
	e.clock = time.AfterFunc(timeout+to.wait, e.expire)
	start := time.Now()
	resp, err := in.c.cfg.HTTP.RoundTrip(in.request(asking, to, conditions))
	inTime := e.clock.Stop()
	if err != nil {
		o := outcomeOf(asking)
		e.end(nil)
		return nil, o
	}
	if to.outside {
		translate(resp.Header)
	}
	has, arriving := isHit(resp.Header)
	if !inTime || !has {
		o := failed
		switch {
		case !inTime:
			o = timedOut
		case resp.StatusCode == http.StatusGatewayTimeout && in.wantsFresh():
			o = unusable // it may well have the object: no client is to make its digest a liar
		case resp.StatusCode == http.StatusGatewayTimeout:
			o = falseHit
		}
		io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		resp.Body.Close()
		e.end(nil)
		return nil, o
	}
	e.late = ErrStalled // nothing else looks at it: the clock was stopped
	if arriving {
		e.pause = max(e.pause, arrivingPause)
	}
	e.body = timed{ReadCloser: resp.Body, from: in.c.cfg.Health, name: to.Peer}
	resp.Body = e
	return &Answer{Response: resp, Peer: to.Peer, Requested: start, Arrived: time.Now()}, hit
}

// wantsFresh reports whether the question is for an object that is fresher than
// caches must be, so that one that has it may have to say no; or for a stale one, which no
// digest lists.
func (in *Lookup) wantsFresh() bool {
	cc := rfc9111.RequestDirectives(in.q.Header)
	return cc.MaxAge != rfc9111.Unset || cc.MinFresh != rfc9111.Unset || cc.StaleIfError != rfc9111.Unset
}

// request is an absolute-form GET or HEAD sent to the candidate's address.
func (in *Lookup) request(ctx context.Context, to Ranked, conditions http.Header) *http.Request {
	h := in.q.Header
	if len(conditions) > 0 || to.wait > 0 {
		h = h.Clone()
		maps.Copy(h, conditions)
	}
	if to.wait > 0 {
		h["Prefer"] = []string{"wait=" + strconv.Itoa(int(to.wait/time.Second))} // RFC 7240 section 4.3
	}
	u := *in.q.URL
	u.Fragment, u.RawFragment, u.User = "", "", nil
	if !to.outside {
		ctx = WithPeer(ctx, to.Peer)
	}
	r := &http.Request{
		Method: cmp.Or(in.q.Method, http.MethodGet),
		URL:    &url.URL{Scheme: "http", Host: to.Service, Opaque: u.String()},
		Host:   cmp.Or(in.q.Host, u.Host),
		Header: h,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(ctx)
}

// outcomeOf says what it means that there was an error in the place of an answer.
func outcomeOf(asking context.Context) outcome {
	switch cause := context.Cause(asking); {
	case cause == errNoFirstByte:
		return timedOut
	case cause == nil || cause == errGone:
		return failed
	}
	return canceled
}

// isHit reports whether an answer comes from the store of the cache that gave
// it: the last member of Cache-Status (RFC 9211) is its own, and says so. What a
// sibling says of itself, an error say, is no answer to a question. arriving says
// that the body is still on its way to the sibling.
func isHit(h http.Header) (hit, arriving bool) {
	last, _ := rfc9111.LastStatus(h)
	return last.Hit, last.Detail == "arriving"
}

// An exchange is a question to one sibling and, from its header on, the body of the
// answer, which may not pause for long: a sibling that hangs in the middle must not hang
// our client. One that breaks off is reported.
type exchange struct {
	c      *Client
	from   Ranked
	asking context.Context
	cancel context.CancelCauseFunc
	clock  *time.Timer
	late   error // what it is canceled with when the clock rings
	body   timed
	pause  time.Duration // between the parts of the body
	broken bool
	closed atomic.Bool
}

func (c *Client) begin(e *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.underway == nil {
		c.underway = make(map[*exchange]struct{})
	}
	c.underway[e] = struct{}{}
}

func (e *exchange) expire() { e.end(e.late) }

// end cancels what is under way, if anything is.
func (e *exchange) end(cause error) {
	e.c.mu.Lock()
	delete(e.c.underway, e)
	e.c.mu.Unlock()
	e.cancel(cause)
}

func (e *exchange) Read(p []byte) (int, error) {
	e.clock.Reset(e.pause)
	n, err := e.body.Read(p)
	e.clock.Stop()
	e.c.stats.add(&e.c.stats.n.Bytes, uint64(n))
	if err != nil && err != io.EOF && !e.broken && !e.closed.Load() && e.faulty() {
		e.broken = true
		e.c.count(&e.c.stats.n.Errors)
		e.c.record(e.from.Candidate, failed)
	}
	return n, err
}

// faulty reports whether it is the sibling's doing that the body broke off.
func (e *exchange) faulty() bool {
	cause := context.Cause(e.asking)
	return cause == nil || cause == ErrStalled || cause == errGone
}

func (e *exchange) Close() error {
	e.closed.Store(true)
	e.clock.Stop()
	err := e.body.Close()
	e.end(nil)
	return err
}
