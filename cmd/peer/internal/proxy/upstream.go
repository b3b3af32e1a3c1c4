package proxy

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

const checkEvery = 5 * time.Second // between two requests for Site.Check; also the limit for the answer

// An upstream is a site with the state of its origins.
type upstream struct {
	Site
	configured Site               // as it was given
	stop       context.CancelFunc // ends its health checks
	backends   []*backend
	turn       atomic.Uint64 // of the round robin among equally busy origins
}

// A backend is one origin of a site.
type backend struct {
	url       *url.URL
	transport *origins
	clear     bool // it speaks HTTP/2 without TLS, by prior knowledge (RFC 9113 section 3.3)
	count     bool // maintain underWay
	underWay  atomic.Int64
	unhealthy atomic.Bool // it failed its last check
}

// newUpstream returns the site with its origins. The h2c origins among them have http URLs from
// here on, and still need a transport of their own.
func newUpstream(s Site, transport *origins) *upstream {
	u := &upstream{Site: s, configured: s}
	u.Origins = nil
	for _, o := range s.Origins {
		b := &backend{url: o, transport: transport, count: s.Balance}
		if o.Scheme == "h2c" {
			at := *o
			at.Scheme = "http"
			b.url, b.clear = &at, true
		}
		u.Origins, u.backends = append(u.Origins, b.url), append(u.backends, b)
	}
	return u
}

// candidates returns the origins in the order in which to try them: those that work before those
// that failed lately.
func (u *upstream) candidates(now time.Time) []*backend {
	if len(u.backends) == 1 {
		return u.backends
	}
	list := slices.Clone(u.backends)
	rank := make(map[*backend]int64, len(list))
	if u.Balance {
		n := int(u.turn.Add(1) % uint64(len(list))) // equally busy origins take turns
		list = slices.Concat(list[n:], list[:n])
	}
	for _, b := range list {
		if rank[b] = 0; u.Balance {
			rank[b] = b.underWay.Load()
		}
		if b.rests(now) {
			rank[b] += 1 << 40
		}
	}
	slices.SortStableFunc(list, func(a, b *backend) int { return cmp.Compare(rank[a], rank[b]) })
	return list
}

func (b *backend) rests(now time.Time) bool {
	return b.unhealthy.Load() || b.transport.rests(b.url.Host, now)
}

func (b *backend) roundTrip(r *http.Request) (*http.Response, error) {
	if b.count {
		b.underWay.Add(1)
	}
	if b.clear && r.Header["Upgrade"] != nil { // HTTP/2 has no upgrades: the answer is one without
		r = r.Clone(r.Context())
		rfc9111.RemoveHopByHop(r.Header)
	}
	resp, err := b.transport.RoundTrip(r)
	switch {
	case !b.count:
	case err != nil:
		b.underWay.Add(-1)
	default:
		resp.Body = &counted{resp.Body, sync.OnceFunc(func() { b.underWay.Add(-1) })}
		if c, ok := resp.Body.(*counted).ReadCloser.(upgraded); ok {
			resp.Body = &countedConn{c, resp.Body}
		}
	}
	return resp, err
}

// A counted body calls done when it is closed.
type counted struct {
	io.ReadCloser
	done func()
}

func (c *counted) Close() error {
	c.done()
	return c.ReadCloser.Close()
}

// An upgraded connection is the body of a 101.
type upgraded interface {
	net.Conn
	CloseWrite() error
}

type countedConn struct {
	upgraded
	counted io.Closer
}

func (c *countedConn) Close() error { return c.counted.Close() }

// watch checks the origins' health until ctx ends.
func (u *upstream) watch(ctx context.Context, name string, log *slog.Logger) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		for _, b := range u.backends {
			b.check(ctx, u, name, log)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// check checks one origin.
func (b *backend) check(ctx context.Context, u *upstream, name string, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, checkEvery)
	defer cancel()
	at := url.URL{Scheme: b.url.Scheme, Host: b.url.Host, Path: u.Check}
	belowPath(b.url, &at)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err == nil {
		r.Header.Set("User-Agent", name+" health check")
		if r.Host = u.Host; r.Host == "" && len(u.Hosts) > 0 && u.Hosts[0][0] != '*' {
			r.Host = u.Hosts[0]
		}
		var resp *http.Response
		if resp, err = b.transport.RoundTrip(r); err == nil {
			io.CopyN(io.Discard, resp.Body, 64<<10)
			resp.Body.Close()
			if resp.StatusCode < 200 || resp.StatusCode >= 400 {
				err = fmt.Errorf("%s %s", u.Check, resp.Status)
			}
		}
	}
	if err != nil && context.Cause(ctx) == context.Canceled {
		return
	}
	if was := b.unhealthy.Swap(err != nil); was != (err != nil) {
		if err != nil {
			log.Warn("an origin fails its health check", "origin", b.url.Host, "err", err)
		} else {
			log.Info("an origin passes its health check again", "origin", b.url.Host)
		}
	}
}
