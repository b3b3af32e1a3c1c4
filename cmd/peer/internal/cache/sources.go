package cache

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// sources are where a flight can get its response: the siblings whose digests
// match, best first, then the origin.
type sources struct {
	c        *Cache
	f        *flight
	inquiry  *sibling.Inquiry // nil = no siblings for this request
	accepted *answer          // of the sibling whose answer was accepted last
	crowded  bool             // it was asked who else fetches
}

func (c *Cache) sources(f *flight) *sources {
	s := &sources{c: c, f: f}
	r := f.r
	if !c.asksSiblings(r) {
		return s
	}
	s.inquiry = c.cfg.Siblings.Ask(sibling.Question{
		URL:        r.URL,
		Host:       r.Host,
		Header:     c.siblingHeader(r),
		Identities: c.identities(r),
		Accept: func(got *sibling.Answer) bool {
			s.accepted = fromSibling(got)
			return s.acceptable(s.accepted, got.Request.Header)
		},
		Origin: s.fromOrigin,
	})
	return s
}

// asksSiblings reports whether siblings may be asked. They answer for what the
// client may get from a cache; a request with credentials stays between the
// client and the origin.
func (c *Cache) asksSiblings(r *request) bool {
	return c.cfg.Siblings != nil && !r.cc.noCache && r.cc.maxAge != 0 && r.Header["Authorization"] == nil
}

// siblingFields are sent to siblings whether or not a response is known to vary
// by them.
var siblingFields = []string{"Accept", "Accept-Encoding", "Accept-Language", "Accept-Charset", "User-Agent", "Origin"}

// siblingHeader is the header of a question to siblings: what selects the
// variant and how fresh it must be. The rest of the client's request, its
// cookies above all, is not for them.
func (c *Cache) siblingHeader(r *request) http.Header {
	h := http.Header{}
	copyField := func(name string) {
		if lines := r.Header[name]; lines != nil {
			h[name] = lines
		}
	}
	for _, name := range siblingFields {
		copyField(name)
	}
	for _, fields := range slices.Concat(c.rules.of(r.url), c.hints.guesses(r.url)) {
		for _, name := range fields {
			copyField(name)
		}
	}
	cc := "only-if-cached"
	if r.cc.maxAge != unset {
		cc += ", max-age=" + strconv.FormatInt(seconds(r.cc.maxAge), 10)
	}
	if r.cc.minFresh != unset {
		cc += ", min-fresh=" + strconv.FormatInt(seconds(r.cc.minFresh), 10)
	}
	h["Cache-Control"] = []string{cc}
	h["Via"] = r.Header["Via"]
	addVia(h, r.ProtoMajor, r.ProtoMinor, c.cfg.Name)
	return h
}

// next returns the next sibling's answer that will do, or the origin's.
func (s *sources) next(ctx context.Context, conditions http.Header) (*answer, error) {
	if s.inquiry == nil {
		requested := timeNow()
		resp, err := s.fromOrigin(ctx, conditions)
		if err != nil {
			return nil, err
		}
		return s.c.received(resp, requested, timeNow()), nil
	}
	if crowd := s.c.cfg.Crowd; crowd != nil && !s.crowded && s.inquiry.Left() == 0 && s.f.key != "" && s.f.stored == nil {
		s.crowded = true
		if first, ok := crowd.Fetching(ctx, s.f.key); ok {
			s.inquiry.Also(first)
		}
	}
	got, err := s.inquiry.Next(ctx, conditions)
	switch {
	case err != nil:
		return nil, err
	case got.Peer != "":
		return s.accepted, nil
	}
	return s.c.received(got.Response, got.Requested, got.Arrived), nil
}

// acceptable reports whether a sibling's copy is one that we would serve
// ourselves: shareable, fresh by our clock, the variant that the client selects,
// and not older than what an unsafe request removed here.
func (s *sources) acceptable(a *answer, sent http.Header) bool {
	r := s.f.r
	status := a.status
	if status == http.StatusNotModified {
		if s.f.stored == nil {
			return false
		}
		status = s.f.stored.entry.status
	}
	if !storable(http.Header{}, &directives{}, status, a.header) {
		return false
	}
	e := newEntry(status, a.header, headerAge(a.header), a.requested, a.received, "")
	if v, _ := e.judge(&r.cc, a.received); v != useFresh || s.c.graves.buried(r.url, e.generated()) {
		return false
	}
	for _, name := range varyFields(a.header) {
		if normalize(name, sent[name]) != normalize(name, r.Header[name]) {
			return false // selected by a field that we didn't pass on
		}
	}
	return true
}

// fromSibling takes a sibling's answer. Its own member of Cache-Status tells of
// this exchange and isn't kept with the response.
func fromSibling(got *sibling.Answer) *answer {
	h := got.Header
	RemoveHopByHop(h)
	a := &answer{status: got.StatusCode, header: h, trailer: got.Trailer, body: got.Body, length: got.ContentLength,
		requested: got.Requested, received: got.Arrived, sibling: got, via: h["Cache-Status"]}
	if kept := withoutLast(a.via); len(kept) > 0 {
		h["Cache-Status"] = kept
	} else {
		delete(h, "Cache-Status")
	}
	return a
}

// withoutLast drops the last member of a list field.
func withoutLast(lines []string) []string {
	var members []string
	for _, line := range lines {
		for line != "" {
			var m string
			if m, line = cutList(line); m != "" {
				members = append(members, m)
			}
		}
	}
	if len(members) == 0 {
		return nil
	}
	return members[:len(members)-1]
}

// fromOrigin sends a GET for the whole response to the origin.
func (s *sources) fromOrigin(ctx context.Context, conditions http.Header) (*http.Response, error) {
	c, r := s.c, s.f.r
	h := withoutConditions(r.Header)
	for name, lines := range conditions {
		h[name] = lines
	}
	addVia(h, r.ProtoMajor, r.ProtoMinor, c.cfg.Name)
	out := (&http.Request{
		Method: http.MethodGet,
		URL:    r.URL,
		Host:   r.Host,
		Header: h,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		RemoteAddr: r.RemoteAddr, // for a transport that tells the origin of the client
	}).WithContext(traceInterim(ctx, s.f.interim))
	return c.send(out)
}

// send sends a request to the origin.
func (c *Cache) send(out *http.Request) (*http.Response, error) {
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // keeps net/http from adding one
	}
	c.OriginRequests.Add(1)
	resp, err := c.cfg.Origin.RoundTrip(out)
	if err != nil {
		if body := failedBody(out); body != nil {
			return nil, body
		}
		if context.Cause(out.Context()) != sibling.ErrOutrun {
			c.OriginErrors.Add(1)
		}
		return nil, &originError{host: out.URL.Host, err: err}
	}
	return resp, nil
}

// received takes the origin's answer.
func (c *Cache) received(resp *http.Response, requested, received time.Time) *answer {
	RemoveHopByHop(resp.Header)
	if headerTime(resp.Header, "Date").IsZero() { // RFC 9110 section 6.6.1
		resp.Header["Date"] = []string{received.UTC().Format(http.TimeFormat)}
	}
	return &answer{status: resp.StatusCode, header: resp.Header, trailer: resp.Trailer, length: resp.ContentLength,
		body: counted{resp.Body, &c.BytesFromOrigins}, requested: requested, received: received}
}
