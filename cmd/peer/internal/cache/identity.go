package cache

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CanonicalURL returns the absolute URL under which responses are kept: scheme
// and host in lower case, no default port, no fragment, "/" for an empty path.
// Path and query stay as they are, byte for byte but for escaping what may not
// stand in a URL: an origin may tell apart what RFC 3986 calls equivalent, and a
// cache that doesn't would let one resource answer for another.
func CanonicalURL(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	host := strings.ToLower(u.Host)
	switch {
	case scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	case scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	}
	host = strings.TrimSuffix(host, ":")
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery == "" && !u.ForceQuery {
		return scheme + "://" + host + path
	}
	return scheme + "://" + host + path + "?" + escapeQuery(u.RawQuery)
}

// escapeQuery escapes the bytes of a raw query that may not stand in a URL.
func escapeQuery(q string) string {
	bad := func(c byte) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' }
	if !strings.ContainsFunc(q, func(r rune) bool { return r >= 0x7f || bad(byte(r)) }) {
		return q
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(q) {
		if c := q[i]; bad(c) {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// plainIdentity is the identity of a URL's response without a Vary field.
func plainIdentity(url string) string { return "GET " + url }

// variantIdentity is the identity of a URL's response that varies by fields, for
// a request with header h. The fields are canonical and sorted; none = plain.
func variantIdentity(url string, fields []string, h http.Header) string {
	if len(fields) == 0 {
		return plainIdentity(url)
	}
	var b strings.Builder
	b.Grow(len(url) + 32*len(fields))
	b.WriteString("GET ")
	b.WriteString(url)
	for _, f := range fields {
		b.WriteByte('\n')
		b.WriteString(f)
		b.WriteByte(':')
		b.WriteString(normalize(f, h[f]))
	}
	return b.String()
}

// splitIdentity takes an identity apart into URL and Vary fields.
func splitIdentity(id string) (url string, fields []string) {
	url, rest, _ := strings.Cut(strings.TrimPrefix(id, "GET "), "\n")
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		name, _, _ := strings.Cut(line, ":")
		fields = append(fields, name)
	}
	return url, fields
}

// normalize brings the lines of a request field into a form in which values of
// the same meaning are equal (RFC 9111 section 4.1). Several lines are one list,
// in which space around commas means nothing. For the Accept fields neither do
// case and "q=1", and for Accept-Encoding neither does order.
func normalize(name string, lines []string) string {
	value := ""
	if len(lines) == 1 {
		value = strings.Trim(lines[0], " \t")
	} else if len(lines) > 1 {
		trimmed := make([]string, len(lines))
		for i, line := range lines {
			trimmed[i] = strings.Trim(line, " \t")
		}
		value = strings.Join(trimmed, ",")
	}
	value = strings.ReplaceAll(value, "\n", " ") // can't come from a request line; keeps identities parseable
	switch name {
	case "Accept", "Accept-Language", "Accept-Charset":
		return strings.Join(normalizeAccept(value), ",")
	case "Accept-Encoding":
		items := normalizeAccept(value)
		slices.Sort(items)
		return strings.Join(slices.Compact(items), ",")
	}
	if strings.IndexByte(value, ',') < 0 {
		return value
	}
	var items []string
	for value != "" {
		var item string
		item, value = cutList(value)
		items = append(items, item)
	}
	return strings.Join(items, ",")
}

// normalizeAccept returns the elements of an Accept field in lower case, without
// space and without a quality of 1.
func normalizeAccept(value string) []string {
	var items []string
	for value != "" {
		var item string
		item, value = cutList(value)
		var params []string
		for p := range strings.SplitSeq(item, ";") {
			p = trimLower(p)
			switch p {
			case "", "q=1", "q=1.0", "q=1.00", "q=1.000":
			default:
				params = append(params, p)
			}
		}
		if len(params) > 0 {
			items = append(items, strings.Join(params, ";"))
		}
	}
	return items
}

// sortFields sorts and deduplicates field names in place.
func sortFields(fields []string) []string {
	slices.Sort(fields)
	return slices.Compact(fields)
}
