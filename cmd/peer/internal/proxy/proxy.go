package proxy

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/coding"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Handler answers the requests of clients and siblings. It is safe for
// concurrent use.
type Handler struct {
	cfg      Config
	cache    *engine.Cache
	store    diskstore.Store
	siblings *sibling.Client // nil = none
	failing  failings
	clocks   clocks
	counters counters
	idle     []interface{ CloseIdleConnections() }
	coder    coding.Compressor
	rates    rates
	fetched  fetchCounts

	sendTimeout     atomic.Int64 // of connections to origins, and of tunnels
	configuring     sync.Mutex   // held by Configure
	applied, former atomic.Pointer[appliedSettings]

	closed   context.Context // ends at Close, and with it tunnels and health checks
	stop     context.CancelFunc
	watching sync.WaitGroup
}

// New opens the store and returns a Handler.
func New(c Config) (_ *Handler, err error) {
	c.setDefaults()
	h := &Handler{cfg: c, failing: failings{log: c.Logger}, clocks: clocks{log: c.Logger}}
	h.sendTimeout.Store(int64(c.SendTimeout))
	h.closed, h.stop = context.WithCancel(context.Background())
	if c.Locator != nil {
		t := c.SiblingTransport
		if t == nil {
			own := http1.ToSiblings(c.Dial)
			h.idle = append(h.idle, own)
			t = own
		}
		h.siblings, err = sibling.New(sibling.Config{Name: c.Name, Locator: c.Locator, Health: c.Health,
			HTTP: c.Tracing.Transport("ask sibling", t), Timeout: c.SiblingTimeout, Late: c.Late})
		if err != nil {
			return nil, err
		}
	}
	own := c.Config
	own.Conn, own.MayStay = h.connOf, conn.MayStay
	if own.Open == nil {
		own.Open = h.openStore
	}
	own.Transport, own.Siblings, own.Recode, own.Invalidates, own.Large = toOrigins{h}, h.siblings, h.recode, h.invalidates, h.sliceFrom
	if own.Cluster != nil {
		own.Cluster = bothSchemes{own.Cluster, h}
	}
	h.Configure(c.Settings)
	if h.cache, err = engine.New(own); err != nil {
		h.stop()
		return nil, err
	}
	return h, nil
}

// openStore opens the store for the cache.
func (h *Handler) openStore(hooks bodies.Hooks) (bodies.Store, error) {
	o := h.cfg.Store
	o.Hooks, o.Logger = hooks, cmp.Or(o.Logger, h.cfg.Logger)
	var err error
	h.store, err = diskstore.Open(o)
	return h.store, err
}

// connOf is [conn.Of], for the cache. It is nil if a rule must see what is sent: see withDeliveryRules.
func (h *Handler) connOf(ctx context.Context) engine.Conn {
	if h.applied.Load().delivers && ctx.Value(deliveryRules{}) != nil {
		return nil
	}
	if c := conn.Of(ctx); c != nil {
		return c
	}
	return nil
}

// setDefaults replaces zero values. It checks nothing: package config has validated the settings.
func (c *Config) setDefaults() {
	c.BetweenBytesTimeout, c.SendTimeout = cmp.Or(c.BetweenBytesTimeout, time.Minute), cmp.Or(c.SendTimeout, time.Minute)
	c.SiblingTimeout = cmp.Or(c.SiblingTimeout, 500*time.Millisecond)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Own != nil && !r.URL.IsAbs() {
		if own := h.cfg.Own(r.URL.Path); own != nil {
			own.ServeHTTP(w, r)
			return
		}
	}
	start, v := time.Now(), h.applied.Load()
	wantTrailer(r)
	e := Event{requestTarget: Target(r), Request: r}
	r, span := h.cfg.Tracing.Request(r)
	lookup := sibling.IsLookup(r)
	switch {
	case lookup && !h.admits(r):
		e.Sibling, e.Refused = true, true
		e.Result = h.cache.Refuse(w, r, engine.ClientError, http.StatusForbidden, "not-a-sibling",
			"the request names a sibling that did not send it")
	case !lookup && v.AllowClient != nil && !v.AllowClient(r):
		e.Result = h.cache.Refuse(w, r, engine.ClientError, http.StatusForbidden, "not-a-client",
			"--proxy-client does not include your address, or that of the proxy that sends your request")
	case lookup && fromSquid(r.Header):
		e.Result = h.answerSquid(w, r, v, &e)
	default:
		e.Result = h.serve(w, r, v, &e)
	}
	e.Duration = time.Since(start)
	h.counters.count(&e)
	if h.cfg.Tracing.On() {
		span.End(tracing.End{URL: e.URL(), Status: e.Status, Outcome: e.Outcome.String(), Peer: e.Peer, Bytes: e.Bytes, Err: e.Err})
	}
	if h.cfg.Observe != nil {
		e.Client, e.Trace = v.client(e.Request), span.Trace(e.Request)
		h.cfg.Observe(e)
	}
	if e.Broken || e.Closed || e.Outcome == engine.ClientGone {
		// closes the connection, which shows the client that the answer is incomplete or missing
		panic(http.ErrAbortHandler)
	}
}

// Unread counts a request that the server could not read, and refused with a status. from is the client's address, with
// its port.
func (h *Handler) Unread(from string, status int) {
	e := Event{Request: &http.Request{RemoteAddr: from}}
	e.Outcome, e.Status, e.Said.Detail = engine.ClientError, status, "unreadable"
	h.counters.count(&e)
	if h.cfg.Observe != nil {
		e.Client = h.applied.Load().client(e.Request)
		h.cfg.Observe(e)
	}
}

// admits reports whether a lookup request comes from the cache that its last Via member names, if
// that is a sibling.
func (h *Handler) admits(r *http.Request) bool {
	if h.cfg.Admit == nil {
		return true
	}
	name := peering.Asker(r.Header)
	return name == "" || h.cfg.Admit(r, name) == nil
}

// serve answers a request, or refuses it. It sets what e says of the request.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, v *appliedSettings, e *Event) engine.Result {
	if r.Method == http.MethodConnect {
		e.requestTarget = r.Host
		return h.connect(w, r, v)
	}
	if r.Method == methodPurge && h.cfg.Purge != nil {
		if status, why := v.mayPurge(r); status != 0 {
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
			}
			return h.cache.Refuse(w, r, engine.ClientError, status, "purge", why)
		}
	}
	webSocket := v.sites != nil && isWebSocket(r)
	received := r
	asked, no := v.canonical(w, r)
	if no != nil {
		return h.cache.Refuse(w, r, engine.ClientError, no.status, no.detail, no.text)
	}
	if r.Method == methodPurge && h.cfg.Purge != nil {
		e.target = asked.URL
		return h.purge(w, asked, v)
	}
	lookup := sibling.IsLookup(r)
	r, effect := v.Rules.Request(asked, v.ruledClient(r), lookup, nil)
	if effect.Deliver {
		w, r = v.withDeliveryRules(w, r, asked)
	}
	e.target = r.URL
	e.Sibling = lookup && r.Header["Via"] != nil
	if !lookup && slices.Contains(rfc9111.Via(r.Header), h.cfg.Name) {
		return h.cache.Refuse(w, r, engine.GatewayError, http.StatusLoopDetected, "loop",
			"the request has come through this cache before")
	}
	if res, yes := h.limited(w, received, v, effect.Rate); yes {
		return res
	}
	if effect.Deny != nil || effect.Redirect != nil {
		return h.denyOrRedirect(w, received, asked, effect, lookup)
	}
	if r, no = bodyLimit(w, r, effect.MaxBody); no != nil {
		return h.cache.Refuse(w, r, engine.ClientError, no.status, no.detail, no.text)
	}
	if webSocket && !lookup {
		return h.upgrade(w, r)
	}
	if res, done := h.maxForwards(w, r); done {
		return res
	}
	if effect.Bypass {
		return h.cache.Pass(w, r)
	}
	return h.cache.Serve(w, r)
}

// Store returns the store, for its statistics.
func (h *Handler) Store() diskstore.Store { return h.store }

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
	for t := range h.applied.Load().transports() {
		t.CloseIdleConnections()
	}
	return err
}
