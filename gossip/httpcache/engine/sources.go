package engine

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// An answer is a response from the origin or a sibling. Its header has no
// connection fields. It must be closed.
type answer struct {
	status    int
	header    http.Header
	trailer   *http.Header // filled when the body was read; nil = none
	announced []string     // trailers that its header named, see foresee
	body      io.ReadCloser
	length    int64         // of the body; -1 = unknown
	delay     time.Duration // from the request to the header
	received  moment

	sibling  *sibling.Answer // nil = from the origin
	via      []string        // the sibling's Cache-Status, including its own member
	given    *given          // by a sibling; nil = it is the origin's
	derived  *derived        // from another response; nil = it is not
	unusable bool            // the sibling's statement of the body is invalid
	stale    bool            // it is a sibling's, and is accepted since the origin is down

	described *rfc9111.Response // see response
	own       rfc9111.Response  // its memory
	paced     paced             // body, where it is passed on

	cancel context.CancelCauseFunc
}

// response describes the answer without its body.
func (a *answer) response() *rfc9111.Response {
	if a.described == nil {
		a.own = *rfc9111.NewResponse(a.status, a.header, a.delay, a.received.wall)
		a.described = &a.own
	}
	return a.described
}

func (a *answer) representation() representation {
	return representation{a.response(), a.bodyLength()}
}

// bodyLength returns the length of the body that an answer to GET has; -1 = unknown.
func (a *answer) bodyLength() int64 {
	if noBody(a.status) {
		return 0
	}
	return a.length
}

// close ends the answer, even if its body was not read to the end.
func (a *answer) close() {
	a.body.Close()
	a.cancel(nil)
}

// arriving reports whether the sender is itself waiting for the body.
func (a *answer) arriving() bool {
	return len(a.via) > 0 && strings.HasSuffix(a.via[len(a.via)-1], "detail=arriving")
}

// peer returns the name of the sibling that gave the answer, and its Cache-Status.
func (a *answer) peer() (string, []string) {
	switch {
	case a.derived != nil:
		return a.derived.from.peer, a.via
	case a.sibling == nil:
		return "", nil
	}
	return a.sibling.Peer, a.via
}

// sources are the sources of a fetch: the siblings whose digests
// match, best first, then the origin. They are used by one goroutine at a time.
type sources struct {
	c         *Cache
	f         *fetch
	siblings  *sibling.Lookup       // nil = siblings are not asked
	header    http.Header           // of requests to siblings; nil = none
	request   sibling.LookupRequest // of siblings
	accepted  *answer               // the sibling's answer that was accepted last
	plain     http.Header           // of requests to the origin, see plainly; nil = the client's
	exchange  exchange              // memory for the first exchange with the origin
	exchanged atomic.Bool           // it is used
}

func (c *Cache) sources(f *fetch) *sources {
	s := &f.sources
	*s = sources{c: c, f: f}
	r := &f.r
	if f.r.origin || !c.asksSiblings(r) || c.isDerived(r) { // for a derived response, the fetch of the plain one asks siblings
		return s
	}
	header := c.siblingHeader(r)
	if !peering.NameInvalidations(header, c.cfg.Cluster, r.plain) {
		return s
	}
	s.header = header
	s.request = sibling.LookupRequest{
		URL:        r.URL,
		Host:       r.Host,
		Header:     header,
		Identities: c.identities(r),
		Accept: func(got *sibling.Answer) bool {
			s.accepted = c.fromSibling(got)
			return s.acceptable(s.accepted, got.Request.Header)
		},
		Origin: func(ctx context.Context, conditions http.Header) (*http.Response, error) {
			return s.fromOrigin(ctx, func(error) {}, conditions) // next ends ctx
		},
		InFlight: s.inFlight,
	}
	s.siblings = c.cfg.Siblings.Lookup(s.request)
	return s
}

// asksSiblings reports whether siblings may be asked for the response to r. They may not if the
// client accepts no cached response, or if the request has credentials, which only the origin gets.
func (c *Cache) asksSiblings(r *request) bool {
	return c.cfg.Siblings != nil && !r.reload() && r.Header["Authorization"] == nil
}

// siblingHeader returns the header of a request to siblings. It includes the fields by which
// responses of the host are known to vary.
func (c *Cache) siblingHeader(r *request) http.Header {
	fields := make([]string, 0, 8)
	for _, sets := range [...][][]string{c.variants.Rules(r.url), c.hints.Guesses(r.url)} {
		for _, set := range sets {
			fields = append(fields, set...)
		}
	}
	h := peering.LookupHeader(r.Request, &r.cc, c.cfg.Name, fields...)
	delete(h, "Cookie")
	return h
}

// inFlight returns the sibling that is fetching the response, or has just fetched it.
func (s *sources) inFlight(ctx context.Context, fetch time.Duration) (first sibling.Peer, ok bool) {
	if c, f := s.c.cfg.Coalescer, s.f; c != nil && f.key != "" && f.stored == nil {
		return c.InFlight(ctx, f.key, fetch)
	}
	return first, false
}

// next returns the next acceptable answer of a sibling. Once no sibling is left, each call asks the
// origin. The answer ends with ctx.
func (s *sources) next(ctx context.Context, conditions http.Header) (*answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a, err := s.ask(ctx, cancel, conditions)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	a.cancel = cancel
	return a, nil
}

func (s *sources) ask(ctx context.Context, cancel context.CancelCauseFunc, conditions http.Header) (*answer, error) {
	c := s.c
	if s.siblings == nil {
		start := time.Now()
		resp, err := s.fromOrigin(ctx, cancel, conditions)
		if err != nil {
			return nil, err
		}
		return c.fromOrigin(resp, time.Since(start), c.now()), nil
	}
	got, err := s.siblings.Next(ctx, conditions)
	switch {
	case err != nil:
		return nil, err
	case got.Peer != "":
		return s.accepted, nil
	}
	return c.fromOrigin(got.Response, got.Arrived.Sub(got.Requested), c.now().ago(time.Since(got.Arrived))), nil
}

// acceptable reports whether a sibling's copy is usable, and fresh by our clock.
func (s *sources) acceptable(a *answer, sent http.Header) bool {
	resp, ok := s.usable(a, sent)
	use, _ := resp.Reuse(&s.f.r.cc, resp.InitialAge)
	return ok && a.given.left > 0 && use == rfc9111.ServeFresh
}

// usable reports whether a sibling's copy, which it describes as resp, can be shared, is the variant
// that the client selects, and is not older than an invalidation here. sent is the header
// of the request to the sibling.
//
// The request named the cluster's invalidations that concern the copy. A member that answered has
// applied them, so it got the copy later, whatever Age says (PROTOCOL.md, section 12.3). Only what
// siblings can't know is compared by the clock: purges of this peer alone and, if the sibling is not
// a member, all invalidations.
func (s *sources) usable(a *answer, sent http.Header) (resp *rfc9111.Response, ok bool) {
	c, r := s.c, &s.f.r
	resp = s.whole(a)
	if a.unusable || !resp.Storable(nil, false) || c.outdated(s.f, resp) || c.olderThanSeen(r, resp) ||
		!rfc9111.SameVariant(rfc9111.VaryFields(a.header), sent, r.Header) { // it is selected by a field that we didn't pass on
		return resp, false
	}
	generated := a.received.ago(resp.InitialAge + time.Second) // or later: Age is in whole seconds
	return resp, !c.purged.has(r.url, a.header, generated) && !(a.sibling.Outside && c.invalidated.has(r.url, a.header, generated))
}

// whole describes the response that an answer is or, for a 304 or a slice, the one that it refers to.
func (s *sources) whole(a *answer) *rfc9111.Response {
	status := a.status
	switch {
	case status == http.StatusNotModified && s.f.stored != nil:
		status = s.f.stored.entry.Status
	case status == http.StatusPartialContent && s.f.r.slice > 0:
		status = http.StatusOK
	}
	if status == a.status {
		return a.response()
	}
	return rfc9111.NewResponse(status, a.header, a.delay, a.received.wall)
}

// fromSibling makes an answer of a sibling's. The sibling's member of Cache-Status describes this
// exchange and isn't stored with the response.
func (c *Cache) fromSibling(got *sibling.Answer) *answer {
	h := got.Header
	rfc9111.RemoveHopByHop(h)
	a := &answer{status: got.StatusCode, header: h, trailer: &got.Trailer, body: got.Body, length: got.ContentLength,
		delay: got.Arrived.Sub(got.Requested), received: c.now().ago(time.Since(got.Arrived)), sibling: got, via: h["Cache-Status"]}
	if kept := withoutLast(a.via); len(kept) > 0 {
		h["Cache-Status"] = kept
	} else {
		delete(h, "Cache-Status")
	}
	if c.stated(a); Broken(got.Request, got.Response) != nil {
		a.unusable = true
	}
	return a
}

// withoutLast drops the last member of a list field.
func withoutLast(lines []string) []string {
	members := slices.Collect(rfc9111.Members(lines))
	return members[:max(0, len(members)-1)]
}

// refuses reports whether an answer may say something of the client's request instead of the object.
func (a *answer) refuses() bool {
	switch a.status {
	case http.StatusNotFound, http.StatusGone, http.StatusRequestedRangeNotSatisfiable:
		return false
	}
	return a.status >= 400 && a.status < 500 && !a.passing()
}

// plainly reduces further requests to the origin to those fields of the client's that select the response of a sibling,
// if the origin has answered a by a refusal: what others get of the response must not depend on one client's other fields.
// It reports whether that is a change.
func (s *sources) plainly(a *answer, resp *rfc9111.Response) bool {
	if s.plain != nil || !a.refuses() || a.status == resp.Status {
		return false
	}
	r := &s.f.r
	s.plain = peering.LookupHeader(r.Request, &r.cc, s.c.cfg.Name, rfc9111.VaryFields(resp.Header)...)
	delete(s.plain, "Cache-Control")
	delete(s.plain, "Via")
	return true
}

// fromOrigin sends a GET for the whole response to the origin, under ctx, which cancel ends.
func (s *sources) fromOrigin(ctx context.Context, cancel context.CancelCauseFunc, conditions http.Header) (*http.Response, error) {
	c, r := s.c, &s.f.r
	h := withoutConditions(r.Header)
	if s.plain != nil {
		h = maps.Clone(s.plain)
	}
	for name, lines := range conditions {
		h[name] = lines
	}
	x := &s.exchange
	if s.exchanged.Swap(true) {
		x = new(exchange)
	}
	out := &x.request
	*out = *r.WithContext(s.f.interim.context(ctx)) // with the client's address, which a transport may pass on to the origin
	out.Method, out.Header, out.Body, out.Trailer, out.RequestURI, out.Close = http.MethodGet, h, nil, nil, "", false
	out.Proto, out.ProtoMajor, out.ProtoMinor = "HTTP/1.1", 1, 1
	if recode := c.cfg.Recode(out, out.Header); recode != nil {
		return s.derive(out, cancel, recode)
	}
	c.addVia(h, r.ProtoMajor, r.ProtoMinor)
	return c.toOrigin(out, x, cancel)
}

// noUserAgent keeps net/http from adding a User-Agent.
var noUserAgent = []string{""}

// toOrigin sends a request to the origin, and makes x the body of the response. The transport sees to
// it that the header comes in time: it knows of which origin, and may ask another one then. cancel
// ends the request's context.
func (c *Cache) toOrigin(out *http.Request, x *exchange, cancel context.CancelCauseFunc) (*http.Response, error) {
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = noUserAgent
	}
	c.OriginRequests.Add(1)
	upload, uploads := out.Body.(*upload)
	if uploads {
		defer upload.time(c.tuning.Load().SendTimeout, cancel)()
	}
	resp, err := c.cfg.Transport.RoundTrip(out)
	if err != nil {
		err = Blame(out, err)
	} else if err = Broken(out, resp); err != nil {
		resp.Body.Close()
	}
	switch {
	case err == nil:
		n := &c.BytesFromOrigins
		if counts, ok := resp.Body.(interface{ CountTo(*atomic.Uint64) }); ok { // it counts the bytes itself, before they are recoded
			counts.CountTo(n)
			n = new(atomic.Uint64)
		}
		x.ReadCloser, x.n, x.cancel = resp.Body, n, cancel
		resp.Body = x
		return resp, nil
	case IsClients(err):
	case context.Cause(out.Context()) == errSend:
		err = errSend
		c.OriginErrors.Add(1)
	case out.Context().Err() != nil: // the answer is no longer wanted
	default:
		c.OriginErrors.Add(1)
	}
	cancel(nil)
	return nil, &originError{host: out.URL.Host, err: err}
}

// fromOrigin makes an answer of the origin's response.
func (c *Cache) fromOrigin(resp *http.Response, delay time.Duration, received moment) *answer {
	rfc9111.RemoveHopByHop(resp.Header)
	delete(resp.Header, statementField)                           // only siblings may send it
	if _, ok := rfc9111.ParseDate(resp.Header.Get("Date")); !ok { // RFC 9110 section 6.6.1
		resp.Header["Date"] = []string{received.wall.UTC().Format(http.TimeFormat)}
	}
	var a *answer
	if x, ok := resp.Body.(*exchange); ok {
		a = &x.answer
	} else {
		a = new(answer)
	}
	*a = answer{status: resp.StatusCode, header: resp.Header, trailer: &resp.Trailer, length: resp.ContentLength,
		body: resp.Body, delay: delay, received: received}
	if d, ok := resp.Body.(*derived); ok {
		a.derived, a.via, a.given, a.stale = d, d.from.via, d.from.given, d.from.stale
	}
	return a
}
