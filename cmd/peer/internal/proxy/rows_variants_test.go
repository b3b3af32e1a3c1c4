package proxy

import (
	"fmt"
	"strings"
	"time"
)

// Variants and invalidation: RFC 9111 sections 4.1 and 4.4.
var variants = []row{
	varies("the same value", "Vary: X-V", "X-V: 1", "X-V: 1", true),
	varies("another value", "Vary: X-V", "X-V: 1", "X-V: 2", false),
	varies("a value and none", "Vary: X-V", "X-V: 1", "", false),
	varies("none and a value", "Vary: X-V", "", "X-V: 1", false),
	varies("none and none", "Vary: X-V", "", "", true),
	varies("fields that are not selecting", "Vary: X-V", "X-V: 1 | X-W: 1", "X-V: 1 | X-W: 2", true),
	varies("two fields, the same", "Vary: X-V, X-W", "X-V: 1 | X-W: 1", "X-W: 1 | X-V: 1", true),
	varies("two fields, one differs", "Vary: X-V, X-W", "X-V: 1 | X-W: 1", "X-V: 1 | X-W: 2", false),
	varies("two fields, values swapped", "Vary: X-V, X-W", "X-V: 1 | X-W: 2", "X-V: 2 | X-W: 1", false),
	varies("two fields, values run together", "Vary: X-V, X-W", "X-V: 1 | X-W: 2X-W", "X-V: 1X-W2 | X-W:", false),
	varies("Vary on two lines", "Vary: X-V | Vary: X-W", "X-V: 1 | X-W: 1", "X-V: 1 | X-W: 2", false),
	varies("Vary in another case", "vArY: x-v", "X-V: 1", "X-V: 2", false),
	varies("Vary: *", "Vary: *", "X-V: 1", "X-V: 1", false),
	varies("* among others", "Vary: X-V, *", "X-V: 1", "X-V: 1", false),
	varies("a Vary with what is no name", "Vary: x-v y, x-w", "X-V: 1", "X-V: 1", false),
	varies("* on another line", "Vary: X-V | Vary: *", "X-V: 1", "X-V: 1", false),
	varies("space around a value", "Vary: X-V", "X-V: 1", "X-V:   1  ", true),
	varies("space in a list", "Vary: X-V", "X-V: 1, 2", "X-V: 1,2", true),
	varies("a list on two lines", "Vary: X-V", "X-V: 1, 2", "X-V: 1 | X-V: 2", true),
	varies("case of an unknown field", "Vary: X-V", "X-V: a", "X-V: A", false),
	varies("order of codings", "Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: BR,gzip", true),
	varies("weights of codings", "Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: gzip, br;q=0.5", false),
	varies("a weight of 1", "Vary: Accept-Encoding", "Accept-Encoding: gzip;q=1.0", "Accept-Encoding: gzip", true),
	varies("case of languages", "Vary: Accept-Language", "Accept-Language: en-GB, de", "Accept-Language: en-gb,de", true),
	varies("order of languages may mean something", "Vary: Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", false),

	{section: "9111-4.1", name: "variants are kept side by side", local: true, origin: []scripted{{fields: minute + " | Vary: X-V"}},
		steps: []step{{fields: "X-V: 1", origin: true}, {fields: "X-V: 2", origin: true}, {fields: "X-V: 1", get: "n=0"}, {fields: "X-V: 2", get: "n=1"}}},
	{section: "9111-4", name: "of several that match the latest is used", local: true,
		origin: []scripted{{fields: minute + " | Vary: X-V"}, {fields: minute + " | Vary: X-W"}},
		steps: []step{{fields: "X-V: 1 | X-W: 1", origin: true}, {after: 2 * time.Second, fields: "X-V: 2 | X-W: 1", origin: true, get: "n=1"},
			{fields: "X-V: 1 | X-W: 1", get: "n=1"}, {fields: "X-V: 1 | X-W: 2", get: "n=0"}}},
	{section: "9111-4.1", name: "a validated variant leaves the others alone", local: true,
		origin: []scripted{{fields: tagged + " | Vary: X-V"}, {fields: `Cache-Control: max-age=60 | ETag: "b" | Vary: X-V`}, {status: 304, fields: tagged}},
		steps: []step{{fields: "X-V: 1", origin: true}, {fields: "X-V: 2", origin: true}, {after: 20 * time.Second, fields: "X-V: 1", origin: true, get: "n=0"},
			{fields: "X-V: 2", get: "n=1"}}},
}

func varies(name, vary, first, second string, same bool) row {
	// A peer that has never seen the rule doesn't find what a sibling holds under
	// it; TestVariants of package httpcache shows what it does once it has.
	guessed := strings.Contains(vary, "Accept-Encoding")
	return row{section: "9111-4.1", name: name, local: same && !guessed, origin: []scripted{{fields: minute + " | " + vary}},
		steps: []step{{fields: first, origin: true}, {after: time.Second, fields: second, origin: !same}}}
}

var unsafe = []row{
	invalidates("POST", 200, "", "/r", true),
	invalidates("PUT", 204, "", "/r", true),
	invalidates("DELETE", 200, "", "/r", true),
	invalidates("PATCH", 200, "", "/r", true),
	invalidates("M-SEARCH", 200, "", "/r", true), // not registered as safe
	invalidates("POST", 303, "", "/r", true),
	invalidates("POST", 400, "", "/r", false),
	invalidates("POST", 500, "", "/r", false),
	invalidates("POST", 200, "", "/other", false),
	invalidates("POST", 201, "Location: /r", "/other", true),
	invalidates("POST", 200, "Content-Location: /r", "/other", true),
	invalidates("POST", 201, "Location: http://origin.test/r", "/other", true),
	invalidates("POST", 201, "Location: http://elsewhere.test/r", "/other", false),
	invalidates("OPTIONS", 200, "", "/r", false),
	moves("/r"),
	moves("http://origin.test/r"),
	{section: "9111-4.4", name: "every variant goes", local: true, origin: []scripted{{fields: minute + " | Vary: X-V"}},
		steps: []step{{fields: "X-V: 1", origin: true}, {fields: "X-V: 2", origin: true}, {method: "PUT", body: "x", origin: true},
			{fields: "X-V: 1", origin: true}, {fields: "X-V: 2", origin: true}}},
	{section: "9111-4.4", name: "a sibling does not bring the old one back", origin: []scripted{{fields: minute}},
		steps: []step{{origin: true}, {method: "PUT", body: "x", origin: true}, {after: 2 * time.Second, origin: true, get: "n=2"}, {after: time.Second, get: "n=2"}}},
}

func invalidates(method string, status int, fields, path string, gone bool) row {
	body := "x"
	if method == "OPTIONS" {
		body = ""
	}
	name := fmt.Sprintf("%s of %s answered %d", method, path, status)
	if fields != "" {
		name += " " + fields
	}
	if gone {
		name += " removes /r"
	} else {
		name += " keeps /r"
	}
	return row{section: "9111-4.4", name: name, local: true,
		origin: []scripted{{fields: minute}, {status: status, fields: fields}, {fields: minute}},
		steps:  []step{{origin: true}, {method: method, path: path, body: body, origin: true, status: status}, {after: time.Second, origin: gone}}}
}

// moves is a row of WebDAV: what was at the Destination is replaced.
func moves(to string) row {
	return row{section: "9111-4.4", name: "MOVE to " + to + " removes that", local: true,
		origin: []scripted{{fields: minute}, {status: 201}, {fields: minute}},
		steps:  []step{{origin: true}, {method: "MOVE", path: "/other", fields: "Destination: " + to, origin: true, status: 201}, {after: time.Second, origin: true}}}
}

// Messages on their way: RFC 9110 sections 6 to 10 and 15, RFC 9211.
var messages = []row{
	{section: "9110-7.6.3", name: "Via on requests and responses", local: true, origin: []scripted{{fields: minute + " | Via: 1.0 upstream"}},
		steps: []step{{fields: "Via: 1.1 before", origin: true, sent: "Via: 1.1 before, 1.1 a", want: "Via: 1.0 upstream, 1.1 a"}, {want: "Via: 1.0 upstream, 1.1 a"}}},
	{section: "9110-7.6.1", name: "connection fields of a request end here", local: true, origin: []scripted{{fields: minute}},
		steps: []step{{fields: "Connection: X-Hop | X-Hop: 1 | Proxy-Authorization: secret | TE: trailers | Keep-Alive: 5 | X-End: 2", origin: true,
			sent: "X-Hop: | Proxy-Authorization: | Te: | Keep-Alive: | X-End: 2"}}},
	{section: "9110-7.6.3", name: "a request that comes round is refused", local: true, origin: []scripted{{fields: minute}},
		steps: []step{{fields: "Via: 1.1 a", status: 508}}},
	{section: "9110-7.6.2", name: "Max-Forwards counts down", local: true, origin: []scripted{{}},
		steps: []step{{method: "OPTIONS", fields: "Max-Forwards: 3", origin: true, sent: "Max-Forwards: 2"},
			{method: "OPTIONS", fields: "Max-Forwards: 0"}}},
	{section: "9110-9.3.8", name: "TRACE ends here", local: true, origin: []scripted{{}},
		steps: []step{{method: "TRACE", fields: "Cookie: c=1", status: 405, want: "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT"}, {method: "TRACE", fields: "Max-Forwards: 3", status: 405}}},
	{section: "9110-5.1", name: "fields that are not known pass", local: true, origin: []scripted{{fields: minute + " | X-Odd: \"a, b\";c=d"}},
		steps: []step{{fields: "X-Odd: 1;2", origin: true, sent: "X-Odd: 1;2", want: "X-Odd: \"a, b\";c=d"}}},
	{section: "9110-8.4", name: "codings pass as they are", local: true, origin: []scripted{{fields: minute + " | Content-Encoding: gzip", body: "not really"}},
		steps: []step{{fields: "Accept-Encoding: gzip", origin: true, get: "not really", sent: "Accept-Encoding: gzip"},
			{get: "not really", want: "Content-Encoding: gzip"}}},
	{section: "9110-10.1.5", name: "no User-Agent is made up", local: true, origin: []scripted{{}},
		steps: []step{{origin: true, sent: "User-Agent: | Accept-Encoding:"}}},
	{section: "9211-2.2", name: "bypass", local: true, origin: []scripted{{}},
		steps: []step{{method: "POST", body: "x", origin: true, want: "Cache-Status: a; fwd=method; fwd-status=200"}}},
	{section: "9211-2.2", name: "uri-miss, vary-miss, stale, request", local: true, origin: []scripted{{fields: "Cache-Control: max-age=10 | Vary: X-V"}},
		steps: []step{{origin: true, want: "Cache-Status: a; fwd=uri-miss; fwd-status=200; stored"},
			{fields: "X-V: 1", origin: true, want: "Cache-Status: a; fwd=vary-miss; fwd-status=200; stored"},
			{after: 20 * time.Second, origin: true, want: "Cache-Status: a; fwd=stale; fwd-status=200; stored"},
			{fields: "Cache-Control: no-cache", origin: true, want: "Cache-Status: a; fwd=request; fwd-status=200; stored"},
			{want: "Cache-Status: a; hit; ttl=10"}}},
	{section: "9211-2", name: "members of upstream caches stay before ours", local: true, origin: []scripted{{fields: minute + " | Cache-Status: cdn; hit"}},
		steps: []step{{origin: true, want: "Cache-Status: cdn; hit, a; fwd=uri-miss; fwd-status=200; stored"}, {want: "Cache-Status: cdn; hit, a; hit; ttl=60"}}},
	{section: "9211-2", name: "errors have it too", local: true, origin: []scripted{{status: -1}},
		steps: []step{{origin: true, status: 502, want: "Cache-Status: a; fwd=uri-miss; detail=origin-failed | Content-Type: text/plain; charset=utf-8"}}},
	{section: "9211-2", name: "and 504s", origin: []scripted{{}},
		steps: []step{{fields: "Cache-Control: only-if-cached", status: 504}}},
}
