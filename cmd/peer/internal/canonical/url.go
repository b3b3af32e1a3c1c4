package canonical

import (
	"bytes"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// URL returns u in normal form: path and query as by [Path] and [Query], scheme and host as by
// [Authority], without user and fragment.
func URL(u *url.URL) url.URL {
	out := *u
	out.Scheme, out.User, out.Fragment, out.RawFragment, out.Opaque = strings.ToLower(u.Scheme), nil, "", "", ""
	out.Host = Authority(out.Scheme, u.Host)
	out.RawQuery = Query(u.RawQuery)
	raw := rawPath(u)
	if path := Path(raw); path != raw || u.Path == "" {
		out.Path, _ = url.PathUnescape(path) // no error: Path leaves only valid escapes
		out.RawPath = path
	}
	return out
}

// rawPath returns the path of a parsed URL as it was received.
func rawPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath // even where EscapedPath would ignore it
	}
	return u.EscapedPath()
}

// ASCII returns a host, or a pattern that begins with "*.", as requests have it: bücher.example as
// xn--bcher-kva.example. A host that has no such form stays.
func ASCII(host string) string {
	name, wild := strings.CutPrefix(host, "*.")
	ascii, err := httpguts.PunycodeHostPort(name) // an ASCII host as it is
	switch {
	case err != nil:
		return host
	case wild:
		return "*." + ascii
	}
	return ascii
}

// Authority returns a host (see [ValidHost]) in normal form: by [ASCII], in lower case, without a dot at its end, zeros
// before the port or the default port of its scheme, and addresses of IPv6 as RFC 5952 writes them.
func Authority(scheme, host string) string {
	host = strings.ToLower(ASCII(host))
	name, port := SplitHost(host)
	name, port = strings.TrimSuffix(name, "."), strings.TrimLeft(port, "0")
	if strings.HasPrefix(name, "[") {
		if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
			name = "[" + ip.String() + "]"
		}
	}
	switch {
	case port == "", port == "443" && scheme == "https", port == "80" && scheme != "https":
		return name
	case len(name)+len(port)+1 == len(host) && host[:len(name)] == name:
		return host
	}
	return name + ":" + port
}

// SplitHost returns the name and the port of a host. An address of IPv6 keeps its brackets; port "" = none.
func SplitHost(host string) (name, port string) {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i], host[i+1:]
	}
	return host, ""
}

// ValidHost reports whether a host is a name (RFC 3986 section 3.2.2) without empty labels, but for a dot at its end,
// or an address, with a port from 1 to 65535 or none.
func ValidHost(host string) bool {
	name, port := SplitHost(host)
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	if literal, ok := strings.CutPrefix(name, "["); ok {
		ip, err := netip.ParseAddr(strings.TrimSuffix(literal, "]"))
		return err == nil && ip.Is6() && strings.HasSuffix(literal, "]")
	}
	for i := range len(name) {
		c := name[i]
		empty := c == '.' && (i == 0 || name[i-1] == '.')
		if empty || !unreserved(c) && c < utf8.RuneSelf && strings.IndexByte("!$&'()*+,;=%", c) < 0 {
			return false
		}
	}
	return name != ""
}

// Path returns a path in the normal form of RFC 3986 section 6.2.2: unreserved characters are not
// escaped, the hexadecimal digits of escapes are upper case, and there are no dot segments. Bytes
// that a URL must not have are escaped; an empty path is "/". An ambiguous path (see [Ambiguous])
// stays as it is, but for these bytes. Each escape in raw must be valid.
func Path(raw string) string {
	looks := inspect(raw)
	switch {
	case looks == 0:
		return raw
	case looks&(ambiguous|unusual) == unusual && strings.HasPrefix(raw, "/"):
		raw = withoutDotSegments(unescapeUnreserved(raw))
	}
	if looks&invalid != 0 {
		raw = escapeInvalid(raw, pathByte)
	}
	if raw == "" {
		return "/"
	}
	return raw
}

// Query returns a query in normal form: with the bytes escaped that a URL must not have, and
// otherwise as it is. Signatures may depend on its spelling, and no rule about paths looks at it.
func Query(raw string) string { return escapeInvalid(raw, queryByte) }

// Ambiguous reports whether some servers take the path of u for another one, although RFC 3986 says
// that they differ. Servers decode %2F, %5C, %2E before they look for segments, decode twice, merge
// slashes, end a path at %00, %23, %3B or %3F, drop what follows a semicolon in a segment, or replace
// bytes that are not UTF-8.
func Ambiguous(u *url.URL) bool {
	return inspect(rawPath(u))&ambiguous != 0
}

// Plain reports whether an escaped path is in normal form and not ambiguous.
func Plain(raw string) bool { return inspect(raw) == 0 }

// The findings of inspect.
const (
	ambiguous = 1 << iota
	unusual   // it is not in normal form
	invalid   // it has bytes that must be escaped
)

// inspect looks for what is unusual in a path; 0 = nothing: it is in normal form.
func inspect(raw string) (found int) {
	if raw == "" {
		return unusual
	}
	beyond := false // it has bytes beyond ASCII
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '/':
			switch segment := nextSegment(raw[i+1:]); {
			case segment == "" && i+1 < len(raw):
				found |= ambiguous // an empty segment before the end
			case segment == "." || segment == "..":
				found |= unusual
			case isDots(segment):
				found |= ambiguous
			}
		case c == ';':
			found |= ambiguous
		case c == '\\':
			found |= ambiguous | invalid
		case c == '%' && i+2 < len(raw):
			b := unhex(raw[i+1])<<4 | unhex(raw[i+2])
			switch {
			case strings.IndexByte(`/\%;?#`, b) >= 0 || b < ' ' || b == 0x7f:
				found |= ambiguous
			case unreserved(b) || raw[i+1] >= 'a' || raw[i+2] >= 'a':
				found |= unusual
			}
			beyond = beyond || b >= utf8.RuneSelf
			i += 2
		case !pathByte(c):
			found |= invalid
			beyond = beyond || c >= utf8.RuneSelf
		}
	}
	if beyond {
		if s, err := url.PathUnescape(raw); err != nil || !utf8.ValidString(s) {
			found |= ambiguous
		}
	}
	return found
}

// nextSegment returns the segment at the beginning of s.
func nextSegment(s string) string {
	if i := strings.IndexByte(s, '/'); i >= 0 {
		return s[:i]
	}
	return s
}

// isDots reports whether a segment with escapes is "." or "..".
func isDots(segment string) bool {
	if len(segment) > len("%2E%2E") || !strings.Contains(segment, "%2") {
		return false
	}
	plain := strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", ".")
	return plain == "." || plain == ".."
}

// unescapeUnreserved decodes the escapes of unreserved characters, and writes the others in upper
// case.
func unescapeUnreserved(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if c := unhex(s[i+1])<<4 | unhex(s[i+2]); unreserved(c) {
			b.WriteByte(c)
		} else {
			escape(&b, c)
		}
		i += 2
	}
	return b.String()
}

// withoutDotSegments removes the segments "." and ".." of an absolute path without empty segments (RFC
// 3986 section 5.2.4). The loop ends: each round takes a segment.
func withoutDotSegments(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	out := make([]byte, 0, len(path))
	for rest := path; rest != ""; {
		segment := nextSegment(rest[1:])
		rest = rest[1+len(segment):]
		switch segment {
		case "..":
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
			fallthrough
		case ".":
			if rest == "" {
				out = append(out, '/')
			}
		default:
			out = append(append(out, '/'), segment...)
		}
	}
	return string(out)
}

// escapeInvalid escapes the bytes that are not valid.
func escapeInvalid(s string, valid func(byte) bool) string {
	i := 0
	for i < len(s) && valid(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for ; i < len(s); i++ {
		if valid(s[i]) {
			b.WriteByte(s[i])
		} else {
			escape(&b, s[i])
		}
	}
	return b.String()
}

func escape(b *strings.Builder, c byte) {
	const hex = "0123456789ABCDEF"
	b.Write([]byte{'%', hex[c>>4], hex[c&15]})
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// unreserved reports whether escaping c changes nothing (RFC 3986 section 2.3).
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// pathByte reports whether a path may have c. Brackets are not allowed, but common.
func pathByte(c byte) bool { return unreserved(c) || strings.IndexByte("!$&'()*+,;=:@/%[]", c) >= 0 }

// queryByte reports whether a query may have c, or usually has it all the same.
func queryByte(c byte) bool {
	return c > ' ' && c < 0x7f && c != '"' && c != '<' && c != '>'
}
