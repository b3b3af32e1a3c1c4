package engine

import (
	"bytes"
	"io"
	"net/http"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// serveStored answers r with a stored response, or with a slice and those after it: whole, in part, or by
// 304. via is the Cache-Status of a sibling that helped. It isn't ok, and nothing was sent, if the response
// can't be read.
func (c *Cache) serveStored(w http.ResponseWriter, r *request, f *found, st rfc9111.Status, via []string) (Result, bool) {
	p := f.entry.PartFor(r.Request, f.entry.whole(f.obj.Size()))
	if p.Status == http.StatusOK && !r.cc.OnlyIfCached {
		if res, ok := c.serveParts(w, r, f, st, via); ok {
			return res, true
		}
	}
	here, ok := c.mayBegin(r, f.entry, p, f.obj.Size())
	if !ok {
		return Result{}, false
	}
	var v bodies.View // nil = no byte of the body is sent
	var body io.Reader
	var sums bodies.Sums
	if here.Length > 0 && r.Method != http.MethodHead {
		var err error
		if v, err = c.store.Open(f.obj, f.about); err != nil {
			return Result{}, false
		}
		defer v.Close()
		if body, err = v.Source(here.Offset, here.Length); err != nil {
			return Result{}, false
		}
		if r.cc.OnlyIfCached { // as in requests of siblings
			sums = v.Sums()
		}
	}
	if r.cc.OnlyIfCached && r.Method == http.MethodGet {
		c.state(w.Header(), f.entry, sums)
	}
	res := Result{Status: p.Status}
	to := c.answerDirectly(w, r, f.entry, p, st, via, body, here.Length, &res)
	if to == nil {
		c.writeHeader(w, r, f.entry, p, st, via)
		if body != nil {
			res.Bytes, res.Err = c.writeBody(w, r, body, here.Length)
		}
	}
	if unread(res.Err) || res.Err == nil && body != nil && here.Length < p.Length {
		g := c.restOf(w, r, f.entry, f.obj.Size(), p, res, v.Sums())
		if to != nil {
			g.to = direct{to}
		}
		res = g.goOn()
	}
	res.Broken = res.Err != nil
	return res, true
}

// oneWrite is the length of a body up to which the server writes it together with its header.
const oneWrite = 2 << 10

// serveArriving answers r with a response whose body is still being received. It
// isn't ok, and nothing was sent, if the body can't be followed any more, or ends (Result.Err) before
// the first byte that r wants: the header is sent together with that byte.
func (c *Cache) serveArriving(w http.ResponseWriter, r *request, got *result, st rfc9111.Status, via []string) (Result, bool) {
	body, ok := got.into.Follow(r.Context())
	if !ok {
		return Result{}, false
	}
	defer body.Close()
	if whole := body.Whole(); len(whole) > oneWrite && r.Method == http.MethodGet {
		p := got.entry.PartFor(r.Request, int64(len(whole)))
		res := Result{Status: p.Status}
		if got.entry.of.size == 0 && c.answerDirectly(w, r, got.entry, p, st, via, bytes.NewBuffer(whole[p.Offset:p.Offset+p.Length]), p.Length, &res) != nil {
			res.Broken = res.Err != nil
			return res, true
		}
	}
	p := got.entry.PartFor(r.Request, got.entry.whole(got.length))
	here, ok := c.mayBegin(r, got.entry, p, got.length)
	if !ok {
		return Result{}, false
	}
	res := Result{Status: p.Status}
	begun := false
	begin := func() { begun = true; c.writeHeader(w, r, got.entry, p, st, via) }
	if r.open != nil && here.Length < p.Length && r.Method != http.MethodHead { // the sooner a second slice fits, the less comes in vain
		c.ahead(r, got.entry.of.first/SliceSize+2)
	}
	if r.Method == http.MethodHead || p.Length == 0 {
		begin()
		return res, true
	}
	from := &source{Reader: body}
	if here.Offset > 0 {
		_, res.Err = io.CopyN(io.Discard, from, here.Offset)
	}
	if res.Err == nil || res.Err == io.EOF {
		res.Bytes, res.Err = c.copyArriving(w, from, here.Length, begin)
	}
	failed := from.err != nil && r.Context().Err() == nil // otherwise the client has
	switch {
	case begun:
	case res.Err != nil:
		return Result{Err: res.Err}, false
	default: // an empty body of unknown length
		begin()
	}
	sums := body.Sums()
	body.Close() // so that it keeps no other follower waiting
	if unread(res.Err) {
		c.forget(got.body.f)
	}
	if failed || res.Err == nil && here.Length < p.Length {
		res = c.restOf(w, r, got.entry, got.length, p, res, sums).goOn()
	}
	res.Broken = res.Err != nil
	return res, true
}

// copyArriving copies n bytes of the body, all if n < 0, and flushes whenever it
// would have to wait for more. It calls begin before the first byte.
func (c *Cache) copyArriving(w io.Writer, body interface {
	io.Reader
	Ready() bool
}, n int64, begin func()) (done int64, err error) {
	flusher, _ := w.(http.Flusher)
	buf := c.buffer()
	defer c.spare(buf)
	for n < 0 || done < n {
		if flusher != nil && done > 0 && !body.Ready() {
			flusher.Flush()
		}
		want := buf
		if n >= 0 && n-done < int64(len(want)) {
			want = want[:n-done]
		}
		k, err := body.Read(want)
		if k > 0 {
			if done == 0 {
				begin()
			}
			k, werr := w.Write(want[:k])
			done += int64(k)
			if werr != nil {
				return done, werr
			}
		}
		switch {
		case err == io.EOF && (n < 0 || done == n):
			return done, nil
		case err == io.EOF:
			return done, io.ErrUnexpectedEOF
		case err != nil:
			return done, err
		}
	}
	return done, nil
}

// writeHeader sends the header of a response from the store.
func (c *Cache) writeHeader(w http.ResponseWriter, r *request, e *entry, p rfc9111.Part, st rfc9111.Status, via []string) {
	e.Fill(w.Header(), p, e.age(c.now()), !st.Hit && !st.Collapsed) // else it comes validated
	c.begin(w, p.Status, st, e.via, via, e.given, r.cc.OnlyIfCached)
}
