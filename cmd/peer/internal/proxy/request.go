package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/summarycache/summarycache/cmd/peer/internal/canonical"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A refusal is the answer to a request that this proxy does not accept.
type refusal struct {
	status       int
	detail, text string
}

// canonical returns r in the one form in which rules, keys, the log, siblings and origins see it:
// with the absolute URL under which its response is stored. r is not changed.
func (v *appliedSettings) canonical(w http.ResponseWriter, r *http.Request) (*http.Request, *refusal) {
	if r.Method == "" || !httpguts.ValidHeaderFieldName(r.Method) { // HTTP/2 frames any text
		return nil, &refusal{http.StatusBadRequest, "bad-method", "the method is not a token"}
	}
	if no := framing(w, r); no != nil {
		return nil, no
	}
	trusted := v.trusts(r.RemoteAddr)
	header, size := v.fields.Clean(r.Header, r.Method, r.ContentLength != 0, trusted)
	// a sibling adds fields to what it has accepted
	if size += len(r.RequestURI); size > v.MaxHeader && !sibling.IsLookup(r) {
		return nil, &refusal{http.StatusRequestHeaderFieldsTooLarge, "too-large",
			fmt.Sprintf("the URL and the fields of the request are longer than the %d bytes of --max-header-size",
				v.MaxHeader)}
	}
	by := forwarded{scheme: "http"}
	if r.TLS != nil {
		by.scheme = "https"
	}
	if trusted {
		if by.believe(header); by.redundant && header["Forwarded"] != nil {
			header = maps.Clone(header)
			delete(header, "Forwarded")
		}
	}
	target, no := v.target(r, by)
	if no != nil {
		return nil, no
	}
	if len(header) == len(r.Header) && target == *r.URL {
		return r, nil
	}
	clone := &struct {
		http.Request
		url url.URL
	}{*r, target}
	clone.URL, clone.Host, clone.Header = &clone.url, target.Host, header
	return &clone.Request, nil
}

// framing prevents request smuggling. It has the connection closed after a request if it is not
// certain where the next one begins, and refuses a request whose own end is not certain.
func framing(w http.ResponseWriter, r *http.Request) *refusal {
	switch {
	case r.ProtoMajor != 1:
		return paddedField(r.Header)
	case r.ProtoMinor == 0: // it has no Transfer-Encoding, and net/http hides one (RFC 9112 section 6.1)
		framing := conn.FramingOf(r.Context())
		if framing != conn.Plain || r.ContentLength > 0 {
			w.Header().Set("Connection", "close") // what follows may not be a request
		}
		switch {
		case framing == conn.Coded, framing == conn.Unknown && r.ContentLength > 0:
			return &refusal{http.StatusBadRequest, "bad-framing",
				"HTTP/1.0 has no Transfer-Encoding, and a body in it comes behind no other request"}
		case r.ContentLength == 0 && r.Header["Content-Length"] == nil &&
			(r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch):
			w.Header().Set("Connection", "close")
			return &refusal{http.StatusLengthRequired, "no-length", "a body in HTTP/1.0 needs a Content-Length"}
		}
	case len(r.TransferEncoding) > 0:
		// It may also have had a Content-Length, which net/http hides, and by which a proxy in
		// front may have framed it (RFC 9112 section 6.1).
		w.Header().Set("Connection", "close")
	}
	return nil
}

// paddedField refuses a header by HTTP/2 with space around a value: origins refuse such a request as
// malformed (RFC 9113 section 8.2.1). In HTTP/1 that space is no part of the value.
func paddedField(h http.Header) *refusal {
	for _, lines := range h {
		for _, v := range lines {
			if n := len(v); n > 0 && (v[0] == ' ' || v[0] == '\t' || v[n-1] == ' ' || v[n-1] == '\t') {
				return &refusal{http.StatusBadRequest, "bad-field",
					"a field has space around its value, which HTTP/2 does not allow"}
			}
		}
	}
	return nil
}

// wantTrailer has the server of HTTP/1 set the trailers of a request in a place where copies of r
// find them, whether the header names them or not. The server of HTTP/2 drops those that it does
// not name.
func wantTrailer(r *http.Request) {
	if r.Trailer == nil && len(r.TransferEncoding) > 0 {
		r.Trailer = make(http.Header)
	}
}

// target returns the canonical URL that a request is for.
func (v *appliedSettings) target(r *http.Request, by forwarded) (t url.URL, no *refusal) {
	if strings.IndexByte(r.RequestURI, '#') >= 0 {
		return t, &refusal{http.StatusBadRequest, "bad-target", "a request line must not have a fragment"}
	}
	if host := cmp.Or(r.URL.Host, r.Host); host != "" && !canonical.ValidHost(host) {
		return t, &refusal{http.StatusBadRequest, "bad-host", "the host is not one (RFC 9110 section 7.2)"}
	}
	u := canonical.URL(r.URL)
	switch {
	case u.Scheme == "" && v.sites == nil:
		return t, &refusal{http.StatusBadRequest, "not-absolute",
			"this is a forward proxy: configure it as your proxy, or send the absolute URL in the request line"}
	case u.Scheme == "" && !strings.HasPrefix(u.Path, "/"):
		return t, &refusal{http.StatusBadRequest, "bad-target", "the request line has no path"}
	case u.Scheme == "":
	case u.Scheme != "http" && u.Scheme != "https":
		return t, &refusal{http.StatusBadRequest, "bad-scheme", "only http and https URLs are served here"}
	case u.Hostname() == "":
		return t, &refusal{http.StatusBadRequest, "no-host", "the URL names no host"}
	}
	switch {
	case v.sites == nil:
		return u, nil
	case v.sites[0].alone:
		return v.originTarget(r, u, by)
	}
	return v.siteTarget(r, u, by)
}

// siteTarget returns the URL under which a reverse proxy stores the response to a request for u.
// Siblings use that URL in their lookups.
func (v *appliedSettings) siteTarget(r *http.Request, u url.URL, by forwarded) (url.URL, *refusal) {
	absolute := u.Scheme != ""
	if !absolute {
		u.Scheme, u.Host = by.scheme, by.host
		if u.Host == "" {
			u.Host = r.Host
		}
		u.Host = canonical.Authority(u.Scheme, u.Host)
	}
	site := v.find(u.Host, u.Path, absolute)
	if site == nil {
		site = v.find(u.Host, u.Path, false)
	}
	if site == nil || u.Host == "" {
		return u, &refusal{http.StatusMisdirectedRequest, "wrong-site", "no site here has that host and path"}
	}
	if site.Name != "" {
		u.Host = site.Name
	}
	return u, nil
}

// originTarget is siteTarget for a single origin: the URL at the origin. Its scheme is the
// client's where clients may use https, and its host is the one that a trusted proxy names, if
// any: whatever is forwarded to the origin must be part of the key.
func (v *appliedSettings) originTarget(r *http.Request, u url.URL, by forwarded) (url.URL, *refusal) {
	o := v.sites[0].Origins[0]
	if u.Scheme != "" {
		same := u.Host == o.Host && (u.Scheme == o.Scheme || v.bySchemes)
		if !same && (v.TrustedProxies == nil || r.RequestURI != "" && !sibling.IsLookup(r)) ||
			!strings.HasPrefix(u.Path, o.Path) {
			return u, &refusal{http.StatusMisdirectedRequest, "wrong-origin",
				"this is a reverse proxy for another origin"}
		}
		return u, nil
	}
	u.Scheme, u.Host = o.Scheme, o.Host
	if v.bySchemes {
		u.Scheme = by.scheme
	}
	if by.host != "" {
		u.Host = canonical.Authority(u.Scheme, by.host)
	}
	belowPath(o, &u)
	return u, nil
}
