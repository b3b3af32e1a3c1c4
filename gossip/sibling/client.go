package sibling

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/dunglas/httpsfv"
)

// MaxAsked is how many siblings are asked for one object unless Client.Max says
// otherwise.
const MaxAsked = 2

const (
	defaultTimeout = 500 * time.Millisecond
	idleFactor     = 10 // a body may pause for this many times the deadline to the first byte
)

// Client asks siblings. Its fields must not change while it is used.
type Client struct {
	Locator   Locator
	Transport http.RoundTripper // see NewTransport
	Timeout   time.Duration     // to a response's header; 0 = 500 ms
	Max       int               // siblings asked for one object; 0 = 2

	Asked, FalseHits, Errors, Bytes atomic.Uint64 // questions; of those, answered 504; of those, failed or too slow; body bytes received
}

// NewTransport returns a transport to siblings. dial nil = net.Dialer.
func NewTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	return &http.Transport{
		DialContext:            dial,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        8 << 10,
		ReadBufferSize:         32 << 10,
	}
}

// A Question asks for one object.
type Question struct {
	URL        *url.URL    // absolute; goes out in the request line
	Host       string      // for the Host field; "" = the URL's
	Header     http.Header // sent as it is; it must contain "Cache-Control: only-if-cached" and no connection fields
	Identities []string    // under which a sibling may list the object, likeliest first
}

// An Inquiry asks the candidates for one question, one at a time. It is not
// safe for concurrent use.
type Inquiry struct {
	c          *Client
	q          Question
	candidates []Candidate
	identity   []string // of each candidate

	Asked, FalseHits, Errors int // so far
}

// Ask finds the candidates for a question and asks none of them yet.
func (c *Client) Ask(q Question) *Inquiry {
	in := &Inquiry{c: c, q: q}
	limit := c.Max
	if limit <= 0 {
		limit = MaxAsked
	}
	var found []Candidate
	for _, id := range q.Identities {
		found = c.Locator.Candidates(found[:0], id)
		in.add(found, id, limit)
	}
	if more, ok := c.Locator.(ByQuestion); ok && len(in.candidates) < limit {
		in.add(more.CandidatesFor(found[:0], &q), "", limit)
	}
	return in
}

// add takes over candidates for an identity, up to limit in all.
func (in *Inquiry) add(found []Candidate, id string, limit int) {
	for _, cand := range found {
		if len(in.candidates) == limit {
			return
		}
		if !in.has(cand.Peer) {
			in.candidates = append(in.candidates, cand)
			in.identity = append(in.identity, id)
		}
	}
}

func (in *Inquiry) has(peer string) bool {
	for _, c := range in.candidates {
		if c.Peer == peer {
			return true
		}
	}
	return false
}

// An Answer is a sibling's copy of an object.
type Answer struct {
	*http.Response
	Peer               string
	Requested, Arrived time.Time // when it was asked, when its header was there
}

var (
	errNoFirstByte = errors.New("sibling: no answer within the deadline")
	errStalled     = errors.New("sibling: body stalled")
)

// Next asks candidates until one has the object and returns its answer, whose
// body the caller must close. It returns nil when nobody is left to ask.
// conditions are added to the question's header.
func (in *Inquiry) Next(ctx context.Context, conditions http.Header) *Answer {
	for len(in.candidates) > 0 && ctx.Err() == nil {
		cand, id := in.candidates[0], in.identity[0]
		in.candidates, in.identity = in.candidates[1:], in.identity[1:]
		in.Asked++
		in.c.Asked.Add(1)
		start := time.Now()
		a, outcome := in.ask(ctx, cand, conditions)
		in.count(outcome)
		in.c.Locator.Report(Report{Peer: cand.Peer, Identity: id, Outcome: outcome, Latency: time.Since(start)})
		if a != nil {
			return a
		}
	}
	return nil
}

func (in *Inquiry) count(o Outcome) {
	switch o {
	case FalseHit:
		in.FalseHits++
		in.c.FalseHits.Add(1)
	case Refused, TimedOut, Failed:
		in.Errors++
		in.c.Errors.Add(1)
	}
}

// Reject tells that an answer turned out to be of no use: stale on arrival
// (FalseHit) or broken off (Failed).
func (in *Inquiry) Reject(a *Answer, o Outcome) {
	a.Body.Close()
	in.count(o)
	in.c.Locator.Report(Report{Peer: a.Peer, Outcome: o, Latency: time.Since(a.Requested)})
}

// ask puts the question to one sibling.
func (in *Inquiry) ask(ctx context.Context, cand Candidate, conditions http.Header) (*Answer, Outcome) {
	timeout := in.c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	asking, cancel := context.WithCancelCause(ctx)
	clock := time.AfterFunc(timeout, func() { cancel(errNoFirstByte) })
	start := time.Now()
	resp, err := in.c.Transport.RoundTrip(in.request(asking, cand, conditions))
	if err != nil {
		clock.Stop()
		cancel(nil)
		return nil, outcomeOf(ctx, asking, err)
	}
	if cand.Squid {
		translate(resp.Header)
	}
	if inTime := clock.Stop(); !inTime || !isHit(resp.Header) {
		outcome := Failed
		switch {
		case !inTime:
			outcome = TimedOut
		case resp.StatusCode == http.StatusGatewayTimeout:
			outcome = FalseHit
		}
		io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		resp.Body.Close()
		cancel(nil)
		return nil, outcome
	}
	resp.Body = &watched{ReadCloser: resp.Body, cancel: cancel, pause: idleFactor * timeout, bytes: &in.c.Bytes}
	return &Answer{Response: resp, Peer: cand.Peer, Requested: start, Arrived: time.Now()}, Hit
}

// request is an absolute-form GET sent to the candidate's address.
func (in *Inquiry) request(ctx context.Context, cand Candidate, conditions http.Header) *http.Request {
	h := in.q.Header
	if len(conditions) > 0 {
		h = h.Clone()
		for name, lines := range conditions {
			h[name] = lines
		}
	}
	u := *in.q.URL
	u.Fragment, u.RawFragment, u.User = "", "", nil
	host := in.q.Host
	if host == "" {
		host = u.Host
	}
	r := &http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Scheme: "http", Host: cand.Addr, Opaque: u.String()},
		Host:   host,
		Header: h,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if !cand.Squid {
		ctx = WithPeer(ctx, cand.Peer)
	}
	return r.WithContext(ctx)
}

type peerKey struct{}

// WithPeer says which peer a request under ctx is for, by its name in the
// cluster: a transport that checks names needs it.
func WithPeer(ctx context.Context, peer string) context.Context {
	return context.WithValue(ctx, peerKey{}, peer)
}

// PeerOf returns which peer a request is for; "" = it is no question to a peer.
func PeerOf(ctx context.Context) string {
	peer, _ := ctx.Value(peerKey{}).(string)
	return peer
}

// outcomeOf says what an error in place of an answer means.
func outcomeOf(ctx, asking context.Context, err error) Outcome {
	var op *net.OpError
	switch {
	case ctx.Err() != nil:
		return Canceled
	case errors.Is(context.Cause(asking), errNoFirstByte):
		return TimedOut
	case errors.As(err, &op) && op.Op == "dial":
		return Refused
	}
	return Failed
}

// isHit reports whether an answer comes from the store of the cache that gave
// it: the last member of Cache-Status (RFC 9211) is its own, and says so. What a
// sibling says of itself, an error say, is no answer to a question.
func isHit(h http.Header) bool {
	list, err := httpsfv.UnmarshalList(h["Cache-Status"])
	if err != nil || len(list) == 0 {
		return false
	}
	item, ok := list[len(list)-1].(httpsfv.Item)
	if !ok {
		return false
	}
	hit, _ := item.Params.Get("hit")
	return hit == true
}

// watched is a body that may not pause for long: a sibling that hangs in the
// middle must not hang our client.
type watched struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	pause  time.Duration
	bytes  *atomic.Uint64
	clock  *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	if w.clock == nil {
		w.clock = time.AfterFunc(w.pause, func() { w.cancel(errStalled) })
	} else {
		w.clock.Reset(w.pause)
	}
	n, err := w.ReadCloser.Read(p)
	w.clock.Stop()
	w.bytes.Add(uint64(n))
	return n, err
}

func (w *watched) Close() error {
	if w.clock != nil {
		w.clock.Stop()
	}
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}
