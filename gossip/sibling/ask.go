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

	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

const (
	idleFactor    = 10          // a body may pause for this many times the deadline for the header
	arrivingPause = time.Minute // or for this long, if the sibling is itself still receiving it
)

// ErrStalled is the cause ([context.Cause]) with which a request is canceled when its body makes
// no progress.
var ErrStalled = errors.New("sibling: body stalled")

var (
	errNoFirstByte = errors.New("sibling: no answer within the deadline")
	errGone        = errors.New("sibling: no longer a member")
)

// ask sends the request to one sibling.
func (l *Lookup) ask(ctx context.Context, cancel context.CancelCauseFunc, to Ranked, conditions http.Header) (*Answer, result) {
	timeout := l.c.deadline()
	t := &transfer{c: l.c, from: to, ctx: ctx, cancel: cancel, late: errNoFirstByte, pause: idleFactor * timeout}
	l.c.begin(t)
	t.clock = time.AfterFunc(timeout+to.wait, func() { t.end(t.late) })
	start := time.Now()
	resp, err := l.c.cfg.HTTP.RoundTrip(l.request(ctx, to, conditions))
	inTime := t.clock.Stop()
	if err != nil {
		o := resultOf(ctx)
		t.end(nil)
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
		case resp.StatusCode == http.StatusGatewayTimeout && l.unusable() == tooOld:
			o = tooOld // it may have the object: a client's request must not discredit its digest
		case resp.StatusCode == http.StatusGatewayTimeout:
			o = falseHit
		}
		io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		resp.Body.Close()
		t.end(nil)
		return nil, o
	}
	t.late = ErrStalled // no race: the clock has been stopped
	if arriving {
		t.pause = max(t.pause, arrivingPause)
	}
	t.body = timed{ReadCloser: resp.Body, from: l.c.cfg.Health, name: to.Peer, cancel: cancel, arriving: arriving}
	resp.Body = t
	return &Answer{Response: resp, Peer: to.Peer, Outside: to.outside, Requested: start, Arrived: time.Now()}, hit
}

// unusable returns the result of an answer that is not as needed. It is tooOld if the request asks for an object that
// is fresher than caches must keep it, so that even a sibling that has it may answer 504; or for a stale one, which no
// digest advertises.
func (l *Lookup) unusable() result {
	cc := rfc9111.RequestDirectives(l.req.Header)
	if cc.MaxAge != rfc9111.Unset || cc.MinFresh != rfc9111.Unset || cc.StaleIfError != rfc9111.Unset {
		return tooOld
	}
	return unusable
}

// request returns an absolute-form GET or HEAD to the candidate's address.
func (l *Lookup) request(ctx context.Context, to Ranked, conditions http.Header) *http.Request {
	h := l.req.Header
	if len(conditions) > 0 || to.wait > 0 {
		h = h.Clone()
		maps.Copy(h, conditions)
	}
	if to.wait > 0 {
		h["Prefer"] = []string{"wait=" + strconv.Itoa(int((to.wait+time.Second-1)/time.Second))} // RFC 7240 section 4.3
	}
	u := *l.req.URL
	u.Fragment, u.RawFragment, u.User = "", "", nil
	if !to.outside {
		ctx = peering.WithPeer(ctx, to.Peer)
	}
	r := &http.Request{
		Method: cmp.Or(l.req.Method, http.MethodGet),
		URL:    &url.URL{Scheme: "http", Host: to.Service, Opaque: u.String()},
		Host:   cmp.Or(l.req.Host, u.Host),
		Header: h,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(ctx)
}

// resultOf returns the result of a request that ended in an error.
func resultOf(ctx context.Context) result {
	switch cause := context.Cause(ctx); {
	case cause == errNoFirstByte:
		return timedOut
	case cause == nil || cause == errGone:
		return failed
	}
	return canceled
}

// isHit reports whether an answer comes from the store of the cache that sent it: the last
// member of Cache-Status (RFC 9211) is that cache's own, and says hit. Anything else, such as
// an error page of the sibling itself, does not count. arriving means that the sibling is
// still receiving the body.
func isHit(h http.Header) (hit, arriving bool) {
	last, _ := rfc9111.LastStatus(h)
	return last.Hit, last.Detail == "arriving"
}

// A transfer is a request to one sibling and, once its header has arrived, the body of the answer.
// The body may not pause for long: a sibling that hangs must not hang the client. An error in
// the body counts against the sibling.
type transfer struct {
	c      *Client
	from   Ranked
	ctx    context.Context
	cancel context.CancelCauseFunc
	clock  *time.Timer
	late   error // the cause of the cancellation when the clock expires
	body   timed
	pause  time.Duration // allowed between two parts of the body
	broken bool
	closed atomic.Bool
}

func (c *Client) begin(t *transfer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hedge.earn()
	c.underway[t] = struct{}{}
}

// end cancels the request, if it has not ended.
func (t *transfer) end(cause error) {
	t.c.mu.Lock()
	delete(t.c.underway, t)
	t.c.mu.Unlock()
	t.cancel(cause)
}

func (t *transfer) Read(p []byte) (int, error) {
	t.clock.Reset(t.pause)
	n, err := t.body.Read(p)
	t.clock.Stop()
	t.c.stats.add(&t.c.stats.n.Bytes, uint64(n))
	if err != nil && err != io.EOF && !t.broken && !t.closed.Load() && t.faulty() {
		t.broken = true
		t.c.count(&t.c.stats.n.Errors)
		t.c.cfg.Health.record(outcome{peer: t.from.Peer, kind: other, result: failed})
	}
	return n, err
}

// faulty reports whether the sibling, and not the caller, has broken off the body.
func (t *transfer) faulty() bool {
	cause := context.Cause(t.ctx)
	return cause == nil || cause == ErrStalled || cause == errGone
}

func (t *transfer) Close() error {
	t.closed.Store(true)
	t.clock.Stop()
	err := t.body.Close()
	t.end(nil)
	return err
}
