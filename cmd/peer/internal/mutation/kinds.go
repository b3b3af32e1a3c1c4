package mutation

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Claims are variables that some frameworks take for the host, the scheme, the path, the method or
// the client of a request, with what a plain client means by not sending them: "" = nothing,
// HOST = the field Host.
var Claims = [][2]string{
	{"X_FORWARDED_HOST", "HOST"}, {"X_HOST", "HOST"}, {"X_HTTP_HOST_OVERRIDE", "HOST"}, {"X_ORIGINAL_HOST", "HOST"},
	{"X_FORWARDED_SERVER", ""}, {"X_FORWARDED_PORT", ""},
	{"X_FORWARDED_PROTO", "http"}, {"X_FORWARDED_SCHEME", ""}, {"X_FORWARDED_PROTOCOL", ""}, {"X_FORWARDED_SSL", ""},
	{"X_URL_SCHEME", ""}, {"FRONT_END_HTTPS", ""},
	// Flask's snippets and ingress-nginx; Django and Symfony at CloudFront; IIS
	{"X_SCHEME", ""}, {"CLOUDFRONT_FORWARDED_PROTO", ""}, {"X_ARR_SSL", ""},
	// Spring and Werkzeug; Flask's snippets; Kong
	{"X_FORWARDED_PREFIX", ""}, {"X_SCRIPT_NAME", ""}, {"X_FORWARDED_PATH", ""},
	// IIS, Zend, Symfony; ingress-nginx; Traefik; Envoy
	{"X_ORIGINAL_URL", ""}, {"X_REWRITE_URL", ""}, {"X_ORIGINAL_URI", ""}, {"X_FORWARDED_URI", ""},
	{"X_ENVOY_ORIGINAL_PATH", ""},
	{"X_HTTP_METHOD_OVERRIDE", ""}, {"X_HTTP_METHOD", ""}, {"X_METHOD_OVERRIDE", ""}, {"X_FORWARDED_METHOD", ""},
	{"X_ORIGINAL_METHOD", ""},
	{"X_FORWARDED_FOR", "127.0.0.1"}, {"FORWARDED", ""}, {"X_REAL_IP", ""}, {"X_CLIENT_IP", ""}, {"CLIENT_IP", ""},
	{"X_CLUSTER_CLIENT_IP", ""}, {"TRUE_CLIENT_IP", ""}, {"CF_CONNECTING_IP", ""}, {"FASTLY_CLIENT_IP", ""},
	// the snippet in PHP that tries all of them; request-ip of npm; httpoxy
	{"X_FORWARDED", ""}, {"FORWARDED_FOR", ""}, {"X_APPENGINE_USER_IP", ""}, {"CF_PSEUDO_IPV4", ""}, {"PROXY", ""},
}

// A partKind makes mutations.
type partKind struct {
	name   string
	weight int
	make   func(rng *rand.Rand) func(*Attempt, *Request)
}

func one(rng *rand.Rand, options ...string) string { return options[rng.IntN(len(options))] }

// fieldKind is a kind of mutation that adds one field.
func fieldKind(name string, weight int, field func(rng *rand.Rand) (name, value string)) partKind {
	return partKind{name, weight, func(rng *rand.Rand) func(*Attempt, *Request) {
		k, v := field(rng)
		twice := rng.IntN(12) == 0
		return func(_ *Attempt, r *Request) {
			r.Add(k, v)
			if twice {
				r.Add(k, v)
			}
		}
	}}
}

// valued is a kind of mutation that adds a field with one of the values.
func valued(name string, weight int, field string, values ...string) partKind {
	return fieldKind(name, weight, func(rng *rand.Rand) (string, string) { return field, one(rng, values...) })
}

var httpDates = []string{"Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT", "yesterday", "0", "",
	"Monday, 01-Jan-01 00:00:00 GMT"}

// claimValue is what a client would claim by one of the variables.
func claimValue(rng *rand.Rand, name string) string {
	switch {
	case strings.Contains(name, "METHOD"):
		return one(rng, "POST", "DELETE", "HEAD")
	case strings.Contains(name, "PROTO") || strings.Contains(name, "SCHEME"):
		return one(rng, "https", "ftp", "nothttp")
	case strings.Contains(name, "SSL") || strings.Contains(name, "HTTPS"):
		return "on"
	case strings.Contains(name, "URL") || strings.Contains(name, "URI") || strings.Contains(name, "PATH") ||
		strings.Contains(name, "PREFIX") || strings.Contains(name, "SCRIPT"):
		return one(rng, "/account", "/evil", "//evil.example/")
	case strings.Contains(name, "IP") || strings.Contains(name, "FOR") && !strings.Contains(name, "HOST"):
		return one(rng, "192.0.2.1", "for=192.0.2.1;host=evil.example;proto=https")
	}
	return one(rng, "evil.example", "evil.example:443", "8443")
}

// spelled writes a variable as a field: its words in capitals or not, joined by - or _.
func spelled(rng *rand.Rand, name string, underscore bool) string {
	words := strings.Split(strings.ToLower(name), "_")
	if rng.IntN(2) == 0 {
		for i, w := range words {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	if !underscore {
		return strings.Join(words, "-")
	}
	if rng.IntN(3) == 0 { // only one of them
		at := rng.IntN(max(1, len(words)-1))
		return strings.Join(words[:at+1], "-") + "_" + strings.Join(words[at+1:], "-")
	}
	return strings.Join(words, "_")
}

// partKinds are the mutations. They are added at the end or with care: their order decides what a
// seed does.
var partKinds = []partKind{
	valued("range", 6, "Range", "bytes=5000000-", "bytes=0-0", "bytes=-5", "bytes=-0", "bytes=0-", "bytes=1-2,4-5",
		"bytes=0-0,2-2,4-4", "bytes=5-2", "bytes=99999999999999999999-", "bytes=",
		"bytes", "cow", "items=0-1", "items=", "Bytes=0-1", "bytes=0-1048576", "bytes=1048577-", "bytes=-5000000",
		"bytes = 0-1", "bytes=a-b", "bytes=,", "bytes=0-,0-,0-,0-,0-,0-", "none", ""),
	fieldKind("if-range", 2, func(rng *rand.Rand) (string, string) {
		return "If-Range", one(rng, append([]string{`"x"`, `W/"x"`, "x", "*"}, httpDates...)...)
	}),
	valued("expect", 2, "Expect", "100-continue", "100-Continue", "200-ok", "", "100-continue, x", "x"),
	fieldKind("content", 2, func(rng *rand.Rand) (string, string) { // of a request without content
		return one(rng, "Content-Encoding", "Content-Encoding", "Content-Type", "Content-Language", "Content-Range",
			"Content-Location"), one(rng, "gzip", "x", "text/x", "bytes 0-1/2", "/evil", "")
	}),
	valued("te", 2, "TE", "trailers", "gzip", "chunked", "trailers, deflate;q=0.5", "", "\"", "identity"),
	valued("connection", 4, "Connection", "close", "keep-alive", "Host", "Cookie", "Authorization", "Range",
		"Accept-Encoding", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via", "upgrade",
		"close, Cache-Control", "TE", "Content-Length", "", ","),
	fieldKind("underscore", 6, func(rng *rand.Rand) (string, string) {
		if rng.IntN(3) == 0 { // fields that are part of the key, or of the framing, under another name
			name := one(rng, "Accept_Language", "Accept_Encoding", "Transfer_Encoding", "Content_Length",
				"Content_Type", "If_Match", "If_None_Match", "User_Agent", "Cache_Control", "Max_Forwards",
				"Content_Encoding")
			return name, one(rng, "gzip", "xx", "5", "chunked", "x")
		}
		c := Claims[rng.IntN(len(Claims))][0]
		return spelled(rng, c, true), claimValue(rng, c)
	}),
	fieldKind("claim", 6, func(rng *rand.Rand) (string, string) {
		c := Claims[rng.IntN(len(Claims))][0]
		return spelled(rng, c, false), claimValue(rng, c)
	}),
	{"oversize", 4, func(rng *rand.Rand) func(*Attempt, *Request) {
		size := []int{4000, 8100, 8190, 9000, 17000, 20000, 33000, 60000, 70000}[rng.IntN(9)]
		name := one(rng, "Cookie", "Cookie", "User-Agent", "X-Long", "Referer", "Accept", "Authorization",
			"If-None-Match", "Accept-Language")
		where := rng.IntN(5)
		return func(_ *Attempt, r *Request) {
			switch where {
			case 0: // many
				for i := range size / 40 {
					r.Add(fmt.Sprintf("X-Many-%d", i), strings.Repeat("b", 20))
				}
			case 1: // long names
				r.Add("X-"+strings.Repeat("a", size), "b")
			default:
				r.Add(name, "a="+strings.Repeat("b", size))
			}
		}
	}},
	{"doubled", 3, func(rng *rand.Rand) func(*Attempt, *Request) {
		lines := [][2][2]string{{{"Host", "evil.example"}}, {{"Cookie", "a=b"}, {"Cookie", "c=d"}},
			{{"Range", "bytes=0-0"}, {"Range", "bytes=5-"}},
			{{"Accept-Encoding", "gzip"}, {"Accept-Encoding", "identity"}},
			{{"If-None-Match", "*"}, {"If-None-Match", `"a"`}}, {{"Content-Length", "0"}, {"Content-Length", "0"}},
			{{"Authorization", "Basic YTpi"}, {"Authorization", "Basic YTpj"}},
			{{"Accept-Language", "de"}, {"Accept-Language", "en"}}, {{"Expect", "100-continue"}, {"Expect", "x"}},
			{{"Cache-Control", "no-store"}, {"Cache-Control", "max-age=0"}},
			{{"Via", "1.1 a"}, {"Via", "1.1 b"}}}[rng.IntN(11)]
		return func(_ *Attempt, r *Request) {
			for _, l := range lines {
				if l[0] != "" {
					r.Add(l[0], l[1])
				}
			}
		}
	}},
	fieldKind("conditional", 4, func(rng *rand.Rand) (string, string) {
		if name := one(rng, "If-Match", "If-None-Match", "If-Modified-Since",
			"If-Unmodified-Since"); strings.HasSuffix(name, "atch") {
			return name, one(rng, "*", `"x"`, `W/"x"`, "x", "", `"`, `"a", "b"`)
		} else {
			return name, one(rng, httpDates...)
		}
	}),
	fieldKind("accept", 3, func(rng *rand.Rand) (string, string) {
		switch name := one(rng, "Accept", "Accept-Encoding", "Accept-Encoding", "Accept-Language",
			"Accept-Charset"); name {
		case "Accept-Encoding":
			return name, one(rng, "gzip", "gzip;q=0", "identity;q=0", "*", "*;q=0", "br", "", "gzip, gzip", "x-gzip",
				"GZIP", "gzip;q=1.0000", "deflate, gzip;q=0.1")
		case "Accept":
			return name, one(rng, "application/x-none", "*/*;q=0", "text/css", "", "a b")
		default:
			return name, one(rng, "de", "xx;q=0", "*", "", "de-DE-x, en;q=0.1")
		}
	}),
	{"method", 5, func(rng *rand.Rand) func(*Attempt, *Request) {
		method := one(rng, "HEAD", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "Get", "FOO",
			"PROPFIND", "QUERY", "GETX", "PURGE", "REPORT", "SEARCH", "M-SEARCH", "CONNECT", "PRI")
		return func(_ *Attempt, r *Request) {
			if r.Method = method; method == "POST" || method == "PUT" || method == "PATCH" {
				r.Add("Content-Length", fmt.Sprint(len(r.Body)))
			}
		}
	}},
	{"token", 2, func(rng *rand.Rand) func(*Attempt, *Request) {
		method := one(rng, "GET /a", "GET ", " GET", "G\tT", "GET\x00", "", "GET\r\nX: y", "G/T", "GÉT", "GET,HEAD",
			"(GET)", strings.Repeat("G", 300))
		return func(_ *Attempt, r *Request) { r.Method = method }
	}},
	{"pseudo", 2, func(rng *rand.Rand) func(*Attempt, *Request) {
		what, value := rng.IntN(3), one(rng, "ftp", "https", "HTTP", "", "http://evil.example/x?", "a b", "file")
		return func(a *Attempt, r *Request) {
			switch what {
			case 0:
				if r.Scheme = value; value == "" {
					r.Scheme = "x"
				}
			case 1:
				r.Add("Host", "evil.example") // beside :authority
			case 2:
				r.Add(":authority", "evil.example")
			}
		}
	}},
	{"spelling", 9, spelling},
	{"query", 4, func(rng *rand.Rand) func(*Attempt, *Request) {
		pairs := [][2]string{{`q="x"`, "q=%22x%22"}, {"q=a b", "q=a%20b"}, {"q=a+b", "q=a%20b"}, {"q=<x>", "q=%3Cx%3E"},
			{"q=a|b", "q=a%7Cb"}, {"q=%61", "q=a"}, {"q=%2f", "q=/"}, {"q=%2f", "q=%2F"}, {"q={x}", "q=%7Bx%7D"},
			{"q=^`", "q=%5E%60"}, {`q=\`, "q=%5C"}, {"q=a;b=c", "q=a&b=c"}, {"&q=1", "q=1"}, {"q=1&", "q=1"},
			{"q=1&q=2", "q=2&q=1"}, {"q=%", "q=%25"}, {"q=%zz", "q=%25zz"}, {"q='", "q=%27"},
			{"q=é", "q=%C3%A9"}, {"q", "q="},
			{"q=1#f", "q=1"}, {"q=1%23f", "q=1#f"}, {"q=%00", "q="}, {"q=a%0d%0ab", "q=ab"}, {"?q=1", "q=1"},
			{"Q=1", "q=1"}, {"q[]=1", "q%5B%5D=1"}, {"q=\xff", "q=%FF"}, {"q=\t", "q=%09"}, {"q=~", "q=%7E"},
			{"q=*", "q=%2A"}}
		pair := pairs[rng.IntN(len(pairs))]
		if rng.IntN(4) == 0 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		return func(a *Attempt, r *Request) {
			r.Query += "&" + pair[0]
			a.Controls = append(a.Controls, Victim{a.Base, r.Query})
			if !strings.ContainsAny(pair[1], " #\"<>^`\\|{}\t") && isASCII(pair[1]) {
				a.Victims = append(a.Victims, Victim{a.Base, a.Mark + "&" + pair[1]})
			}
		}
	}},
	{"host", 3, func(rng *rand.Rand) func(*Attempt, *Request) {
		change := rng.IntN(9)
		return func(a *Attempt, r *Request) {
			host := a.Place.Name
			r.Set("Host", []string{host + ":80", host + ":8443", strings.ToUpper(host), host + ".", "evil.example", "",
				host + ":", host + ":080", host + "@evil.example"}[change])
		}
	}},
	{"absolute", 2, func(rng *rand.Rand) func(*Attempt, *Request) {
		change := rng.IntN(6)
		return func(a *Attempt, r *Request) {
			r.Authority = []string{"http://" + a.Place.Name, "http://" + a.Place.Name + ":80", "HTTP://" +
				strings.ToUpper(a.Place.Name), "https://" + a.Place.Name, "http://evil.example", "http://user@" +
				a.Place.Name}[change]
			if change%2 == 0 {
				r.Set("Host", "evil.example")
			}
		}
	}},
	{"version", 1, func(rng *rand.Rand) func(*Attempt, *Request) {
		version := one(rng, "HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "http/1.1", "HTTP/0.9", "HTTP/1.10")
		return func(_ *Attempt, r *Request) { r.Version = version }
	}},
	fieldKind("cookie", 3, func(rng *rand.Rand) (string, string) {
		return "Cookie", one(rng, "session=victim", "a=b; session=victim", "session=victim; session=other",
			"session=\"victim\"", ";;", "session", "=", "session=\x80")
	}),
	{"body", 3, func(rng *rand.Rand) func(*Attempt, *Request) {
		text, chunked, trailer := one(rng, "n=evil", "x", strings.Repeat("y", 3000)), rng.IntN(2) == 0, rng.IntN(2) == 0
		names := one(rng, "X-T", "Host", "Content-Length", "X_Forwarded_Host", "Cookie", "bad name",
			"Transfer-Encoding")
		return func(_ *Attempt, r *Request) {
			if !chunked || r.H2 {
				r.Add("Content-Length", fmt.Sprint(len(text)))
				r.Body = text
				return
			}
			r.Add("Transfer-Encoding", "chunked")
			r.Body = fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(text), text)
			if trailer {
				r.Add("Trailer", names)
				r.Body += names + ": evil\r\n"
			}
			r.Body += "\r\n"
		}
	}},
	fieldKind("cache-control", 2, func(rng *rand.Rand) (string, string) {
		return one(rng, "Cache-Control", "Cache-Control", "Pragma", "CDN-Cache-Control", "Surrogate-Control"),
			one(rng, "no-cache", "no-store", "max-age=0", "only-if-cached", "max-stale", "public, max-age=99999",
				"private", "must-understand", "x=\"", "")
	}),
	fieldKind("internal", 3, func(rng *rand.Rand) (string, string) {
		return one(rng, "Summarycache-Cache-Control", "Summarycache-Tags", "Cache-Status", "Age", "Via", "CDN-Loop",
				"Max-Forwards", "Cache-Tag", "X-Cache", "Vary", "Set-Cookie", "Expires", "Date", "ETag",
				"Content-Location", "Summarycache-Lookup", "Summarycache-Sibling"),
			one(rng, "max-age=9999", "x", "0", "1.1 a, 1.1 b", "1.1 a", "a; hit", "*", "public", "", "1")
	}),
	fieldKind("odd", 4, func(rng *rand.Rand) (string, string) {
		return one(rng, "X-A", "A", "C", "User-Agent", "Referer", "Origin", "Authorization", "Proxy-Authorization",
				"Upgrade", "HTTP2-Settings", "Prefer", "Sec-Fetch-Mode", "From", "X~!", "Content-Type",
				"Content-Encoding", "Content-Range", "Content-Length", "Trailer", "Keep-Alive", "Proxy-Connection",
				"Sec-WebSocket-Key", "Forwarded", "X-HTTP-Method-Override", "DNT", "Save-Data"),
			one(rng, "x", "", "\x80\xff", "a\x00b", "a\x07b", "a\tb", "\x7f", "a,b,,", "\"", "h2c", "websocket", "é",
				strings.Repeat("z", 300), "-1", "0", "bytes 0-1/2", "gzip", "Basic YTpi", "Content-Length",
				"Host", "timeout=5")
	}),
	fieldKind("name", 2, func(rng *rand.Rand) (string, string) {
		return one(rng, "X A", "X\x00A", "X\x80", "", "X(A)", "X@", "Content Length", "Host ", " Host", "X\tA", "A:B",
			"\"x\"", "É", "TRANSFER-ENCODING\x0b", "X,A", "{x}"), one(rng, "x", "evil.example", "5")
	}),
	fieldKind("selecting", 1, func(rng *rand.Rand) (string, string) {
		return one(rng, "A", "C", "B", "Cookie", "Accept-Language"), one(rng, "x", "y", "a=b", "")
	}),
	{"upgrade", 1, func(rng *rand.Rand) func(*Attempt, *Request) {
		to := one(rng, "h2c", "websocket", "TLS/1.0", "x", "HTTP/2.0")
		return func(_ *Attempt, r *Request) {
			r.Add("Connection", "Upgrade")
			r.Add("Upgrade", to)
		}
	}},
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7e }) }
