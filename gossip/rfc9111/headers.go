package rfc9111

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// hopByHop are the fields that apply to one connection even if Connection does not name them.
var hopByHop = [...]string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Trailer"}

// HopByHop reports whether a field applies to one connection even if Connection does not name it. name is canonical.
func HopByHop(name string) bool { return slices.Contains(hopByHop[:], name) }

// endToEnd reports whether a field is never a connection option (RFC 9110 section 7.6.1): caches obey it, it
// says what the message is, or it finds loops. Whoever could remove it would decide what others get.
func endToEnd(name string) bool {
	switch name {
	case "Age", "Date", "Etag", "Expires", "Last-Modified", "Pragma", "Set-Cookie", "Vary", "Via",
		"Surrogate-Key", "Cache-Tag", "Xkey", "Surrogate-Control", "Edge-Control", "X-Accel-Expires":
		return true
	}
	return strings.HasPrefix(name, "Content-") || strings.HasSuffix(name, "Cache-Control")
}

// RemoveHopByHop removes the fields of h that apply to one connection only (RFC 9110 section 7.6.1, RFC 9111
// section 3.1). What Connection names is removed, except for what it must not name, such as Cache-Control and Vary.
func RemoveHopByHop(h http.Header) {
	for name := range Members(h["Connection"]) {
		if name = http.CanonicalHeaderKey(name); !endToEnd(name) {
			delete(h, name)
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// AddVia appends a member to the Via field: the version of HTTP in which a cache received
// the message, and the name of the cache, a token (RFC 9110 section 7.6.3).
func AddVia(h http.Header, major, minor int, name string) {
	version := "1.1"
	switch {
	case major == 1 && minor == 0:
		version = "1.0"
	case major == 2:
		version = "2.0"
	}
	old := h["Via"]
	h["Via"] = append(old[:len(old):len(old)], version+" "+name)
}

// Via returns the names of the caches that a message has passed, the nearest last
// (RFC 9110 section 7.6.3). Anybody can claim a name.
func Via(h http.Header) (names []string) {
	for hop := range Members(h["Via"]) {
		if f := strings.Fields(hop); len(f) >= 2 {
			names = append(names, f[1])
		}
	}
	return names
}

// IsSafe reports whether a method is registered as safe (RFC 9110 section 9.2.1).
func IsSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "PROPFIND", "REPORT", "SEARCH",
		"QUERY", "PRI":
		return true
	}
	return false
}

// Invalidated returns the canonical URLs whose stored responses must be removed after a request
// was answered with a status and a header (RFC 9111 section 4.4). These are the target of an
// unsafe request that succeeded and, if they have the same origin, its Location,
// Content-Location, and the Destination of MOVE and COPY (RFC 4918 section 10.3).
func Invalidated(r *http.Request, target *url.URL, status int, h http.Header) []string {
	if IsSafe(r.Method) || status < 200 || status >= 400 {
		return nil
	}
	urls := []string{CanonicalURL(target)}
	for _, named := range []string{h.Get("Location"), h.Get("Content-Location"), r.Header.Get("Destination")} {
		ref, err := url.Parse(named)
		if named == "" || err != nil {
			continue
		}
		if other := CanonicalURL(target.ResolveReference(ref)); originOf(other) == originOf(urls[0]) {
			urls = append(urls, other)
		}
	}
	return urls
}

// originOf returns the scheme and authority of a canonical URL.
func originOf(url string) string {
	if i := strings.Index(url, "://"); i >= 0 {
		if j := strings.IndexByte(url[i+3:], '/'); j >= 0 {
			return url[:i+3+j]
		}
	}
	return url
}
