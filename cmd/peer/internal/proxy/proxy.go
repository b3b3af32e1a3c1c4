package proxy

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/planted"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Handler answers the requests of clients and siblings. It is safe for
// concurrent use.
type Handler struct {
	cfg      Config
	cache    *httpcache.Cache
	store    *diskstore.Store
	siblings *sibling.Client // nil = none
	origins  http.RoundTripper
	failing  *failings
	counters counters
	idle     []interface{ CloseIdleConnections() }

	fields    *canonical.Fields
	rules     atomic.Pointer[rules.Set]
	coder     coding.Compressor
	sites     []*upstream     // nil = a forward proxy
	bySchemes bool            // clients may use https: the scheme is part of the key
	closed    context.Context // ends at Close, and with it tunnels and health checks
	stop      context.CancelFunc
	watching  sync.WaitGroup
}

// New opens the store and returns a Handler.
func New(c Config) (_ *Handler, err error) {
	c.setDefaults()
	h := &Handler{cfg: c, fields: canonical.NewFields(c.PassFields)}
	h.bySchemes = c.TrustedProxies != nil || c.ClientTLS
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
	own.Conn = connOf
	if own.Open == nil {
		own.Open = h.openStore
	}
	own.Transport, own.Siblings, own.Recode, own.Invalidates = h.origins, h.siblings, h.recode, h.invalidates
	if h.bySchemes && own.Cluster != nil {
		own.Cluster = bothSchemes{own.Cluster}
	}
	if h.cache, err = httpcache.New(own); err != nil {
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

// openStore opens the store for the cache.
func (h *Handler) openStore(hooks bodies.Hooks) (httpcache.Store, error) {
	o := h.cfg.Store
	o.Hooks, o.Logger = hooks, cmp.Or(o.Logger, h.cfg.Logger)
	var err error
	h.store, err = diskstore.Open(o)
	return diskstore.Door{Store: h.store}, err
}

// connOf is [conn.Of], for the cache.
func connOf(ctx context.Context) httpcache.Conn {
	if c := conn.Of(ctx); c != nil {
		return c
	}
	return nil
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
		origin.Host = canonical.Authority(origin.Scheme, origin.Host) // so that equal URLs are equal keys, with or without the default port
		sites = []Site{{Origins: []*url.URL{&origin}, alone: !c.PreserveHost}}
	}
	for _, s := range sites {
		own := *c
		own.ConnectTimeout = cmp.Or(s.ConnectTimeout, c.ConnectTimeout)
		own.FirstByteTimeout = cmp.Or(s.FirstByteTimeout, c.FirstByteTimeout)
		open := func(own *http.Transport) *origins {
			h.idle = append(h.idle, own)
			return account(own)
		}
		to := h.origins.(*origins)
		if c.OriginTransport == nil && (s.TLS != nil || s.ConnectTimeout != 0 || s.FirstByteTimeout != 0) {
			t := newOriginTransport(&own)
			t.TLSClientConfig = s.TLS
			to = open(t)
		}
		u := newUpstream(s, to)
		if c.OriginTransport == nil && slices.ContainsFunc(u.backends, func(b *backend) bool { return b.clear }) {
			t := newOriginTransport(&own)
			t.Protocols = new(http.Protocols)
			t.Protocols.SetUnencryptedHTTP2(true)
			over := open(t)
			over.clear = true
			u.overClear(over)
		}
		h.sites = append(h.sites, u)
	}
	if h.sites != nil {
		h.origins = upstreams{h}
	}
	h.SetRules(c.Rules)
	h.origins = ruled{h.origins, h}
}

// setDefaults replaces zero values. It checks nothing: package config has validated the settings.
func (c *Config) setDefaults() {
	for _, d := range []*time.Duration{&c.ConnectTimeout, &c.FirstByteTimeout, &c.BetweenBytesTimeout, &c.SendTimeout} {
		*d = cmp.Or(*d, time.Minute)
	}
	c.SiblingTimeout = cmp.Or(c.SiblingTimeout, 500*time.Millisecond)
	c.MaxHeader = cmp.Or(c.MaxHeader, 16<<10)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// newOriginTransport returns a transport to origins. It also gives up an origin that reads nothing
// of a request for too long.
func newOriginTransport(c *Config) *http.Transport {
	if planted.Fault == "first-byte" {
		c.FirstByteTimeout = 0
	}
	dial, connectTimeout, sendTimeout := c.Dial, c.ConnectTimeout, c.SendTimeout
	idle := cmp.Or(c.MaxIdle, 1024)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, connectTimeout)
			defer cancel()
			to, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return conn.Patient(to, sendTimeout), nil
		},
		DisableCompression: true, // bodies are passed on as the origin sends them
		ForceAttemptHTTP2:  true,
		// A connection is idle for net/http before its answer without a body has been passed on. If it
		// is then the oldest of too many it is closed, and the answer lost. The limit of one host does
		// not do that: it closes the newest.
		MaxIdleConnsPerHost:    max(1, min(64, idle/2)),
		MaxIdleConns:           idle,
		IdleConnTimeout:        60 * time.Second,
		TLSHandshakeTimeout:    connectTimeout,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  c.FirstByteTimeout,
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         8 << 10, // each waiting request has one; long bodies are not read through it
	}
}

// ServeHTTP answers one request. If it must be answered at once ([conn.AtOnce]) and is not, nothing shows that it came.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if own, ok := h.cfg.Own[r.URL.Path]; ok && !r.URL.IsAbs() {
		if !conn.AtOnce(w) {
			own.ServeHTTP(w, r)
		}
		return
	}
	start := time.Now()
	wantTrailer(r)
	e := Event{requestTarget: r.RequestURI, Request: r}
	var span tracing.Request
	if h.cfg.Tracing != nil {
		r, span = h.cfg.Tracing.Request(r)
	}
	lookup := sibling.IsLookup(r)
	switch {
	case lookup && fromSquid(r.Header) && conn.AtOnce(w): // a disk that hangs must not keep it waiting
	case lookup && !h.admits(r):
		e.Sibling, e.Refused = true, true
		e.Result = h.cache.Refuse(w, r, httpcache.ClientError, http.StatusForbidden, "not-a-sibling", "the request names a sibling that did not send it")
	case !lookup && h.cfg.AllowClient != nil && !h.cfg.AllowClient(r.RemoteAddr):
		e.Result = h.cache.Refuse(w, r, httpcache.ClientError, http.StatusForbidden, "not-a-client", "the address of this client is not among those of --proxy-client")
	case lookup && fromSquid(r.Header):
		e.Result = h.answerSquid(w, r, &e)
	default:
		e.Result = h.serve(w, r, &e)
	}
	if conn.AtOnce(w) {
		return
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
		panic(http.ErrAbortHandler) // closes the connection, which shows the client that the answer is incomplete or missing
	}
}

// admits reports whether a lookup request comes from the cache that its last Via member names, if
// that is a sibling.
func (h *Handler) admits(r *http.Request) bool {
	if h.cfg.Admit == nil {
		return true
	}
	name := sibling.Asker(r.Header)
	return name == "" || h.cfg.Admit(r, name) == nil
}

// serve answers a request, or refuses it. It sets what e says of the request.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, e *Event) httpcache.Result {
	if r.Method == http.MethodConnect {
		e.requestTarget = r.Host
		return h.connect(w, r)
	}
	if r.Method == methodPurge && h.cfg.Purge != nil {
		if status, why := h.mayPurge(r); status != 0 {
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
			}
			return h.cache.Refuse(w, r, httpcache.ClientError, status, "purge", why)
		}
	}
	webSocket := h.sites != nil && isWebSocket(r)
	asked, no := h.canonical(w, r)
	if no != nil {
		return h.cache.Refuse(w, r, httpcache.ClientError, no.status, no.detail, no.text)
	}
	r = asked
	if r.Method == methodPurge && h.cfg.Purge != nil {
		e.target = r.URL
		return h.purge(w, r)
	}
	lookup := sibling.IsLookup(r)
	r, bypass := h.rules.Load().Request(r, lookup, nil)
	e.target = r.URL
	e.Sibling = lookup && r.Header["Via"] != nil
	if !lookup && slices.Contains(rfc9111.Via(r.Header), h.cfg.Name) {
		return h.cache.Refuse(w, r, httpcache.GatewayError, http.StatusLoopDetected, "loop", "the request has come through this cache before")
	}
	if webSocket && !lookup {
		return h.upgrade(w, r)
	}
	if res, done := h.maxForwards(w, r); done {
		return res
	}
	if bypass {
		return h.cache.Pass(w, r)
	}
	return h.cache.Serve(w, r)
}

// Store returns the store, for its statistics.
func (h *Handler) Store() *diskstore.Store { return h.store }

// Advertised yields the identity of everything that is advertised to siblings, at
// least once.
func (h *Handler) Advertised() iter.Seq[string] { return h.cache.Advertised() }

// SiblingGone must be called when a peer is no longer a member of the cluster. Requests to it
// are then abandoned at once, and bodies that it is sending are continued from another source.
func (h *Handler) SiblingGone(name string) {
	if h.siblings != nil {
		h.siblings.Gone(name)
	}
}

// Close ends tunnels and background work, and closes the store. Call it after the http.Server has
// finished the requests under way: Close does not wait for them.
func (h *Handler) Close() error {
	h.stop()
	h.watching.Wait()
	err := h.cache.Close()
	for _, t := range h.idle {
		t.CloseIdleConnections()
	}
	return err
}
