package cache

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Pass answers r as [Cache.Serve] does a request that no cache answers: by the origin.
func (c *Cache) Pass(w http.ResponseWriter, r *http.Request) Result {
	return c.pass(w, r, "bypass", nil)
}

// pass sends a request that the cache can't answer to the origin and its
// response, unstored, to the client. reason is for Cache-Status. An unsafe method
// that succeeds invalidates what is stored (RFC 9111 section 4.4). see, if not nil, is shown
// the answer before the client gets it.
func (c *Cache) pass(w http.ResponseWriter, r *http.Request, reason string, see func(*answer)) Result {
	if rfc9111.RequestDirectives(r.Header).OnlyIfCached && rfc9111.IsSafe(r.Method) {
		return c.notCached(w, r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(c.stopped, func() { cancel(errStopped) })()
	var interim interims
	interim.begin(w, r)
	out := r.Clone(interim.context(ctx))
	out.RequestURI = ""
	out.Close = false
	c.addVia(out.Header, r.ProtoMajor, r.ProtoMinor)
	if r.ContentLength == 0 {
		out.Body = nil
	} else {
		out.Body = &upload{ReadCloser: r.Body}
	}
	start := time.Now()
	resp, err := c.send(out, new(exchange), cancel)
	interim.end()
	st := rfc9111.Status{Fwd: reason}
	fail := func(err error) Result {
		broken := RequestBodyFailed(out) // which ends the request's context, too
		if r.Context().Err() != nil && !broken {
			return Result{Outcome: ClientGone, Err: err}
		}
		if broken {
			w.Header().Set("Connection", "close") // where the next request begins, nobody knows
		}
		told := c.failure(err)
		st.Detail = told.detail
		res := c.refuse(w, r, told.status, st, told.text)
		res.Outcome, res.Err = GatewayError, err
		if broken {
			res.Outcome = ClientError
		}
		return res
	}
	if err != nil {
		return fail(err)
	}
	a := c.fromOrigin(resp, time.Since(start), c.now())
	c.invalidate(r.Context(), c.cfg.Invalidates(r.Method, r.URL, a.status, a.header))
	if see != nil {
		see(a)
	}
	a.body, a.cancel = &closing{newPausing(a.body, c.cfg.BetweenBytesTimeout, cancel), a.body}, cancel
	st.FwdStatus = a.status
	res, ok := c.relay(w, r, a, st)
	if !ok {
		return fail(res.Err)
	}
	res.Outcome = Bypass
	if reason != "method" && reason != "bypass" {
		res.Outcome = OriginFetch
	}
	return res
}

// relay sends an answer to one client as it comes: its header together with the first
// byte. It isn't ok, and nothing was sent, if that does not come (Result.Err). Where
// nobody knows how much will come, as with events, the header waits for a second only.
func (c *Cache) relay(w http.ResponseWriter, r *http.Request, a *answer, st rfc9111.Status) (res Result, ok bool) {
	defer a.close()
	bodiless := r.Method == http.MethodHead || noBody(a.status)
	trailers := slices.Collect(maps.Keys(a.trailer)) // reading the body changes that
	var buf []byte
	var n int
	var err error
	begun := false
	if !bodiless {
		buf = c.buffer()
		defer c.spare(buf)
		if a.length < 0 {
			n, begun, err = c.relayEarly(w, a, trailers, st, buf)
		} else {
			n, err = a.body.Read(buf)
		}
		if n == 0 && err != nil && err != io.EOF && !begun {
			return Result{Err: err}, false
		}
	}
	if !begun {
		c.relayHeader(w, a, trailers, st)
	}
	res = Result{Status: a.status}
	if bodiless {
		return res, true
	}
	res.Bytes, res.Err = copyFlushing(w, a.body, buf, n, err, a.length)
	res.Broken = res.Err != nil
	if !res.Broken {
		for name, lines := range a.trailer {
			w.Header()[name] = lines
		}
	}
	return res, true
}

// relayEarly reads the first bytes of a body, and sends the header if they do not come within
// a second; early reports that it did.
func (c *Cache) relayEarly(w http.ResponseWriter, a *answer, trailers []string, st rfc9111.Status, buf []byte) (n int, early bool, err error) {
	var begin sync.Once
	clock := time.AfterFunc(stallTime, func() {
		begin.Do(func() {
			c.relayHeader(w, a, trailers, st)
			early = true
			http.NewResponseController(w).Flush() // an error shows at the next write
		})
	})
	n, err = a.body.Read(buf)
	clock.Stop()
	begin.Do(func() {}) // and waits for one that has begun
	return n, early, err
}

func (c *Cache) relayHeader(w http.ResponseWriter, a *answer, trailers []string, st rfc9111.Status) {
	h := w.Header()
	for name, lines := range a.header {
		h[name] = lines
	}
	if in, ok := w.(*inside); ok {
		in.st, in.via, in.given = st, a.via, a.given
		w.WriteHeader(a.status)
		return
	}
	delete(h, rfc9111.ClusterControl) // siblings are not answered so
	if a.via != nil {
		h["Cache-Status"] = a.via
	}
	c.addStatus(h, st)
	c.addVia(h, 1, 1)
	for _, name := range trailers {
		h.Add("Trailer", name)
	}
	w.WriteHeader(a.status)
}

const heldBack = 4 << 10 // bytes that a ResponseWriter may keep until there are more

// copyFlushing copies a body of length bytes (-1 = unknown), of which the first read
// brought n bytes of buf, and err. What comes piece by piece is sent on so.
func copyFlushing(w http.ResponseWriter, body io.Reader, buf []byte, n int, err error, length int64) (done int64, _ error) {
	flusher, _ := w.(http.Flusher)
	for {
		if n > 0 {
			k, werr := w.Write(buf[:n])
			done += int64(k)
			if werr != nil {
				return done, werr
			}
			if flusher != nil && (length < 0 || done < length && n < heldBack) {
				flusher.Flush()
			}
		}
		switch {
		case err == io.EOF:
			return done, nil
		case err != nil:
			return done, err
		}
		n, err = body.Read(buf)
	}
}
