package cache

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

// serveStored answers r with a stored response: whole, in part, or by 304. via
// is the Cache-Status of the caches that helped. It isn't ok, and nothing was
// sent, if the response can't be read.
func (c *Cache) serveStored(w http.ResponseWriter, r *request, f *found, st status, via []string) (Result, bool) {
	p := plan(r, f.entry, f.obj.Size())
	access := store.Describe
	if p.length > 0 && r.Method != http.MethodHead {
		access = store.Serve
		if r.cc.onlyIfCached { // siblings ask so
			access = store.Share
		}
	}
	v, err := c.store.Open(f.obj, access)
	if err != nil {
		return Result{}, false
	}
	defer v.Close()
	if access != store.Describe && v.Check(p.offset) != nil {
		return Result{}, false
	}
	res := Result{Status: p.status}
	if c.answerDirectly(w, r, f, p, st, via, &v, &res) {
		return res, true
	}
	c.writeHeader(w, r, f.entry, p, st, via)
	if access != store.Describe {
		res.Bytes, res.Err = writeBody(w, r, &v, p)
		c.finishStored(w, r, f, &v, p, &res)
		res.Broken = res.Err != nil
	}
	return res, true
}

// serveArriving answers r with a response whose body is still being received. It
// isn't ok, and nothing was sent, if that is over already, or ends (Result.Err) before
// the first byte that r wants: the header goes out together with it.
func (c *Cache) serveArriving(w http.ResponseWriter, r *request, got *result, st status, via []string) (Result, bool) {
	body, ok := got.into.Follow(r.Context())
	if !ok {
		return Result{}, false
	}
	defer body.Close()
	p := plan(r, got.entry, got.length)
	content := r.Method != http.MethodHead && p.length != 0
	res := Result{Status: p.status}
	if content {
		if _, res.Err = io.CopyN(io.Discard, body, p.offset); res.Err == nil {
			res.Err = body.Wait()
		}
		if res.Err != nil && res.Err != io.EOF && !errors.Is(res.Err, store.ErrCorrupt) {
			return Result{Err: res.Err}, false
		}
	}
	c.writeHeader(w, r, got.entry, p, st, via)
	if !content {
		return res, true
	}
	if !errors.Is(res.Err, store.ErrCorrupt) {
		res.Bytes, res.Err = copyArriving(w, body, p.length)
	}
	if errors.Is(res.Err, store.ErrCorrupt) {
		c.forget(got.body.f)
		sums := body.Sums()
		body.Close() // it keeps nobody waiting
		c.finish(w, r, cutAnswer{got.id, got.entry.representation(got.length), sums, p}, &res)
	}
	res.Broken = res.Err != nil
	return res, true
}

// copyArriving copies n bytes of the body, all if n < 0, and flushes whenever it
// would have to wait for more.
func copyArriving(w io.Writer, body interface {
	io.Reader
	Ready() bool
}, n int64) (done int64, err error) {
	flusher, _ := w.(http.Flusher)
	buf := make([]byte, 32<<10)
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
func (c *Cache) writeHeader(w http.ResponseWriter, r *request, e *entry, p answerPlan, st status, via []string) {
	h := w.Header()
	for name, lines := range e.serve {
		h[name] = lines
	}
	if !st.hit && !st.collapsed { // it comes validated
		for _, name := range e.cc.noCacheFields {
			if lines, ok := e.header[name]; ok {
				h[name] = lines
			}
		}
	}
	if via != nil {
		h["Cache-Status"] = via
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // keeps net/http from guessing one
	}
	c.addStatus(h, st)
	h["Age"] = []string{strconv.FormatInt(seconds(min(e.age(c.now()), maxDelta)), 10)}
	switch p.status {
	case http.StatusNotModified:
		notModifiedHeader(h)
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		h["Content-Range"] = []string{p.contentRange}
		fallthrough
	default:
		if p.length >= 0 && !noBody(p.status) {
			h["Content-Length"] = []string{strconv.FormatInt(p.length, 10)}
		}
	}
	w.WriteHeader(p.status)
}

// notModifiedHeader drops what a 304 need not repeat (RFC 9110 section 15.4.5).
func notModifiedHeader(h http.Header) {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Range"} {
		delete(h, name)
	}
	if h["Etag"] != nil {
		delete(h, "Last-Modified")
	}
}
