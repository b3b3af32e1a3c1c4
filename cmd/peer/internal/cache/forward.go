package cache

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// forward sends a request that the cache can't answer to the origin and its
// response, unstored, to the client. reason is for Cache-Status. An unsafe method
// that succeeds invalidates what is stored (RFC 9111 section 4.4).
func (c *Cache) forward(w http.ResponseWriter, r *http.Request, reason string) Result {
	return c.pass(w, r, reason, func(*answer) {})
}

// pass is forward that shows the answer to see before the client gets it.
func (c *Cache) pass(w http.ResponseWriter, r *http.Request, reason string, see func(*answer)) Result {
	if requestDirectives(r.Header).onlyIfCached && safe(r.Method) {
		res := c.refuse(w, r, http.StatusGatewayTimeout, status{detail: "only-if-cached"}, "no fresh copy here")
		res.Outcome = NotCached
		return res
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(c.stopped, func() { cancel(errStopped) })()
	out := r.Clone(ctx)
	out.RequestURI = ""
	out.Close = false
	addVia(out.Header, r.ProtoMajor, r.ProtoMinor, c.cfg.Name)
	body := &upload{ReadCloser: r.Body}
	if out.Body = body; r.ContentLength == 0 {
		out.Body = nil
	}
	a, err := c.sendInterim(w, r, out)
	st := status{fwd: reason}
	if err != nil {
		failed := body.failed.Load() != nil
		if r.Context().Err() != nil && !failed { // a body that fails may end the context, too
			return Result{Outcome: ClientGone, Err: err}
		}
		fail := c.failure(err)
		st.detail = fail.detail
		if failed {
			w.Header().Set("Connection", "close") // where the next request begins, nobody knows
		}
		res := c.refuse(w, r, fail.status, st, fail.text)
		res.Outcome, res.Err = GatewayError, err
		if fail.status < 500 {
			res.Outcome = ClientError
		}
		return res
	}
	if !safe(r.Method) && a.status >= 200 && a.status < 400 {
		c.invalidate(r.URL, a.header)
	}
	see(a)
	a.body, a.cancel = &closing{newPausing(a.body, c.cfg.BetweenBytes, cancel), a.body}, cancel
	st.fwdStatus = a.status
	res := c.relay(w, r, a, st)
	res.Outcome = Bypass
	if reason != "method" && reason != "bypass" {
		res.Outcome = OriginFetch
	}
	return res
}

// sendInterim is send that passes 1xx responses on to the client.
func (c *Cache) sendInterim(w http.ResponseWriter, r, out *http.Request) (a *answer, err error) {
	interims := make(chan interim, maxInterim)
	out = out.WithContext(traceInterim(out.Context(), interims))
	done := make(chan struct{})
	go func() {
		defer close(done)
		start := time.Now()
		resp, failed := c.send(out)
		if err = failed; err == nil {
			a = c.fromOrigin(resp, time.Since(start), c.now())
		}
	}()
	for {
		select {
		case i := <-interims:
			i.write(w, r)
		case <-done:
			drain(interims, w, r)
			return a, err
		}
	}
}

// invalidate removes the responses stored under the target URL of a successful
// unsafe request, and under those that its response points to on the same origin.
func (c *Cache) invalidate(target *url.URL, h http.Header) {
	c.Invalidations.Add(uint64(c.Purge(CanonicalURL(target))))
	for _, name := range []string{"Location", "Content-Location"} {
		ref, err := url.Parse(h.Get(name))
		if h.Get(name) == "" || err != nil {
			continue
		}
		other := CanonicalURL(target.ResolveReference(ref))
		if hostOf(other) == hostOf(CanonicalURL(target)) {
			c.Invalidations.Add(uint64(c.Purge(other)))
		}
	}
}

// relay sends an answer to one client as it comes.
func (c *Cache) relay(w http.ResponseWriter, r *http.Request, a *answer, st status) Result {
	defer a.close()
	h := w.Header()
	for name, lines := range a.header {
		h[name] = lines
	}
	if a.via != nil {
		h["Cache-Status"] = a.via
	}
	c.addStatus(h, st)
	addVia(h, 1, 1, c.cfg.Name)
	for name := range a.trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(a.status)
	res := Result{Status: a.status}
	if r.Method == http.MethodHead || noBody(a.status) {
		return res
	}
	res.Bytes, res.Err = copyFlushing(w, a.body, a.length < 0)
	res.Broken = res.Err != nil
	if !res.Broken {
		for name, lines := range a.trailer {
			h[name] = lines
		}
	}
	return res
}

// copyFlushing copies a body and, if it comes piece by piece, sends each piece on.
func copyFlushing(w http.ResponseWriter, body io.Reader, flush bool) (done int64, err error) {
	flusher, _ := w.(http.Flusher)
	if !flush || flusher == nil {
		return io.Copy(w, body)
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			k, werr := w.Write(buf[:n])
			done += int64(k)
			if werr != nil {
				return done, werr
			}
			flusher.Flush()
		}
		switch {
		case err == io.EOF:
			return done, nil
		case err != nil:
			return done, err
		}
	}
}
