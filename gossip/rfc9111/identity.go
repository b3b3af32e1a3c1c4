package rfc9111

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// CanonicalURL returns the absolute URL under which responses are stored (RFC 9111
// section 2, RFC 3986 section 6.2): scheme and host in lower case, no default port, no
// fragment, "/" for an empty path. Path and query stay as [http.Request.Write] sends them. An origin
// may distinguish URLs that RFC 3986 calls equivalent; a cache that does not must change what it
// sends, too.
func CanonicalURL(u *url.URL) string { return canonical("", u) }

// PlainIdentity is [Identity] of the canonical URL of u for a response that does not vary.
func PlainIdentity(u *url.URL) string { return canonical("GET ", u) }

// canonical returns a prefix and a canonical URL, in one allocation.
func canonical(prefix string, u *url.URL) string {
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
		return prefix + scheme + "://" + host + path
	}
	// which no received URL has; keeps identities parseable
	return prefix + scheme + "://" + host + path + "?" + strings.ReplaceAll(u.RawQuery, "\n", "%0A")
}

// Identity returns the key of a response that varies by these fields, to a GET of a canonical
// URL by a request with header h (RFC 9111 section 4.1). The fields are as [VaryFields] returns
// them. The key is "GET", a space, the URL, and for each field a line with its name and its
// normalized value.
func Identity(url string, fields []string, h http.Header) string {
	var b strings.Builder
	b.Grow(len("GET ") + len(url) + 32*len(fields))
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

// sliceLine begins the last line of the identity of a slice. No field is named so: the names in
// identities are canonical.
const sliceLine = "\nslice:"

// SliceIdentity returns the identity of a slice of the response with this identity: the bytes from
// first to last, inclusive. It is a line more: "slice:", first, "-" and last.
func SliceIdentity(id string, first, last int64) string {
	line := append(make([]byte, 0, len(id)+len(sliceLine)+40), id...)
	line = strconv.AppendInt(append(line, sliceLine...), first, 10)
	return string(strconv.AppendInt(append(line, '-'), last, 10))
}

// IsSlice reports whether an identity is that of a slice.
func IsSlice(id string) bool { return strings.Contains(id, sliceLine) }

// SplitIdentity returns the URL and the Vary fields of an identity. Those of a slice are those of
// the response.
func SplitIdentity(id string) (url string, fields []string) {
	id, _, _ = strings.Cut(id, sliceLine)
	url, rest, _ := strings.Cut(strings.TrimPrefix(id, "GET "), "\n")
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		name, _, _ := strings.Cut(line, ":")
		fields = append(fields, name)
	}
	return url, fields
}

// VaryFields returns the field names in a response's Vary, canonical and sorted. A response
// whose fields include "*" is not storable.
func VaryFields(h http.Header) []string {
	fields := appendFields(nil, h["Vary"]...)
	slices.Sort(fields)
	return slices.Compact(fields)
}

// SameVariant reports whether requests with the headers a and b select the same
// variant of a response that varies by these fields (RFC 9111 section 4.1).
func SameVariant(fields []string, a, b http.Header) bool {
	return !slices.ContainsFunc(fields, func(name string) bool {
		return name == "*" || normalize(name, a[name]) != normalize(name, b[name])
	})
}

// normalize returns the value of a request field in a form in which values of the same
// meaning are equal (RFC 9111 section 4.1). Several lines are one list, and space around
// commas is ignored. In the Accept fields case and "q=1" are ignored, too, and in
// Accept-Encoding also the order.
func normalize(name string, lines []string) string {
	value := trim(strings.Join(lines, ","))
	value = strings.ReplaceAll(value, "\n", " ") // never in a header that was received; keeps identities parseable
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
	for value != "" { // empty members are kept, since they may mean something to the origin
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
	for item := range Members([]string{value}) {
		var params []string
		for p := range strings.SplitSeq(item, ";") {
			p = strings.ToLower(trim(p))
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
