package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Handler answers the requests of clients and siblings. It is safe for
// concurrent use.
type Handler struct {
	cfg      Config
	cache    *cache.Cache
	siblings *sibling.Client // nil = none
	origins  http.RoundTripper
	failing  *failings
	counters counters
	idle     []interface{ CloseIdleConnections() }

	rules     atomic.Pointer[rules.Set]
	coder     coding.Compressor
	sites     []*upstream // nil = a forward proxy
	trusted   trustedProxies
	bySchemes bool            // clients may come by https: the scheme is in the key
	closed    context.Context // ends with Close: tunnels end, and health checks
	stop      context.CancelFunc
	watching  sync.WaitGroup
}

// New opens the store and returns a Handler, or every mistake in c at once.
func New(c Config) (*Handler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var err error
	h := &Handler{cfg: c}
	h.trusted, h.bySchemes = c.TrustedProxies, c.TrustedProxies != nil || c.ClientTLS
	h.failing = &failings{log: c.Logger, forget: c.Origin == nil && c.Sites == nil}
	h.openOrigins(&c)
	if c.Locator != nil {
		t := c.SiblingTransport
		if t == nil {
			own := sibling.NewHTTPTransport(c.Dial)
			h.idle = append(h.idle, own)
			t = own
		}
		h.siblings, err = sibling.New(sibling.Config{Name: c.Name, Locator: c.Locator, Health: c.Health, HTTP: c.Tracing.Transport("ask sibling", t), Timeout: c.SiblingTimeout, Late: c.Late})
		if err != nil {
			return nil, err
		}
	}
	own := c.Config
	own.Transport, own.Siblings, own.Recode, own.Invalidates = h.origins, h.siblings, h.recode, h.invalidates
	if h.cache, err = cache.New(own); err != nil {
		return nil, err
	}
	h.closed, h.stop = context.WithCancel(context.Background())
	for _, u := range h.sites {
		if u.Check != "" {
			h.watching.Go(func() { u.watch(h.closed, c.Name, c.Logger) })
		}
	}
	return h, nil
}

// openOrigins makes the transports to origins.
func (h *Handler) openOrigins(c *Config) {
	transport := c.OriginTransport
	if transport == nil {
		t := newOriginTransport(c)
		h.idle = append(h.idle, t)
		transport = t
	}
	account := func(t http.RoundTripper) *origins {
		return &origins{RoundTripper: c.Tracing.Transport("fetch from origin", t), failings: h.failing}
	}
	h.origins = account(transport)
	sites := c.Sites
	if c.Origin != nil {
		origin := *c.Origin
		origin.Host = authority(origin.Scheme, origin.Host) // or https://HOST:80 would be beside http://HOST
		sites = []Site{{Origins: []*url.URL{&origin}, alone: true}}
	}
	for _, s := range sites {
		to := h.origins.(*origins)
		if c.OriginTransport == nil && (s.TLS != nil || s.ConnectTimeout != 0 || s.FirstByteTimeout != 0) {
			own := *c
			own.ConnectTimeout = cmp.Or(s.ConnectTimeout, c.ConnectTimeout)
			own.FirstByteTimeout = cmp.Or(s.FirstByteTimeout, c.FirstByteTimeout)
			t := newOriginTransport(&own)
			t.TLSClientConfig = s.TLS
			h.idle = append(h.idle, t)
			to = account(t)
		}
		h.sites = append(h.sites, newUpstream(s, to))
	}
	if h.sites != nil {
		h.origins = upstreams{h}
	}
	h.SetRules(c.Rules)
	h.origins = ruled{h.origins, h}
}

// check reports every mistake and fills in the defaults.
func (c *Config) check() error {
	var errs []error
	if err := sibling.CheckName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("proxy: %w", err))
	}
	switch {
	case c.Origin != nil && c.Sites != nil:
		errs = append(errs, errors.New("proxy: an origin and sites"))
	case c.Origin != nil:
		errs = append(errs, (&Site{Origins: []*url.URL{c.Origin}}).check())
	}
	for i := range c.Sites {
		errs = append(errs, c.Sites[i].check())
	}
	deadlines := []*time.Duration{&c.ConnectTimeout, &c.FirstByteTimeout, &c.BetweenBytesTimeout, &c.SendTimeout}
	for _, d := range deadlines {
		if *d == 0 {
			*d = time.Minute
		}
	}
	if slices.ContainsFunc(deadlines, func(d *time.Duration) bool { return *d < 0 }) || c.SiblingTimeout < 0 || c.SiblingMaxAge < 0 || c.Compare < 0 {
		errs = append(errs, errors.New("proxy: a negative setting"))
	}
	if c.SiblingTimeout == 0 {
		c.SiblingTimeout = 500 * time.Millisecond
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

func newOriginTransport(c *Config) *http.Transport {
	return &http.Transport{
		DialContext:            dialOrigin(c),
		DisableCompression:     true, // bodies pass as the origin sends them
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    64,
		MaxIdleConns:           cmp.Or(c.MaxIdle, 1024),
		IdleConnTimeout:        60 * time.Second,
		TLSHandshakeTimeout:    c.ConnectTimeout,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  c.FirstByteTimeout,
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         8 << 10, // each request that waits has one; a long body is not read through it
	}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if own, ok := h.cfg.Own[r.URL.Path]; ok && !r.URL.IsAbs() {
		own.ServeHTTP(w, r)
		return
	}
	start := time.Now()
	e := Event{asked: r.RequestURI, Request: r}
	var span tracing.Request
	if h.cfg.Tracing != nil {
		r, span = h.cfg.Tracing.Request(r)
	}
	question := sibling.IsQuestion(r)
	switch {
	case question && !h.admits(r):
		e.Sibling, e.Refused = true, true
		e.Result = h.cache.Refuse(w, r, cache.ClientError, http.StatusForbidden, "not-a-sibling", "a sibling's name, and not that sibling")
	case !question && h.cfg.AllowClient != nil && !h.cfg.AllowClient(r.RemoteAddr):
		e.Result = h.cache.Refuse(w, r, cache.ClientError, http.StatusForbidden, "not-a-client", "this proxy is not for you: see --proxy-client")
	case question && fromSquid(r.Header):
		e.Result = h.answerSquid(w, r, &e)
	default:
		e.Result = h.serve(w, r, &e)
	}
	e.Duration = time.Since(start)
	h.counters.count(&e)
	if h.cfg.Tracing != nil {
		span.End(tracing.End{URL: e.URL(), Status: e.Status, Outcome: e.Outcome.String(), Peer: e.Peer, Bytes: e.Bytes, Err: e.Err})
	}
	if h.cfg.Observe != nil {
		e.Client, e.Trace = h.Client(e.Request), span.Trace(e.Request)
		h.cfg.Observe(e)
	}
	if e.Broken || e.Closed {
		panic(http.ErrAbortHandler) // the client must see that the body is not whole, or that there is no answer
	}
}

// admits reports whether a question is from whom its last Via member names, if
// that is a sibling.
func (h *Handler) admits(r *http.Request) bool {
	if h.cfg.Admit == nil {
		return true
	}
	name := sibling.Asker(r.Header)
	return name == "" || h.cfg.Admit(r, name) == nil
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, e *Event) cache.Result {
	if r.Method == http.MethodConnect {
		e.asked = r.Host
		return h.connect(w, r)
	}
	if r.Method == methodPurge && h.cfg.Purge != nil {
		if status, why := h.mayPurge(r); status != 0 {
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
			}
			return h.cache.Refuse(w, r, cache.ClientError, status, "purge", why)
		}
	}
	webSocket := h.sites != nil && isWebSocket(r)
	r, by := h.withoutClaims(withoutHopByHop(r))
	target, no := h.target(r, by)
	if no == nil {
		no = framing(w, r)
	}
	if no != nil {
		return h.cache.Refuse(w, r, cache.ClientError, no.status, no.detail, no.text)
	}
	if target != *r.URL {
		clone := struct {
			http.Request
			url url.URL
		}{*r, target}
		clone.URL, clone.Host = &clone.url, target.Host
		r = &clone.Request
	}
	if r.Method == methodPurge && h.cfg.Purge != nil {
		e.target = r.URL
		return h.purge(w, r)
	}
	question := sibling.IsQuestion(r)
	r, past := h.rules.Load().Request(r, question, nil)
	e.target = r.URL
	e.Sibling = question && r.Header["Via"] != nil
	if !question && slices.Contains(rfc9111.Via(r.Header), h.cfg.Name) {
		return h.cache.Refuse(w, r, cache.GatewayError, http.StatusLoopDetected, "loop", "the request has come through this cache before")
	}
	if webSocket && !question {
		return h.upgrade(w, r)
	}
	if res, done := h.maxForwards(w, r); done {
		return res
	}
	if past {
		return h.cache.Pass(w, r)
	}
	return h.cache.Serve(w, r)
}

// framing has connections closed on which it is not certain where the next request begins, and
// refuses a request whose own end is not certain.
func framing(w http.ResponseWriter, r *http.Request) *refusal {
	switch {
	case r.ProtoMajor != 1:
	case r.ProtoMinor == 0 && r.ContentLength == 0 && r.Header["Content-Length"] == nil &&
		(r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch):
		// Or it has a Transfer-Encoding, which HTTP/1.0 knows nothing of and the server hides.
		w.Header().Set("Connection", "close")
		return &refusal{http.StatusLengthRequired, "no-length", "a body in HTTP/1.0 needs a Content-Length"}
	case r.ProtoMinor == 0 && r.ContentLength > 0:
		w.Header().Set("Connection", "close") // what follows might not be framed
		if !conn.Framed(r.Context()) {
			return &refusal{http.StatusBadRequest, "bad-framing", "a body in HTTP/1.0 comes first on its connection, and without a Transfer-Encoding"}
		}
	case len(r.TransferEncoding) > 0:
		// It may have had a Content-Length besides, which the server hides, and which a proxy
		// in front may have believed (RFC 9112 section 6.1).
		w.Header().Set("Connection", "close")
	}
	return nil
}

// refusal is why a request is none for this proxy.
type refusal struct {
	status       int
	detail, text string
}

// target returns the absolute URL that a request is for.
func (h *Handler) target(r *http.Request, by asked) (t url.URL, no *refusal) {
	u := r.URL
	if strings.IndexByte(r.RequestURI, '#') >= 0 {
		return t, &refusal{http.StatusBadRequest, "bad-target", "a request line has no fragment"}
	}
	if h.sites != nil {
		return h.siteTarget(r, by)
	}
	switch {
	case !u.IsAbs():
		return t, &refusal{http.StatusBadRequest, "not-absolute",
			"this is a forward proxy: configure it as your proxy, or send the absolute URL in the request line"}
	case u.Scheme != "http" && u.Scheme != "https":
		return t, &refusal{http.StatusBadRequest, "bad-scheme", "only http and https URLs can be fetched here"}
	case u.Hostname() == "":
		return t, &refusal{http.StatusBadRequest, "no-host", "the URL names no host"}
	}
	t = *u
	t.User, t.Fragment, t.RawFragment, t.Opaque = nil, "", "", ""
	return t, nil
}

// withoutHopByHop returns r, or a copy if it has fields that end here.
func withoutHopByHop(r *http.Request) *http.Request {
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Upgrade",
		"Proxy-Authorization", "Transfer-Encoding", "Proxy-Authenticate"} {
		if r.Header[name] != nil {
			clone := *r
			clone.Header = r.Header.Clone()
			rfc9111.RemoveHopByHop(clone.Header)
			return &clone
		}
	}
	return r
}

// Store returns the store, for its statistics.
func (h *Handler) Store() *store.Store { return h.cache.Store() }

// Advertised yields the identity of everything that is advertised to siblings, at
// least once.
func (h *Handler) Advertised() iter.Seq[string] { return h.cache.Advertised() }

// SiblingGone tells that a peer of that name is no longer a member of the cluster:
// what it was asked, and bodies that it is sending, are got from elsewhere at once.
func (h *Handler) SiblingGone(name string) {
	if h.siblings != nil {
		h.siblings.Gone(name)
	}
}

// Close ends tunnels and background work and closes the store. Requests under
// way are the http.Server's to wait for; call Close after it.
func (h *Handler) Close() error {
	h.stop()
	h.watching.Wait()
	err := h.cache.Close()
	for _, t := range h.idle {
		t.CloseIdleConnections()
	}
	return err
}
