package proxy

import (
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// Storing responses: RFC 9111 sections 2, 3 and 5.2.2, RFC 9213.
var storing = []row{
	reused("9111-3", "fresh response to GET", "Cache-Control: max-age=60"),
	notReused("9111-3", "response no-store", "Cache-Control: no-store, max-age=60"),
	notReused("9111-3", "response no-store in capitals", "Cache-Control: No-StOrE, max-age=60"),
	notReused("9111-3", "private in a shared cache", "Cache-Control: private, max-age=60"),
	notReused("9111-5.2.2.7", "qualified private is kept out altogether", `Cache-Control: private="X-A", max-age=60`),
	notReused("9111-3", "no-store on a second line", "Cache-Control: max-age=60 | Cache-Control: no-store"),
	notReused("9111-3", "no lifetime and no validator", "X-A: b"),
	reused("9111-3", "public and a lifetime by heuristics", "Cache-Control: public | Last-Modified: DATE-3600"),
	{section: "9111-5.2.1.5", name: "request no-store keeps the response out", origin: []scripted{{fields: "Cache-Control: max-age=60"}},
		steps: []step{{fields: "Cache-Control: no-store", origin: true}, {origin: true, get: "n=1"}}},
	{section: "9111-5.2.1.5", name: "request no-store may get a stored response", origin: []scripted{{fields: "Cache-Control: max-age=60"}},
		steps: []step{{origin: true}, {fields: "Cache-Control: no-store", get: "n=0"}}},

	authorized("response to Authorization is not stored", "Cache-Control: max-age=60", false),
	authorized("unless public", "Cache-Control: max-age=60, public", true),
	authorized("unless s-maxage", "Cache-Control: s-maxage=60", true),
	authorized("unless must-revalidate", "Cache-Control: max-age=60, must-revalidate", true),
	authorized("proxy-revalidate alone does not allow it", "Cache-Control: max-age=60, proxy-revalidate", false),
	{section: "9111-3.5", name: "Authorization may get what was stored for all", origin: []scripted{{fields: "Cache-Control: max-age=60"}},
		local: true, steps: []step{{origin: true}, {fields: "Authorization: Basic eDp5", get: "n=0"}}},

	status("200 by heuristics", 200, "Last-Modified: DATE-3600", true),
	status("203 by heuristics", 203, "Last-Modified: DATE-3600", true),
	status("204 by heuristics", 204, "Last-Modified: DATE-3600", true),
	status("300 by heuristics", 300, "Last-Modified: DATE-3600", true),
	status("301 by heuristics", 301, "Last-Modified: DATE-3600", true),
	status("308 by heuristics", 308, "Last-Modified: DATE-3600", true),
	status("404 by heuristics", 404, "Last-Modified: DATE-3600", true),
	status("405 by heuristics", 405, "Last-Modified: DATE-3600", true),
	status("410 by heuristics", 410, "Last-Modified: DATE-3600", true),
	status("414 not by heuristics", 414, "Last-Modified: DATE-3600", false),
	status("501 by heuristics", 501, "Last-Modified: DATE-3600", true),
	status("201 not by heuristics", 201, "Last-Modified: DATE-3600", false),
	status("302 not by heuristics", 302, "Last-Modified: DATE-3600", false),
	status("307 not by heuristics", 307, "Last-Modified: DATE-3600", false),
	status("403 not by heuristics", 403, "Last-Modified: DATE-3600", false),
	status("500 not by heuristics", 500, "Last-Modified: DATE-3600", false),
	status("502 not by heuristics", 502, "Last-Modified: DATE-3600", false),
	status("503 not by heuristics", 503, "Last-Modified: DATE-3600", false),
	status("302 with a lifetime", 302, "Cache-Control: max-age=60", true),
	status("307 with a lifetime", 307, "Cache-Control: max-age=60", true),
	{section: "9110-15.1", name: "400 with a lifetime, which only the URL can have provoked", local: true, origin: []scripted{{status: 400, fields: "Cache-Control: max-age=60"}},
		steps: []step{{origin: true, status: 400}, {after: 2 * time.Second, status: 400}}},
	{section: "9110-15.1", name: "400 with a lifetime, for a request with a cookie", origin: []scripted{{status: 400, fields: "Cache-Control: max-age=60"}},
		steps: []step{{fields: "Cookie: a=b", origin: true, status: 400}, {origin: true, get: "n=1", status: 400}}},
	status("401, for the request alone, with a lifetime", 401, "Cache-Control: max-age=60", false),
	status("407, for the request alone, with a lifetime", 407, "Cache-Control: max-age=60", false),
	status("408, for the request alone, with a lifetime", 408, "Cache-Control: max-age=60", false),
	status("411, for the request alone, with a lifetime", 411, "Cache-Control: max-age=60", false),
	status("412, for the request alone, with a lifetime", 412, "Cache-Control: max-age=60", false),
	status("413, for the request alone, with a lifetime", 413, "Cache-Control: max-age=60", false),
	{section: "9110-15.1", name: "414 with a lifetime, which only the URL can have provoked", local: true, origin: []scripted{{status: 414, fields: "Cache-Control: max-age=60"}},
		steps: []step{{origin: true, status: 414}, {after: 2 * time.Second, status: 414}}},
	{section: "9110-15.1", name: "414 with a lifetime, for a request with a cookie", origin: []scripted{{status: 414, fields: "Cache-Control: max-age=60"}},
		steps: []step{{fields: "Cookie: a=b", origin: true, status: 414}, {origin: true, get: "n=1", status: 414}}},
	status("415, for the request alone, with a lifetime", 415, "Cache-Control: max-age=60", false),
	status("416, for the request alone, with a lifetime", 416, "Cache-Control: max-age=60", false),
	status("417, for the request alone, with a lifetime", 417, "Cache-Control: max-age=60", false),
	status("421, for the request alone, with a lifetime", 421, "Cache-Control: max-age=60", false),
	status("422, for the request alone, with a lifetime", 422, "Cache-Control: max-age=60", false),
	status("426, for the request alone, with a lifetime", 426, "Cache-Control: max-age=60", false),
	status("428, for the request alone, with a lifetime", 428, "Cache-Control: max-age=60", false),
	status("429, for the request alone, with a lifetime", 429, "Cache-Control: max-age=60", false),
	status("431, for the request alone, with a lifetime", 431, "Cache-Control: max-age=60", false),
	status("511, for the request alone, with a lifetime", 511, "Cache-Control: max-age=60", false),
	status("500 with a lifetime", 500, "Cache-Control: max-age=60", true),
	status("503 with a lifetime", 503, "Cache-Control: max-age=60", true),
	status("504 with a lifetime", 504, "Cache-Control: max-age=60", true),
	status("299, not known, with a lifetime", 299, "Cache-Control: max-age=60", true),
	status("499, not known, with a lifetime", 499, "Cache-Control: max-age=60", true),
	status("206 is not stored as a whole", 206, "Cache-Control: max-age=60 | Content-Range: bytes 0-2/10", false),
	status("must-understand and a status not understood", 299, "Cache-Control: max-age=60, must-understand", false),
	status("must-understand overrides no-store if understood", 200, "Cache-Control: max-age=60, must-understand, no-store", true),
	status("must-understand leaves no-store if not understood", 299, "Cache-Control: max-age=60, must-understand, no-store", false),

	{section: "9111-3", name: "a POST's response is not stored", origin: []scripted{{fields: "Cache-Control: max-age=60"}},
		steps: []step{{method: "POST", body: "x", origin: true}, {origin: true, get: "n=1"}}},
	{section: "9111-3.3", name: "an incomplete response is not used as complete", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=60 | Content-Length: 100", body: "short"}, {fields: "Cache-Control: max-age=60"}},
		steps:  []step{{broken: true, origin: true}, {get: "n=1"}}}, // the origin was asked for the rest, and had another body, which is stored
	{section: "9111-3.1", name: "connection fields are not stored", origin: []scripted{{
		fields: "Cache-Control: max-age=60 | Connection: X-Hop | X-Hop: 1 | Keep-Alive: 5 | Proxy-Authenticate: Basic | X-End: 2"}},
		steps: []step{{origin: true, want: "X-Hop: | Keep-Alive: | Proxy-Authenticate: | X-End: 2"},
			{want: "X-Hop: | Keep-Alive: | Proxy-Authenticate: | X-End: 2"}}},
	{section: "9111-3.1", name: "unknown fields are stored, line by line", origin: []scripted{{fields: "Cache-Control: max-age=60 | X-A: 1 | X-A: 2"}},
		steps: []step{{origin: true}, {want: "X-A: 1, 2"}}},
	{section: "9111-7.3", name: "Set-Cookie keeps a response with a lifetime out", local: true, origin: []scripted{{fields: "Cache-Control: max-age=60 | Set-Cookie: a=b"}},
		steps: []step{{origin: true}, {origin: true, want: "Set-Cookie: a=b"}}},
	{section: "9111-7.3", name: "Set-Cookie does not keep a response with a lifetime out if a rule says so", rules: rules.Set{{SetCookie: rules.Store}},
		origin: []scripted{{fields: "Cache-Control: max-age=60 | Set-Cookie: a=b"}},
		steps:  []step{{origin: true}, {want: "Set-Cookie: a=b"}}},
	{section: "9111-3.2", name: "a 304 with Set-Cookie is for its client alone", local: true,
		origin: []scripted{{fields: `Cache-Control: max-age=1 | ETag: "x"`}, {status: 304, fields: "Set-Cookie: a=b | X-For: 1"}, {status: 304}},
		steps: []step{{origin: true}, {after: 2 * time.Second, origin: true, get: "n=0", want: "Set-Cookie: a=b | X-For: 1"},
			{origin: true, get: "n=0", sent: `If-None-Match: "x"`, want: "Set-Cookie: | X-For:"}}},
	notReused("9111-7.3", "Set-Cookie keeps a response by heuristics out", "Last-Modified: DATE-3600 | Set-Cookie: a=b"),

	keys("other path", "/r", "/s", false),
	keys("other query", "/r?a=1", "/r?a=2", false),
	keys("query and none", "/r", "/r?", false),
	keys("same query", "/r?a=1", "/r?a=1", true),
	keys("case of the path", "/r", "/R", false),
	keys("escapes of unreserved characters", "/%7er%41", "/~rA", true),
	keys("case of escapes", "/%c3%a9", "/%C3%A9", true),
	keys("dot segments", "/a/./b/../r", "/a/r", true),
	keys("an escaped slash stays apart", "/a%2Fr", "/a/r", false),
	keys("an escaped dot segment stays apart", "/a/%2E%2E/r", "/r", false),
	keys("two slashes stay apart", "/a//r", "/a/r", false),
	keys("queries stay apart", "/r?a=%7e", "/r?a=~", false),
	keys("bytes that a query must not have", `/r?a="`, "/r?a=%22", true),

	reused("9213-2", "targeted lifetime over Cache-Control", "CDN-Cache-Control: max-age=60 | Cache-Control: no-store"),
	notReused("9213-2", "targeted no-store over Cache-Control", "CDN-Cache-Control: no-store | Cache-Control: max-age=60"),
	notReused("9213-2", "targeted field over Expires", "CDN-Cache-Control: max-age=0 | Expires: DATE+60"),
	notReused("9213-2", "targeted private", "CDN-Cache-Control: private | Cache-Control: max-age=60"),
	reused("9213-2", "an empty targeted field is ignored", "CDN-Cache-Control: | Cache-Control: max-age=60"),
	reused("9213-2.1", "a broken targeted field is ignored", "CDN-Cache-Control: max-age=0, ??? | Cache-Control: max-age=60"),
	reused("9213-2.1", "a targeted field of the wrong type is ignored", `CDN-Cache-Control: max-age="0" | Cache-Control: max-age=60`),
	reused("9213-2.1", "unknown targeted members are ignored", "CDN-Cache-Control: foo=bar;baz, max-age=60;x"),
}

func authorized(name, fields string, stored bool) row {
	return row{section: "9111-3.5", name: name, local: true, origin: []scripted{{fields: fields}},
		steps: []step{{fields: "Authorization: Basic eDp5", origin: true, sent: "Authorization: Basic eDp5"},
			{after: 2 * time.Second, origin: !stored}}}
}

func status(name string, code int, fields string, stored bool) row {
	return row{section: "9110-15.1", name: name, origin: []scripted{{status: code, fields: fields}},
		steps: []step{{origin: true, status: code}, {after: 2 * time.Second, origin: !stored, status: code}}}
}

func keys(name, first, second string, same bool) row {
	return row{section: "9111-2", name: name, origin: []scripted{{fields: "Cache-Control: max-age=60"}},
		steps: []step{{path: first, origin: true}, {path: second, origin: !same}}}
}
