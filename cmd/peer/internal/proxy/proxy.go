package proxy

import (
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
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
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
	failing  *origins
	counters counters
	idle     []interface{ CloseIdleConnections() }

	mu      sync.Mutex
	tunnels map[net.Conn]struct{} // nil when closed
}

// New opens the store and returns a Handler, or every mistake in c at once.
func New(c Config) (*Handler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var err error
	h := &Handler{cfg: c, tunnels: make(map[net.Conn]struct{})}
	transport := c.OriginTransport
	if transport == nil {
		t := newOriginTransport(&c)
		h.idle = append(h.idle, t)
		transport = t
	}
	if c.Origin != nil {
		transport = forwarded{transport}
	}
	transport = c.Tracing.Transport("fetch from origin", transport)
	h.failing = &origins{RoundTripper: transport, log: c.Logger, forget: c.Origin == nil}
	h.origins = h.failing
	if c.Locator != nil {
		t := c.SiblingTransport
		if t == nil {
			own := sibling.NewHTTPTransport(c.Dial)
			h.idle = append(h.idle, own)
			t = own
		}
		h.siblings, err = sibling.New(sibling.Config{Name: c.Name, Locator: c.Locator, Health: c.Health, HTTP: c.Tracing.Transport("ask sibling", t), Timeout: c.SiblingTimeout, Late: c.Late, Max: c.MaxSiblings})
		if err != nil {
			return nil, err
		}
	}
	h.cache, err = cache.New(cache.Config{Name: c.Name, Origin: h.origins, Siblings: h.siblings, Coalescer: c.Coalescer, Cluster: c.Cluster, Store: c.Store,
		Advertise: c.Advertise, Withdraw: c.Withdraw, MinListed: c.MinListed,
		FirstByte: c.FirstByteTimeout, BetweenBytes: c.BetweenBytesTimeout, Now: c.Now, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// check reports every mistake and fills in the defaults.
func (c *Config) check() error {
	var errs []error
	if err := sibling.CheckName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("proxy: %w", err))
	}
	if o := c.Origin; o != nil {
		if o.Scheme != "http" && o.Scheme != "https" || o.Host == "" || o.RawQuery != "" || o.Fragment != "" || o.User != nil {
			errs = append(errs, fmt.Errorf("proxy: %q is no origin: want http://HOST[:PORT][/PATH] or https", o))
		}
	}
	deadlines := []*time.Duration{&c.ConnectTimeout, &c.FirstByteTimeout, &c.BetweenBytesTimeout, &c.SendTimeout}
	for _, d := range deadlines {
		if *d == 0 {
			*d = time.Minute
		}
	}
	if slices.ContainsFunc(deadlines, func(d *time.Duration) bool { return *d < 0 }) || c.SiblingTimeout < 0 || c.MaxSiblings < 0 || c.MinListed < 0 {
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
		MaxIdleConns:           1024,
		IdleConnTimeout:        60 * time.Second,
		TLSHandshakeTimeout:    c.ConnectTimeout,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  c.FirstByteTimeout,
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         32 << 10,
	}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if own, ok := h.cfg.Own[r.URL.Path]; ok && !r.URL.IsAbs() {
		own.ServeHTTP(w, r)
		return
	}
	start := time.Now()
	e := Event{Method: r.Method}
	var span tracing.Request
	if h.cfg.Tracing != nil {
		r, span = h.cfg.Tracing.Request(r)
	}
	question := sibling.IsQuestion(r)
	switch {
	case question && !h.admits(r):
		e.URL, e.Sibling, e.Refused = r.RequestURI, true, true
		e.Result = h.cache.Refuse(w, r, http.StatusForbidden, "not-a-sibling", "a sibling's name, and not that sibling")
		e.Outcome = ClientError
	case question && fromSquid(r.Header):
		e.Result = h.answerSquid(w, r, &e)
	default:
		e.Result = h.serve(w, r, &e)
	}
	e.Duration = time.Since(start)
	h.counters.count(&e)
	if h.cfg.Tracing != nil {
		span.End(tracing.End{URL: e.URL, Status: e.Status, Outcome: e.Outcome.String(), Peer: e.Peer, Bytes: e.Bytes, Err: e.Err})
	}
	if h.cfg.Observe != nil {
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
		e.URL = r.Host
		return h.connect(w, r)
	}
	webSocket := h.cfg.Origin != nil && isWebSocket(r)
	r = withoutHopByHop(r)
	target, no := h.target(r)
	if no != nil {
		e.URL = r.RequestURI
		res := h.cache.Refuse(w, r, no.status, no.detail, no.text)
		res.Outcome = ClientError
		return res
	}
	if target != r.URL {
		clone := *r
		clone.URL, clone.Host = target, target.Host
		r = &clone
	}
	e.URL = target.String()
	question := sibling.IsQuestion(r)
	e.Sibling = question && r.Header["Via"] != nil
	if !question && slices.Contains(rfc9111.Via(r.Header), h.cfg.Name) {
		res := h.cache.Refuse(w, r, http.StatusLoopDetected, "loop", "the request has come through this cache before")
		res.Outcome = GatewayError
		return res
	}
	if webSocket && !question {
		return h.upgrade(w, r)
	}
	if res, done := h.maxForwards(w, r); done {
		return res
	}
	return h.cache.Serve(w, r)
}

// refusal is why a request is none for this proxy.
type refusal struct {
	status       int
	detail, text string
}

// target returns the absolute URL that a request is for.
func (h *Handler) target(r *http.Request) (*url.URL, *refusal) {
	u := r.URL
	if strings.IndexByte(r.RequestURI, '#') >= 0 {
		return nil, &refusal{http.StatusBadRequest, "bad-target", "a request line has no fragment"}
	}
	if h.cfg.Origin != nil {
		return h.originTarget(r)
	}
	switch {
	case !u.IsAbs():
		return nil, &refusal{http.StatusBadRequest, "not-absolute",
			"this is a forward proxy: configure it as your proxy, or send the absolute URL in the request line"}
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, &refusal{http.StatusBadRequest, "bad-scheme", "only http and https URLs can be fetched here"}
	case u.Hostname() == "":
		return nil, &refusal{http.StatusBadRequest, "no-host", "the URL names no host"}
	}
	if u.User != nil || u.Fragment != "" || u.Opaque != "" {
		clean := *u
		clean.User, clean.Fragment, clean.RawFragment, clean.Opaque = nil, "", "", ""
		return &clean, nil
	}
	return u, nil
}

// originTarget maps a request to a reverse proxy to its origin. Siblings, which
// know the origin too, send the mapped URL; other absolute URLs are refused.
func (h *Handler) originTarget(r *http.Request) (*url.URL, *refusal) {
	o, u := h.cfg.Origin, r.URL
	if u.IsAbs() {
		if !strings.EqualFold(u.Scheme, o.Scheme) || !strings.EqualFold(u.Host, o.Host) || !strings.HasPrefix(u.Path, o.Path) {
			return nil, &refusal{http.StatusMisdirectedRequest, "wrong-origin", "this is a reverse proxy for another origin"}
		}
		return u, nil
	}
	if !strings.HasPrefix(u.Path, "/") {
		return nil, &refusal{http.StatusBadRequest, "bad-target", "the request line names no path"}
	}
	t := *u
	t.Scheme, t.Host, t.User, t.Fragment, t.RawFragment = o.Scheme, o.Host, nil, "", ""
	if prefix := strings.TrimSuffix(o.Path, "/"); prefix != "" {
		raw := strings.TrimSuffix(o.EscapedPath(), "/") + u.EscapedPath()
		t.Path, t.RawPath = prefix+u.Path, raw
	}
	return &t, nil
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
	h.mu.Lock()
	open := h.tunnels
	h.tunnels = nil
	h.mu.Unlock()
	for conn := range open {
		conn.Close()
	}
	err := h.cache.Close()
	for _, t := range h.idle {
		t.CloseIdleConnections()
	}
	return err
}
