package proxy

import "time"

const minute = "Cache-Control: max-age=60"

// Request directives: RFC 9111 sections 5.2.1 and 5.4.
var requests = []row{
	asks("9111-5.2.1.1", "max-age met", minute, 10, "Cache-Control: max-age=20", false),
	asks("9111-5.2.1.1", "max-age exceeded", minute, 10, "Cache-Control: max-age=5", true),
	asks("9111-5.2.1.1", "max-age=0", minute, 0, "Cache-Control: max-age=0", true),
	asks("9111-5.2.1.2", "stale and max-stale", minute, 70, "Cache-Control: max-stale=20", false),
	asks("9111-5.2.1.2", "stale and any max-stale", minute, 3600, "Cache-Control: max-stale", false),
	asks("9111-5.2.1.2", "too stale for max-stale", minute, 90, "Cache-Control: max-stale=20", true),
	asks("9111-5.2.2.2", "must-revalidate over max-stale", minute+", must-revalidate", 70, "Cache-Control: max-stale", true),
	asks("9111-5.2.2.8", "proxy-revalidate over max-stale", minute+", proxy-revalidate", 70, "Cache-Control: max-stale", true),
	asks("9111-5.2.2.10", "s-maxage over max-stale", "Cache-Control: s-maxage=60", 70, "Cache-Control: max-stale", true),
	asks("9111-5.2.1.3", "min-fresh met", minute, 10, "Cache-Control: min-fresh=20", false),
	asks("9111-5.2.1.3", "min-fresh not met", minute, 50, "Cache-Control: min-fresh=20", true),
	asks("9111-5.2.1.4", "no-cache", minute, 10, "Cache-Control: no-cache", true),
	asks("9111-5.4", "Pragma without Cache-Control", minute, 10, "Pragma: no-cache", true),
	asks("9111-5.4", "Pragma with Cache-Control is ignored", minute, 10, "Pragma: no-cache | Cache-Control: foo", false),
	asks("9111-5.2", "an unknown directive is ignored", minute, 10, "Cache-Control: foo=bar", false),

	{section: "9111-5.2.1.4", name: "no-cache brings a new response into the store", local: true, origin: []scripted{{fields: minute}},
		steps: []step{{origin: true}, {fields: "Cache-Control: no-cache", origin: true, get: "n=1"}, {get: "n=1"}}},
	{section: "9111-5.2.1.7", name: "only-if-cached and nothing stored", origin: []scripted{{fields: minute}},
		steps: []step{{fields: "Cache-Control: only-if-cached", status: 504}}},
	{section: "9111-5.2.1.7", name: "only-if-cached and a fresh response", local: true, origin: []scripted{{fields: minute}},
		steps: []step{{origin: true}, {fields: "Cache-Control: only-if-cached", get: "n=0"}}},
	{section: "9111-5.2.1.7", name: "only-if-cached and a stale response", local: true, origin: []scripted{{fields: minute + " | ETag: \"a\""}},
		steps: []step{{origin: true}, {after: 61 * time.Second, fields: "Cache-Control: only-if-cached", status: 504}}},
	{section: "9111-5.2.1.7", name: "only-if-cached within stale-while-revalidate", local: true, origin: []scripted{{fields: minute + ", stale-while-revalidate=60"}},
		steps: []step{{origin: true}, {after: 61 * time.Second, fields: "Cache-Control: only-if-cached", status: 504}}},
	{section: "9111-5.2.1.7", name: "only-if-cached and a response to be validated", local: true, origin: []scripted{{fields: "Cache-Control: no-cache | ETag: \"a\""}},
		steps: []step{{origin: true}, {fields: "Cache-Control: only-if-cached", status: 504}}},
	{section: "9111-5.2.1.7", name: "only-if-cached and max-stale", local: true, origin: []scripted{{fields: minute}},
		steps: []step{{origin: true}, {after: 61 * time.Second, fields: "Cache-Control: only-if-cached, max-stale", get: "n=0"}}},
	{section: "9111-5.2.1.7", name: "only-if-cached HEAD and nothing stored", origin: []scripted{{fields: minute}},
		steps: []step{{method: "HEAD", fields: "Cache-Control: only-if-cached", status: 504}}},

	{section: "9110-9.3.2", name: "HEAD from a stored GET", local: true, origin: []scripted{{fields: minute, body: "12345"}},
		steps: []step{{origin: true}, {method: "HEAD", want: "Content-Length: 5 | Cache-Status: a; hit; ttl=60"}}},
	{section: "9110-9.3.2", name: "HEAD of nothing stored is passed on", local: true, origin: []scripted{{fields: minute, body: "12345"}},
		steps: []step{{method: "HEAD", origin: true, want: "Content-Length: 5"}, {origin: true, get: "12345"}}},

	{section: "9110-14.2", name: "part of a stored response", origin: []scripted{{fields: minute, body: "0123456789"}},
		steps: []step{{origin: true}, {origin: false, get: "0123456789"},
			{fields: "Range: bytes=2-4", status: 206, get: "234", want: "Content-Range: bytes 2-4/10 | Content-Length: 3"}}},
	ranges("open range", "bytes=7-", 206, "789", "bytes 7-9/10"),
	ranges("suffix", "bytes=-3", 206, "789", "bytes 7-9/10"),
	ranges("suffix longer than the body", "bytes=-30", 206, "0123456789", "bytes 0-9/10"),
	ranges("end past the body", "bytes=5-99", 206, "56789", "bytes 5-9/10"),
	ranges("other unit is ignored", "lines=1-2", 200, "0123456789", ""),
	ranges("broken range is ignored", "bytes=4-2", 200, "0123456789", ""),
	ranges("start past the body", "bytes=10-", 416, "", "bytes */10"),
	ranges("empty suffix", "bytes=-0", 416, "", "bytes */10"),
	ifRanges("If-Range with the strong tag", "\"a\"", 206),
	ifRanges("If-Range with another tag", "\"b\"", 200),
	ifRanges("If-Range with a weak tag", "W/\"a\"", 200),
	ifRanges("If-Range with the date", "DATE-100", 206),
	ifRanges("If-Range with another date", "DATE-50", 200),
	{section: "9110-14.2", name: "a range is passed on if the origin does not send the slice", local: true,
		origin: []scripted{{status: 206, fields: minute + " | Content-Range: bytes 2000002-2000004/100000000", body: "234"}},
		steps:  []step{{fields: "Range: bytes=2000002-2000004", origin: true, status: 206, get: "234", sent: "Range: bytes=2000002-2000004"}}},
	refusedRange("a range that cannot be satisfied", 416, "bytes=5000000-", "bytes=4194304-5242879"),
	refusedRange("a range that gets 404", 404, "bytes=5000000-", "bytes=4194304-5242879"),
	refusedRange("a suffix that gets an error", 500, "bytes=-5", "bytes=0-1048575"),
	refusedRange("several ranges that are redirected", 302, "bytes=0-0,2-2", "bytes=0-0,2-2"),
	{section: "9110-14.2", name: "a range in another unit fetches the whole", origin: []scripted{{fields: minute, body: "0123456789"}},
		steps: []step{{fields: "Range: items=1-2", origin: true, get: "0123456789", sent: "Range:"}, {get: "0123456789"}}},
	{section: "9110-14.2", name: "a range at the beginning of what is not stored fills the cache", origin: []scripted{{fields: minute + " | Content-Length: 10", body: "0123456789"}},
		steps: []step{{fields: "Range: bytes=2-4", origin: true, status: 206, get: "234", sent: "Range: bytes=0-1048575"}, {get: "0123456789"}}},
	{section: "9111-3.3", name: "a part that is all of the response fills the cache",
		origin: []scripted{{status: 206, fields: minute + " | Content-Range: bytes 0-9/10 | Content-Length: 10", body: "0123456789"}},
		steps:  []step{{fields: "Range: bytes=2-4", origin: true, status: 206, get: "234"}, {get: "0123456789"}}},
	{section: "9110-14.2", name: "Range on HEAD is ignored", local: true, origin: []scripted{{fields: minute, body: "0123456789"}},
		steps: []step{{origin: true}, {method: "HEAD", fields: "Range: bytes=2-4", want: "Content-Length: 10"}}},
}

// asks is a response of a given age and a request that must, or must not, reach the origin.
func asks(section, name, fields string, age int, request string, origin bool) row {
	return row{section: section, name: name, local: age >= 50, origin: []scripted{{fields: fields}},
		steps: []step{{origin: true}, {after: time.Duration(age) * time.Second, fields: request, origin: origin}}}
}

func ranges(name, rng string, status int, body, contentRange string) row {
	return row{section: "9110-14.2", name: name, local: true, origin: []scripted{{fields: minute, body: "0123456789"}},
		steps: []step{{origin: true}, {fields: "Range: " + rng, status: status, get: body, want: "Content-Range: " + contentRange}}}
}

// refusedRange is a range that the origin answers with an error, which says nothing to others.
func refusedRange(name string, status int, rng, sent string) row {
	return row{section: "9110-14.2", name: name, local: true, origin: []scripted{{status: status, fields: minute}, {fields: minute}},
		steps: []step{{fields: "Range: " + rng, origin: true, status: status, sent: "Range: " + sent}, {origin: true, get: "n=1"}, {get: "n=1"}}}
}

func ifRanges(name, value string, status int) row {
	return row{section: "9110-13.1.5", name: name, local: true,
		origin: []scripted{{fields: minute + " | ETag: \"a\" | Last-Modified: DATE-100", body: "0123456789"}},
		steps:  []step{{origin: true}, {fields: "Range: bytes=0-1 | If-Range: " + value, status: status}}}
}
