package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Site is what a reverse proxy serves under some hosts and a path. Responses are kept
// under the URL by which clients ask for them, which siblings know too: never under an
// origin's address.
type Site struct {
	// Name stands for all Hosts in the URLs under which responses are kept: one URL
	// space for all of them. "" = each host has its own.
	Name string
	// Hosts are those of requests for this site, in lower case, with the port if it is not
	// that of the scheme. "*.example.com" are all names that end so. None = all that no
	// other site has.
	Hosts []string
	// Path is where the site begins: this path and what lies below it. "" = all. Where
	// several sites fit, the one with the longest path is meant.
	Path string

	Origins []*url.URL // scheme, host and an optional prefix for paths; at least one
	// Balance says that each request goes to the origin with the fewest under way. Else
	// it goes to the first that works.
	Balance bool
	// Check is a path that each origin is asked for every five seconds; one that does not
	// answer 2xx or 3xx gets no requests while another does. "" = nothing is asked for: an
	// origin that fails is left alone for a second, doubling up to 30 s.
	Check string
	// Host is what origins get as Host; "" = the client's.
	Host string
	// TLS towards https origins; nil = the system's authorities, and no certificate.
	TLS                              *tls.Config
	ConnectTimeout, FirstByteTimeout time.Duration // 0 = those of [Config]

	alone bool // it is Config.Origin: every host, in one URL space, under the origin's own URL
}

func (s *Site) check() error {
	var errs []error
	for _, o := range s.Origins {
		if o.Scheme != "http" && o.Scheme != "https" || o.Host == "" || o.RawQuery != "" || o.Fragment != "" || o.User != nil {
			errs = append(errs, fmt.Errorf("proxy: %q is no origin: want http://HOST[:PORT][/PATH] or https", o))
		}
	}
	if len(s.Origins) == 0 {
		errs = append(errs, errors.New("proxy: a site without an origin"))
	}
	return errors.Join(errs...)
}

// serves reports whether the site is for a host and a path; or, for a URL under which
// responses are kept, for the site of a name.
func (s *Site) serves(host, path string, kept bool) bool {
	if p := strings.TrimSuffix(s.Path, "/"); p != "" && path != p && !strings.HasPrefix(path, p+"/") {
		return false
	}
	if kept && s.Name != "" {
		return host == s.Name
	}
	return len(s.Hosts) == 0 || slices.ContainsFunc(s.Hosts, func(own string) bool {
		return own == host || own[0] == '*' && strings.HasSuffix(host, own[1:])
	})
}

// find returns the site for a host and a path: of those that name the host before those
// for all hosts, the one with the longest path. nil = there is none.
func (h *Handler) find(host, path string, kept bool) (best *upstream) {
	for _, u := range h.sites {
		if u.serves(host, path, kept) && (best == nil || len(best.Hosts) == 0 && len(u.Hosts) > 0 ||
			(len(best.Hosts) == 0) == (len(u.Hosts) == 0) && len(u.Path) > len(best.Path)) {
			best = u
		}
	}
	return best
}

// authority returns a host as it is kept: in lower case, without the port that the
// scheme has anyway.
func authority(scheme, host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ":")
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// siteTarget maps a request to a reverse proxy to the URL under which its response is
// kept. Siblings ask by that URL.
func (h *Handler) siteTarget(r *http.Request, a asked) (t url.URL, no *refusal) {
	u := r.URL
	switch {
	case u.IsAbs() && u.Scheme != "http" && u.Scheme != "https":
		return t, &refusal{http.StatusBadRequest, "bad-scheme", "only http and https URLs can be asked for here"}
	case !strings.HasPrefix(u.Path, "/") && !u.IsAbs():
		return t, &refusal{http.StatusBadRequest, "bad-target", "the request line names no path"}
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

// originTarget maps a request to the proxy of one origin to the URL that it has there.
// Where clients may come by https, that scheme is in the URL, as is a host that a trusted
// proxy names: what the origin is told is never left out of the key.
func (h *Handler) originTarget(r *http.Request, a asked) (t url.URL, no *refusal) {
	o, u := h.sites[0].Origins[0], r.URL
	if u.IsAbs() {
		same := strings.EqualFold(u.Host, o.Host) && (strings.EqualFold(u.Scheme, o.Scheme) || h.bySchemes)
		if !same && (h.trusted == nil || r.RequestURI != "" && !sibling.IsQuestion(r)) || !strings.HasPrefix(u.Path, o.Path) {
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
	if prefix := strings.TrimSuffix(o.Path, "/"); prefix != "" {
		raw := strings.TrimSuffix(o.EscapedPath(), "/") + u.EscapedPath()
		t.Path, t.RawPath = prefix+u.Path, raw
	}
	return t, nil
}

// upstreams are the origins of all sites, as one transport: it takes requests for URLs
// under which responses are kept.
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
	if resp, err := site.roundTrip(r, proto, host); err != nil {
		return nil, err
	} else {
		doNotShare(resp.Header)
		return resp, nil
	}
}

// roundTrip asks the site's origins in turn. The loop ends: each origin is asked once. A
// request with a body is sent once: nobody knows how much of it is left.
func (u *upstream) roundTrip(r *http.Request, proto, host string) (*http.Response, error) {
	candidates := u.candidates(time.Now())
	for i, b := range candidates {
		resp, err := b.roundTrip(u.request(r, b, host))
		if err == nil {
			u.mapBack(resp.Header, proto, host)
			return resp, nil
		}
		cause := fault(r, err)
		if cause == nil {
			return nil, err
		}
		b.failed(time.Now())
		if i == len(candidates)-1 || r.Body != nil || !rfc9111.IsSafe(r.Method) || r.Context().Err() != nil {
			return nil, err
		}
	}
	panic("proxy: a site without an origin")
}

// request is r as the origin b gets it.
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
	if prefix := strings.TrimSuffix(b.url.Path, "/"); prefix != "" {
		to.RawPath = strings.TrimSuffix(b.url.EscapedPath(), "/") + r.URL.EscapedPath()
		to.Path = prefix + r.URL.Path
	}
	if out.Host = u.Host; out.Host == "" {
		out.Host = host
	}
	return &out
}

// mapBack replaces an address of the site's origins in a response by what clients of a
// scheme and a host can use: a path and no more, since under its URL a response may be
// kept for more than one host.
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

// mapped is a reference without the origin that it may point to.
func mapped(at url.URL, o *url.URL, scheme, host string) (string, bool) {
	prefix := strings.TrimSuffix(o.EscapedPath(), "/")
	raw := at.EscapedPath()
	switch {
	case at.Host == "" && (prefix == "" || !strings.HasPrefix(raw, "/")):
		return "", false // as it should be
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
		raw = "/." + raw // a path, and not a host
	}
	if at.RawQuery != "" || at.ForceQuery {
		raw += "?" + at.RawQuery
	}
	if at.Fragment != "" {
		raw += "#" + at.EscapedFragment()
	}
	return raw, true
}
