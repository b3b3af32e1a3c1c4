package proxy

import "time"

const (
	tagged = `Cache-Control: max-age=10 | ETag: "a"`
	dated  = "Cache-Control: max-age=10 | Last-Modified: DATE-100"
)

// Validation and conditional requests: RFC 9111 section 4.3, RFC 9110 section 13.
var validation = []row{
	{section: "9111-4.3.1", name: "a stale response is validated by its tag", local: true,
		origin: []scripted{{fields: tagged}, {status: 304, fields: tagged}},
		steps: []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=0", sent: "If-None-Match: \"a\"", want: "Age: 0"},
			{after: 5 * time.Second, get: "n=0", want: "Age: 5"}}},
	{section: "9111-4.3.1", name: "a stale response is validated by its date", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10 | Last-Modified: Fri, 31 Dec 1999 23:00:00 GMT"}, {status: 304}},
		steps: []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=0",
			sent: "If-Modified-Since: Fri, 31 Dec 1999 23:00:00 GMT | If-None-Match:"}, {after: 5 * time.Second, get: "n=0"}}},
	{section: "9111-4.3.1", name: "a response without validators is fetched anew", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10"}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=1", sent: "If-None-Match: | If-Modified-Since:"}}},
	{section: "9111-5.2.2.4", name: "no-cache is validated each time", local: true,
		origin: []scripted{{fields: `Cache-Control: no-cache, max-age=60 | ETag: "a"`}, {status: 304, fields: `ETag: "a"`}},
		steps:  []step{{origin: true}, {origin: true, get: "n=0", sent: "If-None-Match: \"a\""}, {origin: true, get: "n=0"}}},
	{section: "9111-5.2.2.4", name: "the fields of a qualified no-cache are not reused", local: true,
		origin: []scripted{{fields: `Cache-Control: no-cache="X-A, x-b", max-age=60 | X-A: 1 | X-B: 2 | X-C: 3`}},
		steps:  []step{{origin: true, want: "X-A: 1 | X-B: 2 | X-C: 3"}, {want: "X-A: | X-B: | X-C: 3"}}},
	{section: "9111-4.3.3", name: "a full response replaces the stored one", local: true,
		origin: []scripted{{fields: tagged}, {fields: "Cache-Control: max-age=10 | ETag: \"b\""}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=1"}, {get: "n=1", want: "ETag: \"b\""}}},
	{section: "9111-4.3.3", name: "an unstorable answer replaces the stored one too", local: true,
		origin: []scripted{{fields: tagged}, {status: 404, fields: "Cache-Control: no-store"}, {status: -1}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, status: 404}, {origin: true, status: 502}}},
	{section: "9111-3.2", name: "a 304 updates fields and keeps the others", local: true,
		origin: []scripted{{fields: tagged + " | X-Old: 1 | X-Both: 1 | Content-Type: text/plain", body: "12345"},
			{status: 304, fields: tagged + " | X-New: 2 | X-Both: 2 | Content-Length: 99"}},
		steps: []step{{origin: true}, {after: 20 * time.Second, origin: true, want: "X-Old: 1 | X-New: 2 | X-Both: 2 | Content-Length: 5"},
			{get: "12345", want: "X-Old: 1 | X-New: 2 | X-Both: 2 | Content-Length: 5 | Content-Type: text/plain"}}},
	{section: "9111-3.2", name: "a 304 can change the lifetime", local: true,
		origin: []scripted{{fields: tagged}, {status: 304, fields: `Cache-Control: max-age=100 | ETag: "a"`}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true}, {after: 90 * time.Second, get: "n=0", want: "Cache-Control: max-age=100"}}},
	{section: "9111-3.2", name: "a 304 can end the storing", local: true,
		origin: []scripted{{fields: tagged}, {status: 304, fields: `Cache-Control: no-store | ETag: "a"`}, {fields: tagged}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=0"}, {origin: true, get: "n=2"}}},
	{section: "9111-3.2", name: "a 304 can end the storing of what was fresh", local: true,
		origin: []scripted{{fields: tagged}, {status: 304, fields: `Cache-Control: no-store | ETag: "a"`}, {fields: tagged}},
		steps:  []step{{origin: true}, {fields: "Cache-Control: no-cache", origin: true, get: "n=0"}, {after: time.Second, origin: true, get: "n=2"}}},
	{section: "9111-4.3.4", name: "a 304 with another tag does not freshen", local: true,
		origin: []scripted{{fields: tagged}, {status: 304, fields: `Cache-Control: max-age=10 | ETag: "b"`}, {fields: `Cache-Control: max-age=10 | ETag: "b"`}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=2", sent: "If-None-Match:"}, {get: "n=2"}}},

	conditional("the same tag", tagged, `If-None-Match: "a"`, 304),
	conditional("another tag", tagged, `If-None-Match: "b"`, 200),
	conditional("one of several tags", tagged, `If-None-Match: "b", "a" ,"c"`, 304),
	conditional("tags on two lines", tagged, `If-None-Match: "b" | If-None-Match: "a"`, 304),
	conditional("a weak tag for a strong one", tagged, `If-None-Match: W/"a"`, 304),
	conditional("a strong tag for a weak one", `Cache-Control: max-age=10 | ETag: W/"a"`, `If-None-Match: "a"`, 304),
	conditional("any tag", tagged, "If-None-Match: *", 304),
	conditional("a tag with a comma", `Cache-Control: max-age=10 | ETag: "a,b"`, `If-None-Match: "x", "a,b"`, 304),
	conditional("not modified since", dated, "If-Modified-Since: DATE-100", 304),
	conditional("not modified since a later date", dated, "If-Modified-Since: DATE-50", 304),
	conditional("modified since", dated, "If-Modified-Since: DATE-101", 200),
	conditional("an invalid date", dated, "If-Modified-Since: yesterday", 200),
	conditional("a tag decides over a date", dated+` | ETag: "a"`, `If-None-Match: "b" | If-Modified-Since: DATE-50`, 200),
	conditional("without Last-Modified the Date counts", minute, "If-Modified-Since: DATE+0", 304),
	conditional("without Last-Modified, changed since", minute, "If-Modified-Since: DATE-10", 200),
	{section: "9110-15.4.5", name: "fields of a 304", local: true,
		origin: []scripted{{fields: tagged + " | Vary: X-V | Content-Location: /x | Expires: DATE+10 | Content-Type: text/plain | X-A: 1"}},
		steps: []step{{origin: true}, {fields: `If-None-Match: "a"`, status: 304,
			want: `Cache-Control: max-age=10 | ETag: "a" | Vary: X-V | Content-Location: /x | Expires: Sat, 01 Jan 2000 00:00:10 GMT | Date: Sat, 01 Jan 2000 00:00:00 GMT | Content-Length: | Content-Type:`}}},
	{section: "9110-13.1.2", name: "a condition does not keep a miss from being stored", local: true, origin: []scripted{{fields: tagged}},
		steps: []step{{fields: `If-None-Match: "x"`, origin: true, get: "n=0", sent: "If-None-Match:"}, {get: "n=0"}}},
	{section: "9110-13.1.2", name: "a miss that meets the client's condition", local: true, origin: []scripted{{fields: tagged}},
		steps: []step{{fields: `If-None-Match: "a"`, origin: true, status: 304}, {get: "n=0"}}},
	{section: "9110-13.1.1", name: "If-Match is the origin's to judge", local: true, origin: []scripted{{fields: tagged}, {status: 412}},
		steps: []step{{origin: true}, {fields: `If-Match: "b"`, origin: true, status: 412, sent: "If-Match: \"b\""}}},
	{section: "9110-13.2.2", name: "conditions are for 200 only", local: true, origin: []scripted{{status: 404, fields: tagged}},
		steps: []step{{origin: true, status: 404}, {fields: `If-None-Match: "a"`, status: 404}}},
	{section: "9111-4.3.5", name: "HEAD with the same validators freshens", local: true,
		origin: []scripted{{fields: tagged + " | X-A: 1", body: "12345"}, {fields: tagged + " | X-A: 2 | Content-Length: 5", body: "12345"}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, method: "HEAD", origin: true}, {after: 5 * time.Second, get: "12345", want: "X-A: 2 | Age: 5"}}},
	{section: "9111-4.3.5", name: "HEAD with another tag makes the stored response stale", local: true,
		origin: []scripted{{fields: tagged}, {fields: `Cache-Control: max-age=10 | ETag: "b"`}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, method: "HEAD", origin: true}, {origin: true, get: "n=2"}}},
}

// conditional is a fresh response and a request with conditions.
func conditional(name, fields, request string, status int) row {
	return row{section: "9111-4.3.2", name: name, origin: []scripted{{fields: fields}},
		steps: []step{{origin: true}, {fields: request, status: status}}}
}
