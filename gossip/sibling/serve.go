package sibling

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// Wrap is [Cache.Serve] as middleware, for a handler that makes the answers.
func (c *Cache) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = c.Serve(w, r, func(w http.ResponseWriter, r *http.Request) error {
			next.ServeHTTP(w, r)
			return nil
		})
	})
}

// ServeHTTP answers siblings' questions, and refuses with 403 what is none.
func (c *Cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == CoalescePath && c.Coalescer != nil {
		c.Coalescer.ServeHTTP(w, r)
		return
	}
	if c.Siblings != nil && !IsQuestion(r) { // nor is anything removed by it
		refuse(w)
		return
	}
	_ = c.Serve(w, r, nil)
}

// Serve answers a GET or HEAD from the Store, from a sibling, or by next, and keeps
// what next writes if every cache may, and for how long is said: status 200, under
// "public" or "s-maxage" with a lifetime, without Vary and Set-Cookie. It is handed on
// as it is written. Ranges and conditions of what is stored Serve answers itself.
//
// A request with Cache-Control, such as "no-cache", goes to next, whose answer takes
// the place of what is stored. One of another method, with a body, Authorization,
// Upgrade or "no-store" goes there as if there were no cache; when a method that may
// change the object ("POST", say) has not failed it is removed, here and at siblings ([Cache.Remove]),
// before Serve returns or a second later. An error is next's, and what that wrote is not
// kept. Every answer ends Cache-Status by a member that says what became of the request.
//
// An object's identity is Cache.Identity or, without it, "GET" and its URL, of the scheme
// https if the request came by TLS and of the host that it names. A sibling's question is answered from the
// Store or by 504.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request) error) error {
	if c.Siblings == nil || c.Store == nil {
		http.Error(w, ErrNoCache.Error(), http.StatusInternalServerError)
		return ErrNoCache
	}
	u, identity := requested(r)
	if c.Identity != nil && u.Host != valueHost {
		identity = c.Identity(r)
	}
	if c.Coalescer != nil && r.URL.Path == CoalescePath {
		c.Coalescer.ServeHTTP(w, r)
		return nil
	}
	if IsQuestion(r) {
		c.answer(w, r, identity)
		return nil
	}
	if !isCacheable(r) {
		reason := "bypass"
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			reason = "method"
		}
		if rfc9111.IsSafe(r.Method) {
			c.forwarded(w, reason)
			return next(w, r)
		}
		rec := &recorder{ResponseWriter: w, room: -1, forwarded: c.name() + "; fwd=" + reason}
		err := next(rec, r)
		if len(rfc9111.Invalidated(r.Method, u, max(rec.status, http.StatusOK), rec.Header())) > 0 {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), removeWait)
			defer cancel()
			_ = c.Remove(ctx, identity) // who is late hears of it
		}
		return err
	}
	c.counts.gets.Add(1)
	reuse := r.Header["Cache-Control"] == nil && r.Header["Pragma"] == nil
	if reuse {
		if o := c.fresh(identity); o != nil {
			c.counts.hits.Add(1)
			o.write(w, r, c.name()+"; hit")
			return nil
		}
	}
	reason := "uri-miss"
	if !reuse {
		reason = "request"
	}
	if r.Method == http.MethodHead {
		c.forwarded(w, reason)
		return next(w, r)
	}
	var f *flight
	p := c.gate.enter(identity)
	if reuse {
		f = c.flights.lead(identity)
		if f == nil {
			c.joined()
			if o := c.flights.join(r.Context(), identity); o != nil {
				o.write(w, r, c.name()+"; fwd=uri-miss; collapsed")
				return nil
			}
			// What was made is not for all, or failed: this one asks for itself.
		}
	}
	return c.make(w, r, u, identity, reason, p, f, next)
}

// removeWait is for how long a request that changes an object waits until it is removed
// everywhere.
const removeWait = time.Second

// forwarded says, before the answer does, why a request goes on.
func (c *Cache) forwarded(w http.ResponseWriter, reason string) {
	w.Header().Add("Cache-Status", c.name()+"; fwd="+reason)
}

// make answers a GET from a sibling, or by next. Those that wait for f, unless it is
// nil, get the object, or hear as soon as it is known that there will be none for them.
func (c *Cache) make(w http.ResponseWriter, r *http.Request, u *url.URL, identity, reason string, p pass, f *flight, next func(http.ResponseWriter, *http.Request) error) error {
	var o *Object
	land := func() {
		if f != nil {
			c.flights.land(identity, f, o, nil)
		}
	}
	defer land()
	if f != nil {
		found, status, err := c.find(r.Context(), u, identity, func(a *Answer) bool { return isStorable(a.Header, a.Arrived) }, nil)
		if err != nil {
			return nil // the client has gone
		}
		if found != nil {
			o = found
			c.put(p, identity, o)
			o.write(w, r, append(slices.Clone(status), c.name()+"; fwd=uri-miss; stored; detail=sibling")...)
			return nil
		}
	}
	rec := &recorder{ResponseWriter: w, room: c.maxBytes(), unstorable: land, forwarded: c.name() + "; fwd=" + reason}
	c.counts.loads.Add(1)
	if err := next(rec, r); err != nil {
		c.counts.errors.Add(1)
		return err
	}
	if made := rec.object(); made != nil {
		o = made
		c.put(p, identity, o)
	}
	return nil
}

// answer answers a sibling's question. One that can wait gets what is being made.
func (c *Cache) answer(w http.ResponseWriter, r *http.Request, identity string) {
	c.counts.questions.Add(1)
	if ids, ok := NamedInvalidations(r.Header); !ok || len(ids) > 0 && (c.node == nil || !c.node.Applied(ids...)) {
		AnswerMiss(w, c.name()) // what is here may be what they removed
		return
	}
	o := c.fresh(identity)
	if wait := PreferredWait(r.Header); o == nil && wait > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		o = c.flights.join(ctx, identity)
		cancel()
	}
	if o == nil {
		AnswerMiss(w, c.name())
		return
	}
	c.counts.answered.Add(1)
	if c.Coalescer != nil {
		c.Coalescer.Served(identity)
	}
	o.write(w, r, c.name()+"; hit")
}

// requested is what a request or a sibling's question is for.
func requested(r *http.Request) (*url.URL, string) {
	u := &url.URL{Scheme: "http", Host: strings.ToLower(r.Host), Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	if r.TLS != nil || IsQuestion(r) && r.URL.Scheme == "https" {
		u.Scheme = "https"
	}
	if u.Host == valueHost && IsQuestion(r) {
		identity, _ := url.QueryUnescape(u.RawQuery)
		return u, identity
	}
	return u, "GET " + u.String()
}

// isCacheable reports whether the answer to a request may be kept, and be that to
// others.
func isCacheable(r *http.Request) bool {
	cc := rfc9111.RequestDirectives(r.Header)
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.ContentLength == 0 &&
		r.Header["Authorization"] == nil && r.Header["Upgrade"] == nil && !cc.NoStore
}

// write answers a request by an object.
func (o *Object) write(w http.ResponseWriter, r *http.Request, status ...string) {
	h := w.Header()
	for name, lines := range o.Header {
		h[name] = lines
	}
	h["Cache-Status"] = status
	if o.Header == nil {
		h.Set("Content-Type", "application/octet-stream")
		if !o.Expires.IsZero() {
			h.Set("Cache-Control", "max-age="+strconv.Itoa(int(time.Until(o.Expires).Seconds())))
		}
	} else {
		h.Set("Age", strconv.Itoa(int(time.Since(o.Made).Seconds())))
	}
	modified, _ := http.ParseTime(o.Header.Get("Last-Modified"))
	http.ServeContent(w, r, "", modified, bytes.NewReader(o.Body))
}
