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

	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Site is what a reverse proxy serves under some hosts and a path. Responses are stored under
// the URL that clients use, never under an origin's address, so that all siblings use the same key.
type Site struct {
	// Name replaces the host in the URLs under which responses are stored, so that all Hosts
	// share them. "" = each host has its own responses.
	Name string
	// Hosts are those of requests for this site, in lower case, with the port if it is not the
	// scheme's default. "*.example.com" matches all names with that ending. None = all hosts
	// that no other site has.
	Hosts []string
	// Path is that of the site, which also has everything below it. "" = all paths. If several
	// sites match, the longest path wins.
	Path string

	Origins []*url.URL // scheme, host and an optional prefix for paths; at least one
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

	alone bool // it is Config.Origin: it has all hosts, and responses are stored under the origin's URL
}

// serves reports whether the site has a host and a path: those of a request or, if key is true,
// those of a URL under which responses are stored.
func (s *Site) serves(host, path string, key bool) bool {
	if p := strings.TrimSuffix(s.Path, "/"); p != "" && path != p && !strings.HasPrefix(path, p+"/") {
		return false
	}
	if key && s.Name != "" {
		return host == s.Name
	}
	return len(s.Hosts) == 0 || slices.ContainsFunc(s.Hosts, func(own string) bool {
		return own == host || own[0] == '*' && strings.HasSuffix(host, own[1:])
	})
}

// find returns the site that serves a host and a path; nil = none. Sites that list the host come
// before those for all hosts; among equals the longest path wins.
func (h *Handler) find(host, path string, key bool) (best *upstream) {
	for _, u := range h.sites {
		if u.serves(host, path, key) && (best == nil || len(best.Hosts) == 0 && len(u.Hosts) > 0 ||
			(len(best.Hosts) == 0) == (len(u.Hosts) == 0) && len(u.Path) > len(best.Path)) {
			best = u
		}
	}
	return best
}

// authority normalises a host: lower case, and without the scheme's default port.
func authority(scheme, host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ":")
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// under puts the path of u below that of an origin.
func under(o, u *url.URL) {
	if prefix := strings.TrimSuffix(o.Path, "/"); prefix != "" {
		u.RawPath = strings.TrimSuffix(o.EscapedPath(), "/") + u.EscapedPath()
		u.Path = prefix + u.Path
	}
}

// siteTarget returns the URL under which a reverse proxy stores the response to a request.
// Siblings use that URL in their lookups.
func (h *Handler) siteTarget(r *http.Request, a forwarded) (t url.URL, no *refusal) {
	u := r.URL
	switch {
	case u.IsAbs() && u.Scheme != "http" && u.Scheme != "https":
		return t, &refusal{http.StatusBadRequest, "bad-scheme", "only http and https URLs are served here"}
	case !strings.HasPrefix(u.Path, "/") && !u.IsAbs():
		return t, &refusal{http.StatusBadRequest, "bad-target", "the request line has no path"}
	}
	if h.sites[0].alone {
		return h.originTarget(r, a)
	}
	scheme, host := a.scheme, a.host
	switch {
	case u.IsAbs():
		scheme, host = u.Scheme, u.Host
	case host == "":
		host = r.Host
	}
	host = authority(scheme, host)
	site := h.find(host, u.Path, u.IsAbs())
	if site == nil {
		site = h.find(host, u.Path, false)
	}
	if site == nil || host == "" {
		return t, &refusal{http.StatusMisdirectedRequest, "wrong-site", "no site here has that host and path"}
	}
	t = *u
	t.Scheme, t.Host, t.User, t.Fragment, t.RawFragment = scheme, host, nil, "", ""
	if site.Name != "" {
		t.Host = site.Name
	}
	return t, nil
}

// originTarget is siteTarget for a single origin: the URL at the origin. Its scheme is the
// client's where clients may use https, and its host is the one that a trusted proxy names, if
// any: whatever is forwarded to the origin must be part of the key.
func (h *Handler) originTarget(r *http.Request, a forwarded) (t url.URL, no *refusal) {
	o, u := h.sites[0].Origins[0], r.URL
	if u.IsAbs() {
		same := strings.EqualFold(u.Host, o.Host) && (strings.EqualFold(u.Scheme, o.Scheme) || h.bySchemes)
		if !same && (h.cfg.TrustedProxies == nil || r.RequestURI != "" && !sibling.IsLookup(r)) || !strings.HasPrefix(u.Path, o.Path) {
			return t, &refusal{http.StatusMisdirectedRequest, "wrong-origin", "this is a reverse proxy for another origin"}
		}
		return *u, nil
	}
	t = *u
	t.Scheme, t.Host, t.User, t.Fragment, t.RawFragment = o.Scheme, o.Host, nil, "", ""
	if h.bySchemes {
		t.Scheme = a.scheme
	}
	if a.host != "" {
		t.Host = authority(t.Scheme, a.host)
	}
	under(o, &t)
	return t, nil
}

// upstreams is the transport to the origins of all sites. It takes requests for the URLs under
// which responses are stored.
type upstreams struct{ h *Handler }

// RoundTrip changes r's header, which is the cache's own copy.
func (t upstreams) RoundTrip(r *http.Request) (*http.Response, error) {
	site := t.h.sites[0]
	if !site.alone {
		host := authority(r.URL.Scheme, r.URL.Host)
		if site = t.h.find(host, r.URL.Path, true); site == nil {
			return nil, fmt.Errorf("proxy: no site for %s", host)
		}
	}
	proto, host := r.URL.Scheme, r.URL.Host
	switch {
	case site.alone:
		if !t.h.bySchemes {
			proto = "http"
		}
		if strings.EqualFold(host, site.Origins[0].Host) {
			host = ""
		}
	case site.Name != "" && len(site.Hosts) > 0 && site.Hosts[0][0] != '*':
		host = site.Hosts[0]
	}
	setForwarded(r.Header, r.RemoteAddr, proto, host)
	resp, err := site.roundTrip(r, proto, host)
	if err == nil {
		doNotShare(resp.Header)
	}
	return resp, err
}

// roundTrip sends r to the site's origins in turn until one answers. The loop ends: each origin
// gets r once. A request with a body is sent only once, since part of the body may be consumed.
func (u *upstream) roundTrip(r *http.Request, proto, host string) (*http.Response, error) {
	for candidates := u.candidates(time.Now()); ; candidates = candidates[1:] {
		b := candidates[0]
		resp, err := b.roundTrip(u.request(r, b, host))
		if err == nil {
			u.mapBack(resp.Header, proto, host)
			return resp, nil
		}
		if fault(r, err) == nil {
			return nil, err
		}
		b.failed(time.Now())
		if len(candidates) == 1 || r.Body != nil || !rfc9111.IsSafe(r.Method) || r.Context().Err() != nil {
			return nil, err
		}
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
	under(b.url, &to)
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
	case at.Host != "" && authority(at.Scheme, at.Host) != authority(o.Scheme, o.Host) && !strings.EqualFold(at.Host, o.Host):
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
