package rfc9111

import (
	"net/http"
	"strings"
)

// A blameless request has fields of this length at most, together and each, and a path of this length.
const (
	blamelessFields = 2 << 10
	blamelessField  = 256
	blamelessPath   = 256
)

// Blameless reports whether an origin that answers 400 or 414 to a request can only mean its URL, which is the key: its
// path is short and plain, it has no query, and no field that servers and frameworks check by themselves, or that is long,
// repeated or strangely written, such as with another one folded into it. Other fields may have been the reason too, as they may be that of any response: an
// origin that decides by them says so in Vary.
func Blameless(r *http.Request) bool {
	path := r.URL.EscapedPath()
	if r.URL.RawQuery != "" || r.URL.ForceQuery || len(path) > blamelessPath || !plain(path, "/-._~:@,;=+") {
		return false
	}
	size := 0
	for name, lines := range r.Header {
		value := strings.Join(lines, "\n")
		if len(value) > blamelessField || checked(name) {
			return false
		}
		more := " :\"'`()[]?!%@&#$~"
		if strings.HasPrefix(name, "Accept") {
			more = " "
		}
		if size += len(name) + len(value); size > blamelessFields || strings.Contains(value, ": ") || !plain(value, "/-._,;=+*"+more) {
			return false
		}
	}
	return true
}

// checked reports whether a field of a request, by its canonical name, is one that servers, frameworks and what is before
// them look at by themselves, or has a name like those.
func checked(name string) bool {
	switch name {
	case "Authorization", "Cookie", "Cookie2", "Date", "Depth", "Destination", "Early-Data", "Expect", "Forwarded", "From", "Host", "Http2-Settings",
		"Keep-Alive", "Max-Forwards", "Origin", "Overwrite", "Prefer", "Range", "Referer", "Te", "Timeout", "Trailer", "Translate", "Upgrade", "Via", "Warning":
		return true
	}
	for _, prefix := range []string{"X-", "If-", "Content-", "Proxy-", "Transfer-", "Connection", "Access-Control-", "Sec-Websocket-", "Grpc-", "Cf-", "Cdn-", "True-", "Client-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	name = strings.ToLower(name)
	for _, part := range []string{"_", "method", "override", "host", "url", "uri", "auth", "token", "key", "version", "encoding", "length"} {
		if strings.Contains(name, part) && name != "accept-encoding" {
			return true
		}
	}
	return false
}

// plain reports whether s has letters, digits and characters of more only.
func plain(s, more string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(more, c)
	})
}
