package canonical

import (
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// readings are the request fields that some origin, or a framework at it, takes for something that
// the key has already, or that no key has: by them a client could have a response for one request
// stored as that for another, or impersonate another client. Requests do not have them after
// [Fields.Clean], and neither those that begin with Forwarded, X-Forwarded or X-Original.
var readings = map[string]string{
	"host": "X-Host X-Host-Override X-Http-Host-Override X-Envoy-Original-Host",
	"scheme": "Front-End-Https X-Url-Scheme X-Scheme X-Arr-Ssl Cf-Visitor Cloudfront-Forwarded-Proto " +
		"Wl-Proxy-Ssl",
	"path": "X-Rewrite-Url X-Override-Url X-Request-Uri X-Script-Name Script-Name Path-Info X-Envoy-Original-Path " +
		"X-Waws-Unencoded-Url X-Accel-Mapping X-Sendfile-Type",
	"client": "X-Real-Ip X-Client-Ip X-Cluster-Client-Ip X-Remote-Ip X-Remote-Addr Remote-Addr X-Originating-Ip " +
		"True-Client-Ip Client-Ip Cf-Connecting-Ip Cf-Connecting-Ipv6 Cf-Pseudo-Ipv4 " +
		"Fastly-Client-Ip Fly-Client-Ip X-Appengine-User-Ip X-Azure-Clientip X-Azure-Socketip " +
		"X-Envoy-External-Address X-Proxyuser-Ip Proxy-Client-Ip Wl-Proxy-Client-Ip Incap-Client-Ip " +
		"X-Vercel-Forwarded-For Cloudfront-Viewer-Address",
	"proxy of scripts": "Proxy",
	"rendering": "X-React-Router-Spa-Mode X-React-Router-Prerender-Data X-Nuxt-No-Ssr " +
		"X-Invoke-Error X-Invoke-Output X-Invoke-Path X-Invoke-Query X-Invoke-Status " +
		"X-Middleware-Subrequest X-Matched-Path X-Now-Route-Matches X-Astro-Path X-Astro-Locals",
	ofSafe: "X-Http-Method-Override X-Http-Method X-Method-Override",
}

// relayed are the fields in which a proxy describes its client. A trusted proxy's are kept.
var relayed = map[string]bool{"X-Forwarded-For": true, "X-Forwarded-Proto": true, "X-Forwarded-Host": true,
	"Forwarded": true}

// Fields decides which fields a request keeps. It is safe for concurrent use.
type Fields struct {
	readings map[string]string
}

// NewFields returns the usual Fields, except that requests keep the fields of these names.
func NewFields(keep []string) *Fields {
	f := &Fields{readings: make(map[string]string)}
	for as, names := range readings {
		for name := range strings.FieldsSeq(names) {
			f.readings[name] = as
		}
	}
	for _, name := range keep {
		f.readings[http.CanonicalHeaderKey(name)] = kept
	}
	return f
}

const (
	ofSafe = "method of a GET or HEAD" // a reading; other methods keep these fields
	kept   = "kept"                    // marks a field that the operator wants to pass
)

// Reading returns what some origins take a field for, or why no request has it on; "" = requests
// keep it. trusted says that the request comes from a trusted proxy.
func (f *Fields) Reading(name, method string, trusted bool) string {
	as := f.readings[name]
	switch {
	case as == kept || relayed[name] && trusted:
		return ""
	case as == ofSafe && method != http.MethodGet && method != http.MethodHead:
		return ""
	case as != "":
		return as
	case forwards(name):
		return "what a proxy says of its client"
	case !letters(name):
		return "the field with hyphens" // by CGI, WSGI and what imitates them
	}
	return ""
}

func forwards(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "X-"), "Forwarded") || strings.HasPrefix(name, "X-Original")
}

// usual are the fields that requests keep without a word of the operator.
var usual = NewFields(nil)

// OfProxy reports whether a field shows that a proxy has passed its request on.
func OfProxy(name string) bool {
	return name == "Via" || forwards(name) || usual.readings[name] == "client"
}

// letters reports whether a name has nothing but letters, digits and hyphens.
func letters(name string) bool {
	for i := range len(name) {
		if c := name[i] | 0x20; c < 'a' || c > 'z' {
			if c = name[i]; c != '-' && (c < '0' || c > '9') {
				return false
			}
		}
	}
	return true
}

// Clean returns the header of a request without the fields of the connection, those with a
// [Fields.Reading], a Range that a server ignores (RFC 9110 section 14.2), and fields about a body
// that there is not. It is h itself if h has none of these; h is not changed. size is the length of h in HTTP/1.
func (f *Fields) Clean(h http.Header, method string, hasBody, trusted bool) (clean http.Header, size int) {
	clean = h
	safe := method == http.MethodGet || method == http.MethodHead
	te := h["Te"]
	// of gRPC; an answer to a GET is shared without them
	trailers := !safe && len(te) == 1 && strings.EqualFold(te[0], "trailers")
	for name, lines := range h {
		for _, line := range lines {
			size += len(name) + len(": \r\n") + len(line)
		}
		switch {
		case name == "Te" && trailers:
			continue
		case rfc9111.HopByHop(name):
		case name == "Range" && safe && !byteRanges(lines):
		case !hasBody && (name == "Expect" || safe && strings.HasPrefix(name, "Content-") && f.readings[name] != kept):
		case (name == "Accept" || name == "Accept-Language" || name == "Accept-Charset") && !members(lines):
			// as if there was none
		case f.Reading(name, method, trusted) != "":
		default:
			continue
		}
		if len(clean) == len(h) {
			clean = h.Clone()
			rfc9111.RemoveHopByHop(clean)
			if trailers {
				clean["Te"] = te
			}
		}
		delete(clean, name)
	}
	return clean, size
}

// members reports whether a list field has a member.
func members(lines []string) bool {
	for range rfc9111.Members(lines) {
		return true
	}
	return false
}

// byteRanges reports whether the lines of a Range are one valid set of ranges of bytes (RFC 9110
// section 14.1.1).
func byteRanges(lines []string) bool {
	if len(lines) != 1 {
		return false
	}
	unit, set, found := strings.Cut(lines[0], "=")
	if !found || !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		return false
	}
	some := false
	for spec := range rfc9111.Members([]string{set}) {
		first, last, found := strings.Cut(spec, "-")
		if strings.Trim(first+last, "0123456789") != "" || !found || first+last == "" {
			return false
		}
		if first != "" && last != "" && greater(first, last) {
			return false // it ends before it begins
		}
		some = true
	}
	return some
}

// greater reports whether the decimal number a is greater than b. Either may have any length.
func greater(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return len(a) > len(b) || len(a) == len(b) && a > b
}
