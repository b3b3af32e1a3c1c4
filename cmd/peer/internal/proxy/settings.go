package proxy

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// Settings are the part of a [Config] that [Handler.Configure] can change while requests are under way.
type Settings struct {
	// reverse proxy for this origin (scheme, host and an optional path prefix), whatever host clients name
	Origin *url.URL
	// PreserveHost sends clients' Host to Origin, and makes it part of the key, as with a Site.
	PreserveHost bool
	Sites        []Site // or a reverse proxy for these; without Origin and Sites, a forward proxy

	// TrustedProxies are the networks of the proxies in front of a reverse proxy whose forwarding
	// fields are trusted. With any, the client's scheme is part of the key.
	TrustedProxies []netip.Prefix
	// PurgeClients are the networks from which a PURGE is carried out; nil = none.
	PurgeClients []netip.Prefix

	// Rules are the operator's caching rules. Unless one of them allows it, no response with
	// a Set-Cookie is stored. Stored responses keep what was decided about them.
	Rules rules.Set

	// MaxHeader limits the URL and the fields of a client's request, in bytes; 0 = 16 KiB. A longer
	// one is answered 431: origins differ in what they take, and answer the rest with errors.
	MaxHeader int
	// PassFields are request fields that origins get although they may take them for something that
	// is not in the key (see [canonical.Fields]).
	PassFields []string

	ZoneCost time.Duration // see sibling.Config

	// Deadlines for origins, each 0 = 60 s. ConnectTimeout is for a connection, TLS included,
	// also to a CONNECT target. FirstByteTimeout is from the end of a request to the header of
	// its response.
	ConnectTimeout, FirstByteTimeout time.Duration
	// ConnectionAge is how old a connection to an origin may be when it gets a request; 0 = 5 min. It follows
	// names that move where Config.Addresses does not see that.
	ConnectionAge time.Duration

	AllowClient  func(r *http.Request) bool   // who may use a forward proxy; nil = everybody
	AllowConnect func(host, port string) bool // which CONNECT targets a forward proxy tunnels to; nil = all
}

// appliedSettings are what the settings of a time make of requests. A request has one of them from its
// arrival until the cache gets it. They are immutable, but for the state of the origins.
type appliedSettings struct {
	Settings
	fields    *canonical.Fields
	bySchemes bool              // clients may use https: the scheme is part of the key
	shared    *origins          // to the origins of a forward proxy, and of sites without settings of their own
	sites     []*upstream       // nil = a forward proxy
	delivers  bool              // a rule may change what clients get
	origins   http.RoundTripper // to all origins, with the rules applied
}

// Configure replaces the settings. Requests under way end as they began, and an origin that stays
// keeps its connections and its state.
func (h *Handler) Configure(s Settings) {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	s.ConnectTimeout, s.FirstByteTimeout = cmp.Or(s.ConnectTimeout, time.Minute), cmp.Or(s.FirstByteTimeout, time.Minute)
	s.MaxHeader = cmp.Or(s.MaxHeader, 16<<10)
	old := h.applied.Load()
	v := &appliedSettings{Settings: s, fields: canonical.NewFields(s.PassFields), delivers: s.Rules.Delivers()}
	v.bySchemes = s.TrustedProxies != nil || h.cfg.ClientTLS
	h.connectOrigins(v, old)
	if h.siblings != nil {
		h.siblings.Inside().SetZoneCost(s.ZoneCost)
	}
	h.failing.only(v)
	h.former.Store(old)
	h.applied.Store(v)
	if old != nil {
		old.leave(v)
	}
}

// Tune changes the settings of the cache that can change.
func (h *Handler) Tune(t engine.Tuning) {
	h.sendTimeout.Store(int64(t.SendTimeout))
	h.cache.Tune(t)
}

// connectOrigins makes the transports to the origins of v, except those that it takes from old.
func (h *Handler) connectOrigins(v, old *appliedSettings) {
	stays := old != nil && old.ConnectTimeout == v.ConnectTimeout && old.FirstByteTimeout == v.FirstByteTimeout && old.ConnectionAge == v.ConnectionAge
	if stays {
		v.shared = old.shared
	} else {
		v.shared = h.account(h.newTransport(v, v.ConnectTimeout, v.FirstByteTimeout, nil))
	}
	for _, s := range v.allSites() {
		if i := -1; stays {
			if i = slices.IndexFunc(old.sites, func(u *upstream) bool { return s.TLS == nil && reflect.DeepEqual(u.configured, s) }); i >= 0 {
				v.sites = append(v.sites, old.sites[i])
				continue
			}
		}
		v.sites = append(v.sites, h.openSite(s, v))
	}
	v.origins = rulesTransport{v.shared, h, v.Rules}
	if v.sites != nil {
		v.origins = rulesTransport{upstreams{v}, h, v.Rules}
	}
}

// allSites returns the sites, of which Origin is one.
func (s *Settings) allSites() []Site {
	if s.Origin == nil {
		return s.Sites
	}
	origin := *s.Origin
	// so that equal URLs are equal keys, with or without the default port
	origin.Host = canonical.Authority(origin.Scheme, origin.Host)
	return []Site{{Origins: []*url.URL{&origin}, alone: !s.PreserveHost}}
}

// openSite makes the transports to the origins of a site, and begins to check them.
func (h *Handler) openSite(s Site, v *appliedSettings) *upstream {
	to := v.shared
	connect, firstByte := cmp.Or(s.ConnectTimeout, v.ConnectTimeout), cmp.Or(s.FirstByteTimeout, v.FirstByteTimeout)
	if s.TLS != nil || s.ConnectTimeout != 0 || s.FirstByteTimeout != 0 {
		to = h.account(h.newTransport(v, connect, firstByte, s.TLS))
	}
	u := newUpstream(s, to)
	clear := sync.OnceValue(func() *origins {
		t := h.newTransport(v, connect, firstByte, nil)
		t.Clear = true
		return h.account(t)
	})
	for _, b := range u.backends {
		if b.clear {
			b.transport = clear()
		}
	}
	var ctx context.Context
	if ctx, u.stop = context.WithCancel(h.closed); u.Check != "" {
		h.watching.Go(func() { u.watch(ctx, h.cfg.Name, h.cfg.Logger) })
	}
	return u
}

// leave ends the health checks of sites that are not in next, and closes idle connections to their
// origins. Those in use are closed once they have been idle for some time.
func (v *appliedSettings) leave(next *appliedSettings) {
	for _, u := range v.sites {
		if !slices.Contains(next.sites, u) {
			u.stop()
		}
	}
	kept := next.transports()
	for t := range v.transports() {
		if !kept[t] {
			t.CloseIdleConnections()
		}
	}
}

// transports returns all transports to origins.
func (v *appliedSettings) transports() map[*origins]bool {
	all := map[*origins]bool{v.shared: true}
	for _, u := range v.sites {
		for _, b := range u.backends {
			all[b.transport] = true
		}
	}
	return all
}

// toOrigins carries the cache's requests to origins by the present settings, or by the former ones
// if the site of a request that was under way is no longer there.
type toOrigins struct{ h *Handler }

// RoundTrip implements [http.RoundTripper].
func (t toOrigins) RoundTrip(r *http.Request) (*http.Response, error) {
	v := t.h.applied.Load()
	if former := t.h.former.Load(); former != nil && v.sites != nil && v.siteOf(r.URL) == nil {
		v = former
	}
	return v.origins.RoundTrip(r)
}
