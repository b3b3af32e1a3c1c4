package proxy

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// A Site is what a reverse proxy serves under some hosts and a path. Responses are stored under
// the URL that clients use, never under an origin's address, so that all siblings use the same key.
type Site struct {
	// Name replaces the host in the URLs under which responses are stored, so that all Hosts
	// share them. "" = each host has its own responses.
	Name string
	// Hosts are those of requests for this site, in lower case. One without a port stands for all
	// ports; one with a port, which is not the scheme's default, takes precedence.
	// "*.example.com" matches all names with that ending. None = all hosts that no other site has.
	Hosts []string
	// Path is that of the site, which also has everything below it. "" = all paths. If several
	// sites match, the longest path wins.
	Path string

	// scheme (http, https, or h2c for HTTP/2 without TLS), host and an optional prefix for paths; at least one
	Origins []*url.URL
	// Balance sends each request to the origin with the fewest requests under way. Without it,
	// requests go to the first origin that works.
	Balance bool
	// Check is a path that is fetched from each origin every five seconds. An origin that does
	// not answer 2xx or 3xx gets no requests while another does. "" = no checks: an origin that
	// fails gets no requests for a second, doubling up to 30 s.
	Check string
	// Host is the Host field for origins; "" = the client's.
	Host string
	// TLS is for https origins; nil = the system's authorities, and no client certificate.
	TLS                              *tls.Config
	ConnectTimeout, FirstByteTimeout time.Duration // 0 = those of [Config]
	// SliceFrom is the length in bytes from which objects are kept in slices. 0 = [engine.DefaultLarge];
	// negative = none is.
	SliceFrom int64

	alone bool // it is Config.Origin: it has all hosts, and responses are stored under the origin's URL
}

// serves reports whether the site has a host and a path, and how well the host fits: 2 = it is
// listed, 1 = it is without its port, 0 = the site has all hosts. They are those of a request or, if
// key is true, those of a URL under which responses are stored.
func (s *Site) serves(host, path string, key bool) (fit int, ok bool) {
	if p := strings.TrimSuffix(s.Path, "/"); p != "" && path != p && !strings.HasPrefix(path, p+"/") {
		return 0, false
	}
	switch {
	case key && s.Name != "":
		return 2, host == s.Name
	case len(s.Hosts) == 0:
		return 0, true
	case s.lists(host):
		return 2, true
	}
	name, _ := canonical.SplitHost(host)
	return 1, s.lists(name)
}

// lists reports whether a host is one of the site's.
func (s *Site) lists(host string) bool {
	return slices.ContainsFunc(s.Hosts, func(own string) bool {
		return own == host || own[0] == '*' && strings.HasSuffix(host, own[1:])
	})
}

// find returns the site that serves a host and a path; nil = none. The best fit of the host wins;
// among equals the longest path.
func (v *appliedSettings) find(host, path string, key bool) (best *upstream) {
	most := -1
	for _, u := range v.sites {
		if fit, ok := u.serves(host, path, key); ok && (fit > most || fit == most && len(u.Path) > len(best.Path)) {
			best, most = u, fit
		}
	}
	return best
}

// siteOf returns the site that has the response of a URL under which responses are stored; nil = none.
func (v *appliedSettings) siteOf(u *url.URL) *upstream {
	if len(v.sites) > 0 && v.sites[0].alone {
		return v.sites[0]
	}
	return v.find(canonical.Authority(u.Scheme, u.Host), u.Path, true)
}

// sliceFrom returns the length from which the object that r requests is kept in slices; 0 = never.
func (h *Handler) sliceFrom(r *http.Request) int64 {
	if site := h.applied.Load().siteOf(r.URL); site != nil && site.SliceFrom != 0 {
		return max(0, site.SliceFrom)
	}
	return engine.DefaultLarge
}

// belowPath puts the path of u below that of an origin.
func belowPath(o, u *url.URL) {
	if prefix := strings.TrimSuffix(o.Path, "/"); prefix != "" {
		u.RawPath = strings.TrimSuffix(o.EscapedPath(), "/") + u.EscapedPath()
		u.Path = prefix + u.Path
	}
}

// upstreams is the transport to the origins of all sites. It takes requests for the URLs under
// which responses are stored.
type upstreams struct{ *appliedSettings }

// RoundTrip changes r's header, which is the cache's own copy.
func (t upstreams) RoundTrip(r *http.Request) (*http.Response, error) {
	site := t.siteOf(r.URL)
	if site == nil {
		return nil, fmt.Errorf("proxy: no site for %s", r.URL.Host)
	}
	proto, host := r.URL.Scheme, r.URL.Host
	switch {
	case site.alone:
		if !t.bySchemes {
			proto = "http"
		}
		if strings.EqualFold(host, site.Origins[0].Host) {
			host = ""
		}
	case site.Name != "" && len(site.Hosts) > 0 && site.Hosts[0][0] != '*':
		host = site.Hosts[0]
	}
	setForwarded(r.Header, r.RemoteAddr, proto, host)
	to := r
	if u := t.Rules.Rewritten(r); u != nil {
		rewritten := *r
		rewritten.URL = u
		to = &rewritten
	}
	resp, err := site.roundTrip(to, proto, host, func(resp *http.Response) bool { return t.Rules.FailsOver(r, resp) })
	if err == nil {
		doNotShare(resp.Header)
	}
	return resp, err
}

// roundTrip sends r to the site's origins in turn until one answers, and not with what another should
// rather answer. The loop ends: each origin gets r once.
func (u *upstream) roundTrip(r *http.Request, proto, host string, failed func(*http.Response) bool) (*http.Response, error) {
	for candidates := u.candidates(time.Now()); ; candidates = candidates[1:] {
		b := candidates[0]
		resp, err := b.roundTrip(u.request(r, b, host))
		if len(candidates) > 1 && (err == nil && failed(resp) || err != nil && fault(r, err) != nil) {
			if once, ok := http1.Again(r); ok {
				if err == nil {
					resp.Body.Close()
				}
				r = once
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		u.mapBack(resp.Header, proto, host)
		return resp, nil
	}
}

// request returns r as it is sent to the origin b.
func (u *upstream) request(r *http.Request, b *backend, host string) *http.Request {
	if u.alone && r.URL.Scheme == b.url.Scheme && r.URL.Host == b.url.Host && r.Host == b.url.Host {
		return r
	}
	out := *r
	to := *r.URL
	to.Scheme, to.Host = b.url.Scheme, b.url.Host
	out.URL, out.Host = &to, b.url.Host
	if u.alone {
		return &out
	}
	belowPath(b.url, &to)
	out.Host = cmp.Or(u.Host, host)
	return &out
}

// mapBack replaces addresses of the site's origins in a response by references that clients can
// use. These are paths without a host where possible, since one stored response may be served
// under several hosts.
func (u *upstream) mapBack(h http.Header, scheme, host string) {
	for _, name := range []string{"Location", "Content-Location"} {
		lines := h[name]
		if len(lines) != 1 {
			continue
		}
		at, err := url.Parse(lines[0])
		if err != nil || at.User != nil || at.Opaque != "" {
			continue
		}
		for _, b := range u.backends {
			if to, ok := mapped(*at, b.url, scheme, host); ok {
				h[name] = []string{to}
				break
			}
		}
	}
}

// mapped returns the reference at, to the origin o, as a client's reference; ok is false if it
// does not lead to o or needs no change.
func mapped(at url.URL, o *url.URL, scheme, host string) (to string, ok bool) {
	prefix := strings.TrimSuffix(o.EscapedPath(), "/")
	raw := at.EscapedPath()
	switch {
	case at.Host == "" && (prefix == "" || !strings.HasPrefix(raw, "/")):
		return "", false // a client's reference already
	case at.Host != "" && canonical.Authority(at.Scheme, at.Host) != canonical.Authority(o.Scheme, o.Host) &&
		!strings.EqualFold(at.Host, o.Host):
		return "", false
	case prefix != "" && raw != prefix && !strings.HasPrefix(raw, prefix+"/"):
		return "", false
	}
	if raw = strings.TrimPrefix(raw, prefix); raw == "" {
		raw = "/"
	}
	if other := at.Host != "" && at.Scheme != "" && at.Scheme != o.Scheme && at.Scheme != scheme; other && host == "" {
		return "", false
	} else if other {
		raw = at.Scheme + "://" + host + raw
	} else if strings.HasPrefix(raw, "//") {
		raw = "/." + raw // otherwise it would be a host
	}
	if at.RawQuery != "" || at.ForceQuery {
		raw += "?" + at.RawQuery
	}
	if at.Fragment != "" {
		raw += "#" + at.EscapedFragment()
	}
	return raw, true
}
