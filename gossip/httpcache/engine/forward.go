package engine

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Pass passes r to the origin, as [Cache.Serve] does with a request that can't be answered from a
// cache.
func (c *Cache) Pass(w http.ResponseWriter, r *http.Request) Result {
	return c.pass(w, r, "bypass", nil)
}

// pass sends a request that the cache can't answer to the origin, and its
// response to the client without storing it. reason is for Cache-Status. A successful request with
// an unsafe method invalidates stored responses (RFC 9111 section 4.4). see, if not nil, is called
// with the answer before the client gets it.
func (c *Cache) pass(w http.ResponseWriter, r *http.Request, reason string, see func(*answer)) Result {
	if rfc9111.RequestDirectives(r.Header).OnlyIfCached && rfc9111.IsSafe(r.Method) {
		return c.NotCachedHere(w, r)
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
	st := rfc9111.Status{Fwd: reason}
	fail := func(err error) Result {
		err = Blame(out, err)
		if r.Context().Err() != nil && !IsClients(err) {
			up, ok := out.Body.(*upload)
			if !ok || up.whole() {
				return Result{Outcome: ClientGone, Err: err}
			}
			err = cmp.Or(up.failed.Load(), bodyError(err))
		}
		if out.Body != nil && IsClients(err) {
			w.Header().Set("Connection", "close") // the next request can't be located
		}
		return c.unanswered(w, r, st, err)
	}
	if r.ContentLength == 0 {
		out.Body, out.Trailer = nil, nil
	} else {
		http.NewResponseController(w).EnableFullDuplex() // otherwise the server of HTTP/1 drops what it has of the body when the answer begins
		body := r.Body
		if r.Trailer != nil {
			out.Trailer = trailing(r.Trailer)
			body = &trailed{body, r.Trailer, out.Trailer}
		}
		up := &upload{body: body, reading: make(chan struct{}, 1)}
		if r.ProtoMajor > 1 && (r.ContentLength < 0 || r.ContentLength > shortUpload) {
			up.interrupt = body // a stream may last for hours; by HTTP/1, closing waits for the reader
		}
		out.Body, out.GetBody = up, up.rewind
	}
	start := time.Now()
	resp, err := c.toOrigin(out, new(exchange), cancel)
	interim.end()
	if err != nil {
		return fail(err)
	}
	a := c.fromOrigin(resp, time.Since(start), c.now())
	c.invalidate(r.Context(), c.cfg.Invalidates(r, r.URL, a.status, a.header))
	if see != nil {
		see(a)
	}
	a.cancel = cancel
	c.pace(a)
	st.FwdStatus = a.status
	res, ok := c.relay(w, r, a, st)
	if !ok {
		return fail(res.Err)
	}
	res.Outcome, res.Said = Bypass, st
	if reason != "method" && reason != "bypass" {
		res.Outcome = OriginFetch
	}
	return res
}

// relay sends an answer to one client as it arrives: its header together with the first
// byte. It isn't ok, and nothing was sent, if that byte does not arrive (Result.Err). If the length
// is unknown, as for server-sent events, the header waits for that byte for a second only, and not
// at all if the length of the request is unknown, too: the client may wait for the header before it sends more.
func (c *Cache) relay(w http.ResponseWriter, r *http.Request, a *answer, st rfc9111.Status) (res Result, ok bool) {
	defer a.close()
	bodiless := r.Method == http.MethodHead || noBody(a.status)
	a.foresee()
	var buf []byte
	var n int
	var err error
	begun := false
	if !bodiless {
		buf = c.buffer()
		defer c.spare(buf)
		switch {
		case a.length < 0 && r.ContentLength < 0:
			begun = true
			c.relayHeader(w, a, st)
			http.NewResponseController(w).Flush() // an error shows at the next write
			n, err = a.body.Read(buf)
		case a.length < 0:
			n, begun, err = c.relayEarly(w, a, st, buf)
		default:
			n, err = a.body.Read(buf)
		}
		if n == 0 && err != nil && err != io.EOF && !begun {
			return Result{Err: err}, false
		}
	}
	if !begun {
		c.relayHeader(w, a, st)
	}
	res = Result{Status: a.status}
	if bodiless {
		return res, true
	}
	res.Bytes, res.Err = copyFlushing(w, a.body, buf, n, err, a.length)
	res.Broken = res.Err != nil
	if !res.Broken {
		a.relayTrailer(w)
	}
	return res, true
}

// relayEarly reads the first bytes of a body, and sends the header if they do not arrive within
// a second; early reports that it did.
func (c *Cache) relayEarly(w http.ResponseWriter, a *answer, st rfc9111.Status, buf []byte) (n int, early bool, err error) {
	var begin sync.Once
	clock := time.AfterFunc(stallTime, func() {
		begin.Do(func() {
			c.relayHeader(w, a, st)
			early = true
			http.NewResponseController(w).Flush() // an error shows at the next write
		})
	})
	n, err = a.body.Read(buf)
	clock.Stop()
	begin.Do(func() {}) // waits if the header is being sent
	return n, early, err
}

func (c *Cache) relayHeader(w http.ResponseWriter, a *answer, st rfc9111.Status) {
	h := w.Header()
	for name, lines := range a.header {
		h[name] = lines
	}
	if h["Age"] != nil { // it comes from a cache, and both the header and the first byte may have been long on their way
		now := newEntry(a.response(), a.received, nil)
		h["Age"] = []string{strconv.FormatInt(int64(now.age(c.now())/time.Second), 10)}
	}
	for _, name := range a.announced {
		h.Add("Trailer", name)
	}
	via := c.via
	if before := h["Via"]; before != nil {
		via = slices.Concat(before, via)
	}
	c.begin(w, a.status, st, via, a.via, a.given, false)
}

// begin sends the header of an answer of a source. It adds nothing but via, which ends with this cache, and
// Cache-Status, to that of siblings in from. A Content-Type is not for the server to guess (RFC 9110 section 8.3).
func (c *Cache) begin(w http.ResponseWriter, status int, st rfc9111.Status, via, from []string, by *given, peer bool) {
	h := w.Header()
	if in, ok := w.(*ownWriter); ok {
		in.st, in.via, in.given = st, from, by
	} else {
		h["Via"] = via
		if !peer { // only siblings get it
			delete(h, rfc9111.ClusterControl)
		}
		if from != nil {
			h["Cache-Status"] = from
		}
		c.AddStatus(h, st)
		if h["Content-Type"] == nil {
			h["Content-Type"] = nil
		}
	}
	w.WriteHeader(status)
}

const heldBack = 4 << 10 // bytes that a ResponseWriter may buffer

// copyFlushing copies a body of length bytes (-1 = unknown). The first read has returned n bytes in
// buf, and err. It flushes after each short piece.
func copyFlushing(w http.ResponseWriter, body io.Reader, buf []byte, n int, err error, length int64) (done int64, _ error) {
	flusher, _ := w.(http.Flusher)
	for {
		if n > 0 {
			k, werr := w.Write(buf[:n])
			done += int64(k)
			if werr != nil {
				return done, werr
			}
			if flusher != nil && (length < 0 || done < length && n <= heldBack) {
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

// forwardHead passes a HEAD to the origin. Its response may freshen or invalidate the stale response
// that is stored for GET (RFC 9111 section 4.3.5); stored may be nil.
func (c *Cache) forwardHead(w http.ResponseWriter, r *request, stored *found, reason string) Result {
	return c.pass(w, r.Request, reason, func(a *answer) {
		c.saw(r, a.response())
		if a.status != http.StatusOK || r.cc.NoStore {
			return
		}
		if stored == nil {
			c.mu.Lock()
			f := c.arrivingAt(c.fetchKey(r, nil, r.fields))
			c.mu.Unlock()
			if f != nil && !f.result.entry.SameBytes(a.response()) {
				c.replacedBy(a.response(), r.url, f.result.id, c.tick().steady)
			}
			return
		}
		if stored.entry.MatchesHead(a.header, stored.entry.whole(stored.obj.Size())) {
			if e := c.freshened(stored.entry, a); r.mayStore(e.Response) {
				c.store.Update(stored.obj, c.meta(e, new(bytes.Buffer)))
				return
			}
		}
		c.store.DeleteObject(stored.obj)
		c.replacedBy(a.response(), r.url, stored.obj.Key(), c.tick().steady)
	})
}
