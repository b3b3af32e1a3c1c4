package cache

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A response in a coding that its origin does not produce is derived from the one without a coding.
// That one comes as for any other client, from the store, a sibling or the origin, and is stored.
// So the origin is asked once, however many codings clients accept. Siblings share only the one
// without: digests with the others would be several times as large.
//
// The request for a derived response waits for the one for the other response. The reverse can't
// happen: their fetches have different identities, one with a coding and one without.

// inside takes the answer to a request of the cache's own. It implements [Refusable].
type inside struct {
	header http.Header
	sent   http.Header // as it was when the answer began
	status int
	begun  chan struct{} // closed when sent and all below are there
	body   *io.PipeWriter

	st    rfc9111.Status
	via   []string // the Cache-Status of siblings that helped
	peer  string   // the sibling that gave it; "" = none
	given *given
}

func (in *inside) Header() http.Header { return in.header }
func (in *inside) Refused()            {}

func (in *inside) WriteHeader(status int) {
	if status >= 200 && in.status == 0 {
		in.status, in.sent = status, in.header.Clone()
		close(in.begun)
	}
}

func (in *inside) Write(p []byte) (int, error) {
	in.WriteHeader(http.StatusOK)
	return in.body.Write(p)
}

// derived is the body of a response that was made of another.
type derived struct {
	io.ReadCloser
	from    *inside
	recoded bool // false = it is the other, which is kept already if it may be
	cancel  context.CancelCauseFunc
}

func (d *derived) Close() error {
	err := d.ReadCloser.Close()
	d.cancel(nil)
	return err
}

// derive gets the response without a coding, and recodes it. out is not used afterwards.
func (s *sources) derive(out *http.Request, cancel context.CancelCauseFunc, recode func(*http.Response) bool) (*http.Response, error) {
	out.Header["Accept-Encoding"] = []string{"identity"}
	r, w := io.Pipe()
	in := &inside{header: http.Header{}, begun: make(chan struct{}), body: w}
	failed := make(chan error, 1)
	go func() {
		q := s.c.request(out)
		res := s.c.get(in, &q)
		switch {
		case in.status == 0:
			failed <- cmp.Or(res.Err, context.Cause(out.Context()), errStopped)
		case res.Err != nil || res.Broken:
			w.CloseWithError(cmp.Or(res.Err, io.ErrUnexpectedEOF))
		default:
			w.Close()
		}
	}()
	select {
	case <-in.begun:
	case err := <-failed:
		cancel(nil)
		return nil, err
	}
	resp := &http.Response{StatusCode: in.status, Header: in.sent, ContentLength: -1, Body: r, Request: out}
	if n, err := strconv.ParseInt(in.sent.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = n
	}
	recoded := recode(resp)
	resp.Body = &derived{resp.Body, in, recoded, cancel}
	return resp, nil
}

// isDerived reports whether the response to r would be.
func (c *Cache) isDerived(r *request) bool {
	return c.cfg.Recode != nil && c.cfg.Recode(r.Request, nil) != nil
}

// byCoding adds to fields that by which codings are selected.
func byCoding(fields []string) []string {
	if slices.Contains(fields, "Accept-Encoding") {
		return fields
	}
	fields = append(slices.Clone(fields), "Accept-Encoding")
	slices.Sort(fields)
	return fields
}
