package proxy

import "time"

// Freshness and age: RFC 9111 sections 4.2, 5.1, 5.2.2 and 5.3, RFC 5861.
var freshness = []row{
	expires("max-age", "Cache-Control: max-age=60", 60),
	expires("max-age in capitals", "Cache-Control: MaX-aGe=60", 60),
	expires("quoted max-age", `Cache-Control: max-age="60"`, 60),
	expires("max-age among unknown directives", "Cache-Control: foo, bar=baz, max-age=60, quux=\"a, max-age=1\"", 60),
	expires("s-maxage over max-age", "Cache-Control: max-age=5, s-maxage=60", 60),
	expires("a shorter s-maxage over max-age", "Cache-Control: max-age=600, s-maxage=60", 60),
	expires("max-age over Expires", "Cache-Control: max-age=60 | Expires: DATE-100", 60),
	expires("Expires", "Expires: DATE+60", 60),
	expires("Expires less Date", "Date: DATE+0 | Expires: DATE+60", 60),
	expires("the first of two max-age", "Cache-Control: max-age=60, max-age=600", 60),
	expires("a tenth of the time since the last change", "Last-Modified: DATE-600", 60),
	expires("Age of an upstream cache counts", "Cache-Control: max-age=100 | Age: 40", 60),
	expires("an old Date counts as age", "Cache-Control: max-age=100 | Date: DATE-40", 60),
	expires("the larger of Age and apparent age counts", "Cache-Control: max-age=100 | Date: DATE-40 | Age: 10", 60),
	expires("an invalid Age is ignored", "Cache-Control: max-age=60 | Age: old", 60),
	expires("a negative Age is ignored", "Cache-Control: max-age=60 | Age: -50", 60),
	expires("the first of several Ages counts", "Cache-Control: max-age=100 | Age: 40, 90", 60),
	expires("a Date in the future gives no age", "Cache-Control: max-age=60 | Date: DATE+3600", 60),

	notReused("9111-4.2.1", "max-age=0", "Cache-Control: max-age=0 | ETag: \"a\""),
	notReused("9111-4.2.1", "an invalid max-age is stale", "Cache-Control: max-age=abc | ETag: \"a\" | Last-Modified: DATE-3600"),
	notReused("9111-4.2.1", "a max-age with a fraction is stale", "Cache-Control: max-age=60.5 | ETag: \"a\""),
	notReused("9111-4.2.1", "a negative max-age is stale", "Cache-Control: max-age=-60 | ETag: \"a\""),
	notReused("9111-4.2.1", "a single quote is no quote", "Cache-Control: max-age='60' | ETag: \"a\""),
	reused("9111-1.2.2", "an enormous max-age", "Cache-Control: max-age=99999999999999999999"),
	notReused("9111-5.3", "Expires: 0", "Expires: 0 | ETag: \"a\" | Last-Modified: DATE-3600"),
	notReused("9111-5.3", "an Expires that is no date", "Expires: tomorrow | ETag: \"a\" | Last-Modified: DATE-3600"),
	notReused("9111-5.3", "an Expires in the past", "Expires: DATE-10 | ETag: \"a\" | Last-Modified: DATE-3600"),
	notReused("9111-5.3", "an Expires equal to Date", "Date: DATE+0 | Expires: DATE+0 | ETag: \"a\""),
	notReused("9111-4.2.3", "older than its lifetime on arrival", "Cache-Control: max-age=60 | Age: 61 | ETag: \"a\""),
	reused("9110-5.6.7", "Expires in RFC 850 form", "Expires: Sunday, 06-Nov-44 08:49:37 GMT"),
	reused("9110-5.6.7", "Expires in asctime form", "Expires: Sun Nov  6 08:49:37 2044"),

	{section: "9111-5.1", name: "Age of a stored response", origin: []scripted{{fields: "Cache-Control: max-age=60"}},
		steps: []step{{origin: true, want: "Age: 0"}, {after: 10 * time.Second, want: "Age: 10"}, {after: 20 * time.Second, want: "Age: 30"}}},
	{section: "9111-5.1", name: "Age adds to what came", origin: []scripted{{fields: "Cache-Control: max-age=600 | Age: 100"}},
		steps: []step{{origin: true, want: "Age: 100"}, {after: 10 * time.Second, want: "Age: 110"}}},
	{section: "9111-4.2.3", name: "the origin's delay counts as age", origin: []scripted{{fields: "Cache-Control: max-age=60", delay: 7 * time.Second}},
		steps: []step{{origin: true, want: "Age: 7"}, {after: time.Second, want: "Age: 8"}}},
	{section: "9110-6.6.1", name: "a missing Date is added", local: true, origin: []scripted{{fields: "Cache-Control: max-age=60 | Date: nonsense"}},
		steps: []step{{origin: true, want: "Date: Sat, 01 Jan 2000 00:00:00 GMT"}, {after: 5 * time.Second, want: "Date: Sat, 01 Jan 2000 00:00:00 GMT"}}},

	{section: "9111-4.2.4", name: "stale without permission is not served", local: true, origin: []scripted{{fields: "Cache-Control: max-age=10"}},
		steps: []step{{origin: true}, {after: 11 * time.Second, origin: true, get: "n=1"}}},
	disconnected("stale is served when the origin is gone", "Cache-Control: max-age=10 | ETag: \"a\"", 200),
	disconnected("not with must-revalidate", "Cache-Control: max-age=10, must-revalidate | ETag: \"a\"", 502),
	disconnected("not with proxy-revalidate", "Cache-Control: max-age=10, proxy-revalidate | ETag: \"a\"", 502),
	disconnected("not with s-maxage", "Cache-Control: s-maxage=10 | ETag: \"a\"", 502),
	disconnected("not with no-cache", "Cache-Control: no-cache | ETag: \"a\"", 502),
	disconnected("not past stale-if-error", "Cache-Control: max-age=10, stale-if-error=1 | ETag: \"a\"", 502),
	disconnected("within stale-if-error", "Cache-Control: max-age=10, stale-if-error=60 | ETag: \"a\"", 200),

	{section: "5861-4", name: "stale-if-error stands in for 503", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10, stale-if-error=60 | ETag: \"a\""}, {status: 503}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=0", want: "Cache-Status: a; hit; ttl=-10; detail=stale-if-error"}}},
	{section: "5861-4", name: "stale-if-error ends", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10, stale-if-error=5 | ETag: \"a\""}, {status: 503}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, status: 503}}},
	{section: "5861-4", name: "without it a 503 passes", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10 | ETag: \"a\""}, {status: 503}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, status: 503}}},
	{section: "5861-4", name: "a 404 is no failure", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10, stale-if-error=60 | ETag: \"a\""}, {status: 404}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, status: 404}}},
	{section: "5861-3", name: "stale-while-revalidate serves at once and validates meanwhile", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10, stale-while-revalidate=60 | ETag: \"a\""},
			{status: 304, fields: "Cache-Control: max-age=10, stale-while-revalidate=60 | ETag: \"a\"", delay: time.Second}},
		steps: []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=0", want: "Age: 20", sent: "If-None-Match: \"a\""},
			{after: 2 * time.Second, get: "n=0", want: "Age: 2"}}},
	{section: "5861-3", name: "stale-while-revalidate ends", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10, stale-while-revalidate=5"}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=1"}}},
	{section: "5861-3", name: "must-revalidate is stronger", local: true,
		origin: []scripted{{fields: "Cache-Control: max-age=10, must-revalidate, stale-while-revalidate=60"}},
		steps:  []step{{origin: true}, {after: 20 * time.Second, origin: true, get: "n=1"}}},
}

// expires is a response that is fresh for so many seconds: reused just before,
// not just after.
func expires(name, fields string, seconds int) row {
	life := time.Duration(seconds) * time.Second
	return row{section: "9111-4.2", name: name, origin: []scripted{{fields: fields}},
		steps: []step{{origin: true, get: "n=0"}, {after: life - 2*time.Second, get: "n=0"}, {after: 2 * time.Second, origin: true, get: "n=1"}}}
}

// disconnected is a stale response whose origin closes the connection.
func disconnected(name, fields string, status int) row {
	return row{section: "9111-4.2.4", name: name, local: true, origin: []scripted{{fields: fields}, {status: -1}},
		steps: []step{{origin: true}, {after: 20 * time.Second, origin: true, status: status}}}
}
