package engine

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A response in a coding that its origin does not produce is derived from the plain response, the
// one without a coding. That is fetched as for any other client, from the store, a sibling or the
// origin, and is stored. So the origin is asked once, however many codings clients accept. Siblings
// share only the plain response: digests with the others would be several times as large.
//
// The fetch of a derived response waits for that of the plain response. The reverse can't
// happen, since they have different identities, one with a coding and one without, for which asStored sees.

// An ownWriter receives the answer to a request of the cache itself. It implements [Refusable].
type ownWriter struct {
	Piped
	st    rfc9111.Status // this and the rest are set before the answer begins
	via   []string       // the Cache-Status of siblings that helped
	peer  string         // the sibling that gave it; "" = none
	stale bool           // since no origin answers
	given *given
}

func (in *ownWriter) Refused() {}

// derived is the body of a response made from the plain one.
type derived struct {
	io.ReadCloser
	from    *ownWriter
	recoded bool // false = it is the plain response, which is stored already if it may be
	cancel  context.CancelCauseFunc
}

func (d *derived) Close() error {
	err := d.ReadCloser.Close()
	d.cancel(nil)
	return err
}

// derive gets the plain response and recodes it. out must not be used afterwards.
func (s *sources) derive(out *http.Request, cancel context.CancelCauseFunc, recode func(*http.Response) bool) (*http.Response, error) {
	out.Header["Accept-Encoding"] = []string{"identity"}
	in := new(ownWriter)
	resp, err := in.Receive(out, func() error {
		q, r := s.c.request(out), &s.f.r
		q.cc, q.origin, q.alone = r.cc, r.origin, r.alone && r.origin // alone without that spares no other client
		res := s.c.get(in, &q)
		switch {
		case in.status == 0:
			return cmp.Or(res.Err, context.Cause(out.Context()), errStopped)
		case res.Broken:
			return cmp.Or(res.Err, io.ErrUnexpectedEOF)
		}
		return res.Err
	})
	if err != nil {
		cancel(nil)
		return nil, err
	}
	recoded := recode(resp)
	resp.Body = &derived{resp.Body, in, recoded, cancel}
	return resp, nil
}

// isDerived reports whether the response to r would be derived.
func (c *Cache) isDerived(r *request) bool {
	return c.cfg.Recode(r.Request, nil) != nil
}

// asStored makes r, for which a stored response must be validated, a request for the plain response if that is what is stored for
// it: since it was not worth recoding, there is no other. Otherwise a fetch of it would derive it from itself.
func (c *Cache) asStored(r *request, stored *found) {
	if _, fields := rfc9111.SplitIdentity(stored.obj.Key()); slices.Contains(fields, "Accept-Encoding") || !c.isDerived(r) {
		return
	}
	plain := *r.Request
	plain.Header = maps.Clone(r.Header)
	plain.Header["Accept-Encoding"] = []string{"identity"}
	r.Request = &plain
}

// byCoding adds Accept-Encoding to fields.
func byCoding(fields []string) []string {
	if slices.Contains(fields, "Accept-Encoding") {
		return fields
	}
	fields = append(slices.Clone(fields), "Accept-Encoding")
	slices.Sort(fields)
	return fields
}
