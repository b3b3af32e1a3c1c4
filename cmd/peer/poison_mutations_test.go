//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// An attempt is one mutated request, and what other clients ask for afterwards.
type attempt struct {
	n     int    // of the seed
	mark  string // "n=0000123z", in the query of all its requests: no other attempt's answers are theirs
	place *place
	base  string // the path that it is about
	parts []part // the mutations
	h2    bool
	old   bool // HTTP/1.0

	// victims are the requests of other clients whose answers must be the origin's. Controls are
	// those whose answers must be the ones that the same cache gives where no mutated request came
	// before: with a spelling that the cache may refuse or send on in another form.
	victims, controls []victim
}

// A victim is a plain request for a path and a query.
type victim struct{ path, query string }

// A part is a mutation: its kind, and what it does to a request.
type part struct {
	kind  string
	apply func(*attempt, *wireRequest)
}

// A partKind makes mutations.
type partKind struct {
	name   string
	weight int
	make   func(rng *rand.Rand) func(*attempt, *wireRequest)
}

func one(rng *rand.Rand, options ...string) string { return options[rng.IntN(len(options))] }

// fieldKind is a kind of mutation that adds one field.
func fieldKind(name string, weight int, field func(rng *rand.Rand) (name, value string)) partKind {
	return partKind{name, weight, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		k, v := field(rng)
		twice := rng.IntN(12) == 0
		return func(_ *attempt, r *wireRequest) {
			r.add(k, v)
			if twice {
				r.add(k, v)
			}
		}
	}}
}

// valued is a kind of mutation that adds a field with one of the values.
func valued(name string, weight int, field string, values ...string) partKind {
	return fieldKind(name, weight, func(rng *rand.Rand) (string, string) { return field, one(rng, values...) })
}

var httpDates = []string{"Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT", "yesterday", "0", "", "Monday, 01-Jan-01 00:00:00 GMT"}

// claimValue is what a client would claim by one of the variables.
func claimValue(rng *rand.Rand, name string) string {
	switch {
	case strings.Contains(name, "METHOD"):
		return one(rng, "POST", "DELETE", "HEAD")
	case strings.Contains(name, "PROTO") || strings.Contains(name, "SCHEME"):
		return one(rng, "https", "ftp", "nothttp")
	case strings.Contains(name, "SSL") || strings.Contains(name, "HTTPS"):
		return "on"
	case strings.Contains(name, "URL") || strings.Contains(name, "URI") || strings.Contains(name, "PATH") || strings.Contains(name, "PREFIX") || strings.Contains(name, "SCRIPT"):
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
	valued("range", 6, "Range", "bytes=5000000-", "bytes=0-0", "bytes=-5", "bytes=-0", "bytes=0-", "bytes=1-2,4-5", "bytes=0-0,2-2,4-4", "bytes=5-2", "bytes=99999999999999999999-", "bytes=",
		"bytes", "cow", "items=0-1", "items=", "Bytes=0-1", "bytes=0-1048576", "bytes=1048577-", "bytes=-5000000", "bytes = 0-1", "bytes=a-b", "bytes=,", "bytes=0-,0-,0-,0-,0-,0-", "none", ""),
	fieldKind("if-range", 2, func(rng *rand.Rand) (string, string) {
		return "If-Range", one(rng, append([]string{`"x"`, `W/"x"`, "x", "*"}, httpDates...)...)
	}),
	valued("expect", 2, "Expect", "100-continue", "100-Continue", "200-ok", "", "100-continue, x", "x"),
	fieldKind("content", 2, func(rng *rand.Rand) (string, string) { // of a request without content
		return one(rng, "Content-Encoding", "Content-Encoding", "Content-Type", "Content-Language", "Content-Range", "Content-Location"), one(rng, "gzip", "x", "text/x", "bytes 0-1/2", "/evil", "")
	}),
	valued("te", 2, "TE", "trailers", "gzip", "chunked", "trailers, deflate;q=0.5", "", "\"", "identity"),
	valued("connection", 4, "Connection", "close", "keep-alive", "Host", "Cookie", "Authorization", "Range", "Accept-Encoding", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via", "upgrade", "close, Cache-Control", "TE", "Content-Length", "", ","),
	fieldKind("underscore", 6, func(rng *rand.Rand) (string, string) {
		if rng.IntN(3) == 0 { // fields that are part of the key, or of the framing, under another name
			name := one(rng, "Accept_Language", "Accept_Encoding", "Transfer_Encoding", "Content_Length", "Content_Type", "If_Match", "If_None_Match", "User_Agent", "Cache_Control", "Max_Forwards", "Content_Encoding")
			return name, one(rng, "gzip", "xx", "5", "chunked", "x")
		}
		c := claims[rng.IntN(len(claims))][0]
		return spelled(rng, c, true), claimValue(rng, c)
	}),
	fieldKind("claim", 6, func(rng *rand.Rand) (string, string) {
		c := claims[rng.IntN(len(claims))][0]
		return spelled(rng, c, false), claimValue(rng, c)
	}),
	{"oversize", 4, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		size := []int{4000, 8100, 8190, 9000, 17000, 20000, 33000, 60000, 70000}[rng.IntN(9)]
		name := one(rng, "Cookie", "Cookie", "User-Agent", "X-Long", "Referer", "Accept", "Authorization", "If-None-Match", "Accept-Language")
		where := rng.IntN(5)
		return func(_ *attempt, r *wireRequest) {
			switch where {
			case 0: // many
				for i := range size / 40 {
					r.add(fmt.Sprintf("X-Many-%d", i), strings.Repeat("b", 20))
				}
			case 1: // long names
				r.add("X-"+strings.Repeat("a", size), "b")
			default:
				r.add(name, "a="+strings.Repeat("b", size))
			}
		}
	}},
	{"doubled", 3, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		lines := [][2][2]string{{{"Host", "evil.example"}}, {{"Cookie", "a=b"}, {"Cookie", "c=d"}}, {{"Range", "bytes=0-0"}, {"Range", "bytes=5-"}},
			{{"Accept-Encoding", "gzip"}, {"Accept-Encoding", "identity"}}, {{"If-None-Match", "*"}, {"If-None-Match", `"a"`}}, {{"Content-Length", "0"}, {"Content-Length", "0"}},
			{{"Authorization", "Basic YTpi"}, {"Authorization", "Basic YTpj"}}, {{"Accept-Language", "de"}, {"Accept-Language", "en"}}, {{"Expect", "100-continue"}, {"Expect", "x"}},
			{{"Cache-Control", "no-store"}, {"Cache-Control", "max-age=0"}}, {{"Via", "1.1 a"}, {"Via", "1.1 b"}}}[rng.IntN(11)]
		return func(_ *attempt, r *wireRequest) {
			for _, l := range lines {
				if l[0] != "" {
					r.add(l[0], l[1])
				}
			}
		}
	}},
	fieldKind("conditional", 4, func(rng *rand.Rand) (string, string) {
		if name := one(rng, "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"); strings.HasSuffix(name, "atch") {
			return name, one(rng, "*", `"x"`, `W/"x"`, "x", "", `"`, `"a", "b"`)
		} else {
			return name, one(rng, httpDates...)
		}
	}),
	fieldKind("accept", 3, func(rng *rand.Rand) (string, string) {
		switch name := one(rng, "Accept", "Accept-Encoding", "Accept-Encoding", "Accept-Language", "Accept-Charset"); name {
		case "Accept-Encoding":
			return name, one(rng, "gzip", "gzip;q=0", "identity;q=0", "*", "*;q=0", "br", "", "gzip, gzip", "x-gzip", "GZIP", "gzip;q=1.0000", "deflate, gzip;q=0.1")
		case "Accept":
			return name, one(rng, "application/x-none", "*/*;q=0", "text/css", "", "a b")
		default:
			return name, one(rng, "de", "xx;q=0", "*", "", "de-DE-x, en;q=0.1")
		}
	}),
	{"method", 5, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		method := one(rng, "HEAD", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "Get", "FOO", "PROPFIND", "QUERY", "GETX", "PURGE", "REPORT", "SEARCH", "M-SEARCH", "CONNECT", "PRI")
		return func(_ *attempt, r *wireRequest) {
			if r.method = method; method == "POST" || method == "PUT" || method == "PATCH" {
				r.add("Content-Length", fmt.Sprint(len(r.body)))
			}
		}
	}},
	{"token", 2, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		method := one(rng, "GET /a", "GET ", " GET", "G\tT", "GET\x00", "", "GET\r\nX: y", "G/T", "GÉT", "GET,HEAD", "(GET)", strings.Repeat("G", 300))
		return func(_ *attempt, r *wireRequest) { r.method = method }
	}},
	{"pseudo", 2, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		what, value := rng.IntN(3), one(rng, "ftp", "https", "HTTP", "", "http://evil.example/x?", "a b", "file")
		return func(a *attempt, r *wireRequest) {
			switch what {
			case 0:
				if r.scheme = value; value == "" {
					r.scheme = "x"
				}
			case 1:
				r.add("Host", "evil.example") // beside :authority
			case 2:
				r.add(":authority", "evil.example")
			}
		}
	}},
	{"spelling", 9, spelling},
	{"query", 4, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		pairs := [][2]string{{`q="x"`, "q=%22x%22"}, {"q=a b", "q=a%20b"}, {"q=a+b", "q=a%20b"}, {"q=<x>", "q=%3Cx%3E"}, {"q=a|b", "q=a%7Cb"}, {"q=%61", "q=a"}, {"q=%2f", "q=/"}, {"q=%2f", "q=%2F"}, {"q={x}", "q=%7Bx%7D"},
			{"q=^`", "q=%5E%60"}, {`q=\`, "q=%5C"}, {"q=a;b=c", "q=a&b=c"}, {"&q=1", "q=1"}, {"q=1&", "q=1"}, {"q=1&q=2", "q=2&q=1"}, {"q=%", "q=%25"}, {"q=%zz", "q=%25zz"}, {"q='", "q=%27"}, {"q=é", "q=%C3%A9"}, {"q", "q="},
			{"q=1#f", "q=1"}, {"q=1%23f", "q=1#f"}, {"q=%00", "q="}, {"q=a%0d%0ab", "q=ab"}, {"?q=1", "q=1"}, {"Q=1", "q=1"}, {"q[]=1", "q%5B%5D=1"}, {"q=\xff", "q=%FF"}, {"q=\t", "q=%09"}, {"q=~", "q=%7E"}, {"q=*", "q=%2A"}}
		pair := pairs[rng.IntN(len(pairs))]
		if rng.IntN(4) == 0 {
			pair[0], pair[1] = pair[1], pair[0]
		}
		return func(a *attempt, r *wireRequest) {
			r.query += "&" + pair[0]
			a.controls = append(a.controls, victim{a.base, r.query})
			if !strings.ContainsAny(pair[1], " #\"<>^`\\|{}\t") && isASCII(pair[1]) {
				a.victims = append(a.victims, victim{a.base, a.mark + "&" + pair[1]})
			}
		}
	}},
	{"host", 3, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		change := rng.IntN(9)
		return func(a *attempt, r *wireRequest) {
			host := a.place.name
			r.set("Host", []string{host + ":80", host + ":8443", strings.ToUpper(host), host + ".", "evil.example", "", host + ":", host + ":080", host + "@evil.example"}[change])
		}
	}},
	{"absolute", 2, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		change := rng.IntN(6)
		return func(a *attempt, r *wireRequest) {
			r.authority = []string{"http://" + a.place.name, "http://" + a.place.name + ":80", "HTTP://" + strings.ToUpper(a.place.name), "https://" + a.place.name, "http://evil.example", "http://user@" + a.place.name}[change]
			if change%2 == 0 {
				r.set("Host", "evil.example")
			}
		}
	}},
	{"version", 1, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		version := one(rng, "HTTP/1.2", "HTTP/1.9", "HTTP/2.0", "http/1.1", "HTTP/0.9", "HTTP/1.10")
		return func(_ *attempt, r *wireRequest) { r.version = version }
	}},
	fieldKind("cookie", 3, func(rng *rand.Rand) (string, string) {
		return "Cookie", one(rng, "session=victim", "a=b; session=victim", "session=victim; session=other", "session=\"victim\"", ";;", "session", "=", "session=\x80")
	}),
	{"body", 3, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		text, chunked, trailer := one(rng, "n=evil", "x", strings.Repeat("y", 3000)), rng.IntN(2) == 0, rng.IntN(2) == 0
		names := one(rng, "X-T", "Host", "Content-Length", "X_Forwarded_Host", "Cookie", "bad name", "Transfer-Encoding")
		return func(_ *attempt, r *wireRequest) {
			if !chunked || r.h2 {
				r.add("Content-Length", fmt.Sprint(len(text)))
				r.body = text
				return
			}
			r.add("Transfer-Encoding", "chunked")
			r.body = fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(text), text)
			if trailer {
				r.add("Trailer", names)
				r.body += names + ": evil\r\n"
			}
			r.body += "\r\n"
		}
	}},
	fieldKind("cache-control", 2, func(rng *rand.Rand) (string, string) {
		return one(rng, "Cache-Control", "Cache-Control", "Pragma", "CDN-Cache-Control", "Surrogate-Control"), one(rng, "no-cache", "no-store", "max-age=0", "only-if-cached", "max-stale", "public, max-age=99999", "private", "must-understand", "x=\"", "")
	}),
	fieldKind("internal", 3, func(rng *rand.Rand) (string, string) {
		return one(rng, "Summarycache-Cache-Control", "Summarycache-Tags", "Cache-Status", "Age", "Via", "CDN-Loop", "Max-Forwards", "Cache-Tag", "X-Cache", "Vary", "Set-Cookie", "Expires", "Date", "ETag", "Content-Location", "Summarycache-Lookup", "Summarycache-Sibling"),
			one(rng, "max-age=9999", "x", "0", "1.1 a, 1.1 b", "1.1 a", "a; hit", "*", "public", "", "1")
	}),
	fieldKind("odd", 4, func(rng *rand.Rand) (string, string) {
		return one(rng, "X-A", "A", "C", "User-Agent", "Referer", "Origin", "Authorization", "Proxy-Authorization", "Upgrade", "HTTP2-Settings", "Prefer", "Sec-Fetch-Mode", "From", "X~!", "Content-Type", "Content-Encoding", "Content-Range", "Content-Length", "Trailer", "Keep-Alive", "Proxy-Connection", "Sec-WebSocket-Key", "Forwarded", "X-HTTP-Method-Override", "DNT", "Save-Data"),
			one(rng, "x", "", "\x80\xff", "a\x00b", "a\x07b", "a\tb", "\x7f", "a,b,,", "\"", "h2c", "websocket", "é", strings.Repeat("z", 300), "-1", "0", "bytes 0-1/2", "gzip", "Basic YTpi", "Content-Length", "Host", "timeout=5")
	}),
	fieldKind("name", 2, func(rng *rand.Rand) (string, string) {
		return one(rng, "X A", "X\x00A", "X\x80", "", "X(A)", "X@", "Content Length", "Host ", " Host", "X\tA", "A:B", "\"x\"", "É", "TRANSFER-ENCODING\x0b", "X,A", "{x}"), one(rng, "x", "evil.example", "5")
	}),
	fieldKind("selecting", 1, func(rng *rand.Rand) (string, string) {
		return one(rng, "A", "C", "B", "Cookie", "Accept-Language"), one(rng, "x", "y", "a=b", "")
	}),
	{"upgrade", 1, func(rng *rand.Rand) func(*attempt, *wireRequest) {
		to := one(rng, "h2c", "websocket", "TLS/1.0", "x", "HTTP/2.0")
		return func(_ *attempt, r *wireRequest) {
			r.add("Connection", "Upgrade")
			r.add("Upgrade", to)
		}
	}},
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7e }) }

// spelling writes the path in a way that some server takes for the same one, or for another.
func spelling(rng *rand.Rand) func(*attempt, *wireRequest) {
	how, letter, encodedSlash, up := rng.IntN(34), rng.IntN(100), one(rng, "%2f", "%2F"), one(rng, "..", "%2e%2e", ".%2E", "%2e.")
	before := one(rng, "/static", "/static", "/x", "/static/x.css", "/account")
	cookie := rng.IntN(4) > 0
	return func(a *attempt, r *wireRequest) {
		under, path := a.place.under, strings.TrimPrefix(a.base, a.place.under)
		i := 1 + letter%max(1, len(path)-1)
		hex := fmt.Sprintf("%%%02x", path[min(i, len(path)-1)])
		depth := strings.Repeat(up+"/", strings.Count(before, "/"))
		spelled := []string{
			before + "/" + depth + path[1:],
			before + "/" + strings.ReplaceAll(depth, "/", encodedSlash) + path[1:],
			before + encodedSlash + strings.ReplaceAll(depth, "/", encodedSlash) + path[1:],
			"/x/" + up + encodedSlash + path[1:] + ".css",
			"/static/" + up + encodedSlash + path[1:] + ";.css",
			path + ".css", path + "/x.css", path + ";x.css", path + "%3bx.css", path + "%3fx.css", path + "%23x.css", path + "%00.css", path + "%0a.css", path + "?x.css&", path + "/.", path + "/" + up + "/" + "x.css",
			"/" + path, "//" + path, "/." + path, "/%2e" + path, "/" + up + path, path[:i] + hex + path[min(len(path), i+1):], path[:i] + strings.ToUpper(hex) + path[min(len(path), i+1):],
			strings.ToUpper(path), strings.ReplaceAll(path, "/", "\\"), "/static\\" + up + path, "/static/" + up + ";" + path, "/static/" + up + ";a=b" + path,
			"/static/%252e%252e%252f" + path[1:], "/static/%c0%ae%c0%ae/" + path[1:], "/static" + encodedSlash + up + path,
			"/static/x.css" + encodedSlash + up + encodedSlash + up + path, strings.ReplaceAll(path[1:], "/", encodedSlash), path + "%20",
		}[how]
		if !strings.HasPrefix(spelled, "/") && how != 24 {
			spelled = "/" + spelled
		}
		if r.path = under + spelled; strings.Contains(spelled, "?") {
			r.path, r.query = under+path, strings.TrimPrefix(spelled, path+"?")+r.query
		}
		if cookie {
			r.set("Cookie", "session=victim")
		}
		a.controls = append(a.controls, victim{r.path, r.query})
	}
}

// newAttempt is mutation n of a seed.
func newAttempt(seed uint64, n int, places []*place) *attempt {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	a := &attempt{n: n}
	sum := 0
	for _, p := range places {
		sum += p.share
	}
	for at := rng.IntN(sum); a.place == nil; places = places[1:] {
		if at -= places[0].share; at < 0 {
			a.place = places[0]
		}
	}
	bases := a.place.bases()
	a.base = bases[rng.IntN(len(bases))]
	if a.base == "/big.bin" && rng.IntN(4) > 0 { // which takes long
		a.base = "/small.txt"
	}
	switch rng.IntN(10) {
	case 0:
		a.old = true
	case 1, 2, 3:
		a.h2 = true
	}
	sum = 0
	for _, k := range partKinds {
		sum += k.weight
	}
	for i := range []int{1, 1, 1, 2, 2, 3}[rng.IntN(6)] {
		at := rng.IntN(sum)
		apt := ""
		if i == 0 && rng.IntN(2) == 0 {
			apt = a.apt()
		}
		for _, k := range partKinds {
			if at -= k.weight; apt == "" && at < 0 || apt == k.name {
				if apply := k.make(rng); !slices.ContainsFunc(a.parts, func(p part) bool { return p.kind == k.name }) {
					a.parts = append(a.parts, part{k.name, apply})
				}
				break
			}
		}
	}
	return a
}

// apt is the kind of mutation to which the page reacts; "" = any.
func (a *attempt) apt() string {
	path := strings.TrimPrefix(a.base, a.place.under)
	switch {
	case strings.HasPrefix(path, "/ranged/"):
		return "range"
	case strings.HasPrefix(path, "/account"):
		return "spelling"
	case path == "/badvary":
		return "selecting"
	case path == "/language" || path == "/coded":
		return "accept"
	}
	return ""
}

// request returns the mutated request, and sets what comes after it.
func (a *attempt) request(mark string) *wireRequest {
	a.mark, a.controls = mark, nil
	a.victims = []victim{{a.base, mark}}
	r := &wireRequest{method: "GET", version: "HTTP/1.1", path: a.base, query: mark, h2: a.h2}
	if a.old {
		r.version = "HTTP/1.0"
	}
	r.add("Host", a.place.name)
	if strings.HasPrefix(strings.TrimPrefix(a.base, a.place.under), "/account") {
		r.add("Cookie", "session=victim")
	}
	for _, p := range a.parts {
		p.apply(a, r)
	}
	return r
}

// kinds names the mutations.
func (a *attempt) kinds() string {
	var list []string
	for _, p := range a.parts {
		list = append(list, p.kind)
	}
	slices.Sort(list)
	return strings.Join(list, "+")
}

// plain is the request of another client.
func (v victim) plain(p *place) *wireRequest {
	return &wireRequest{method: "GET", version: "HTTP/1.1", path: v.path, query: v.query, patient: true,
		fields: [][2]string{{"Host", p.name}, {"User-Agent", "plain"}, {"Accept", "*/*"}, {"Connection", "close"}}}
}
