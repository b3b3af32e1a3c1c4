package sibling

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
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

var errNoFirstByte = errors.New("sibling: no answer within the deadline")

// ask puts the question to one sibling.
func (in *Inquiry) ask(asking context.Context, cancel context.CancelCauseFunc, to Step, conditions http.Header) (*Answer, Outcome) {
	timeout := in.c.deadline()
	e := &exchange{c: in.c, from: to, asking: asking, cancel: cancel, late: errNoFirstByte, pause: idleFactor * timeout}
	in.c.underway.add(e)
	e.clock = time.AfterFunc(timeout+to.Wait, e.expire)
	start := time.Now()
	resp, err := in.c.cfg.HTTP.RoundTrip(in.request(asking, to.Candidate, conditions))
	inTime := e.clock.Stop()
	if err != nil {
		outcome := outcomeOf(asking, err)
		e.end(nil)
		return nil, outcome
	}
	if to.Squid {
		translate(resp.Header)
	}
	hit, arriving := isHit(resp.Header)
	if !inTime || !hit {
		outcome := Failed
		switch {
		case !inTime:
			outcome = TimedOut
		case resp.StatusCode == http.StatusGatewayTimeout && in.wantsFresh():
			outcome = Unusable // it may well have the object: no client is to make its digest a liar
		case resp.StatusCode == http.StatusGatewayTimeout:
			outcome = FalseHit
		}
		io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		resp.Body.Close()
		e.end(nil)
		return nil, outcome
	}
	e.late = ErrStalled // nothing else looks at it: the clock was stopped
	if arriving {
		e.pause = max(e.pause, arrivingPause)
	}
	e.body = timed{ReadCloser: resp.Body, from: in.c.cfg.Health, name: to.Peer}
	resp.Body = e
	return &Answer{Response: resp, Peer: to.Peer, Requested: start, Arrived: time.Now()}, Hit
}

// wantsFresh reports whether the question is for an object that is fresher than
// caches must be, so that one that has it may have to say no; or for a stale one, which no
// digest lists.
func (in *Inquiry) wantsFresh() bool {
	cc := rfc9111.RequestDirectives(in.q.Header)
	return cc.MaxAge != rfc9111.Unset || cc.MinFresh != rfc9111.Unset || cc.StaleIfError != rfc9111.Unset
}

// request is an absolute-form GET or HEAD sent to the candidate's address.
func (in *Inquiry) request(ctx context.Context, cand Candidate, conditions http.Header) *http.Request {
	h := in.q.Header
	if len(conditions) > 0 {
		h = h.Clone()
		maps.Copy(h, conditions)
	}
	u := *in.q.URL
	u.Fragment, u.RawFragment, u.User = "", "", nil
	host := in.q.Host
	if host == "" {
		host = u.Host
	}
	r := &http.Request{
		Method: cmp.Or(in.q.Method, http.MethodGet),
		URL:    &url.URL{Scheme: "http", Host: cand.Addr, Opaque: u.String()},
		Host:   host,
		Header: h,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if cand.Wait > 0 {
		h = h.Clone()
		h["Prefer"] = []string{"wait=" + strconv.FormatInt(int64((cand.Wait+time.Second-1)/time.Second), 10)} // RFC 7240 section 4.3
		r.Header = h
	}
	if !cand.Squid {
		ctx = WithPeer(ctx, cand.Peer)
	}
	return r.WithContext(ctx)
}

// outcomeOf says what an error in place of an answer means.
func outcomeOf(asking context.Context, err error) Outcome {
	var op *net.OpError
	switch {
	case context.Cause(asking) == errNoFirstByte:
		return TimedOut
	case context.Cause(asking) == ErrGone:
		return Failed
	case asking.Err() != nil:
		return Canceled
	case errors.As(err, &op) && op.Op == "dial":
		return Refused
	}
	return Failed
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
	from   Step
	asking context.Context
	cancel context.CancelCauseFunc
	clock  *time.Timer
	late   error // what it is canceled with when the clock rings
	body   timed
	pause  time.Duration // between the parts of the body
	broken bool
	closed atomic.Bool
}

func (e *exchange) expire() { e.end(e.late) }

// end cancels what is under way, if anything is.
func (e *exchange) end(cause error) {
	e.c.underway.remove(e)
	e.cancel(cause)
}

func (e *exchange) Read(p []byte) (int, error) {
	e.clock.Reset(e.pause)
	n, err := e.body.Read(p)
	e.clock.Stop()
	e.c.stats.bytes.Add(uint64(n))
	if err != nil && err != io.EOF && !e.broken && !e.closed.Load() && e.faulty() {
		e.broken = true
		e.c.stats.errors.Add(1)
		e.c.report(Report{Peer: e.from.Peer, Outcome: Failed}, e.from.Candidate)
	}
	return n, err
}

// faulty reports whether it is the sibling's doing that the body broke off.
func (e *exchange) faulty() bool {
	cause := context.Cause(e.asking)
	return cause == nil || cause == ErrStalled || cause == ErrGone
}

func (e *exchange) Close() error {
	e.closed.Store(true)
	e.clock.Stop()
	err := e.body.Close()
	e.end(nil)
	return err
}
