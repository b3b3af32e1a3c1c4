package rfc9111

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// header reads fields "Name: value" separated by " | ".
func header(s string) http.Header {
	h := http.Header{}
	for f := range strings.SplitSeq(s, " | ") {
		if name, value, ok := strings.Cut(f, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

// What Connection names goes with it, except for what caches obey and what says what the message is.
func TestRemoveHopByHop(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"not named":          {"Keep-Alive: 1 | Te: a | Trailer: a | Upgrade: a | Transfer-Encoding: a | Proxy-Connection: a | Proxy-Authenticate: a | X-A: 1", "X-A: 1"},
		"named":              {"Connection: x-a, X-C | Connection: close,X-D | X-A: 1 | X-B: 2 | X-C: 3 | X-D: 4", "X-B: 2"},
		"what caches obey":   {"Connection: cache-control, cdn-cache-control, Summarycache-Cache-Control, pragma, expires, vary, age, date, etag, last-modified, set-cookie | Cache-Control: a | Cdn-Cache-Control: a | Summarycache-Cache-Control: a | Pragma: a | Expires: a | Vary: a | Age: 1 | Date: a | Etag: a | Last-Modified: a | Set-Cookie: a", "Cache-Control: a | Cdn-Cache-Control: a | Summarycache-Cache-Control: a | Pragma: a | Expires: a | Vary: a | Age: 1 | Date: a | Etag: a | Last-Modified: a | Set-Cookie: a"},
		"what caches obeyed": {"Connection: surrogate-control, edge-control, x-accel-expires | Surrogate-Control: a | Edge-Control: a | X-Accel-Expires: 0", "Surrogate-Control: a | Edge-Control: a | X-Accel-Expires: 0"},
		"tags and loops":     {"Connection: surrogate-key, cache-tag, xkey, via | Surrogate-Key: a | Cache-Tag: a | Xkey: a | Via: 1.1 a", "Surrogate-Key: a | Cache-Tag: a | Xkey: a | Via: 1.1 a"},
		"what it is":         {"Connection: content-length, Content-Type, content-encoding, content-range | Content-Length: 1 | Content-Type: a | Content-Encoding: a | Content-Range: a", "Content-Length: 1 | Content-Type: a | Content-Encoding: a | Content-Range: a"},
		"no more than these": {"Connection: Cache-Controls, Contents, Cache | Cache-Controls: a | Contents: a | Cache: a", ""},
	} {
		h := header(tt.in)
		if RemoveHopByHop(h); !reflect.DeepEqual(h, header(tt.want)) {
			t.Errorf("%s: RemoveHopByHop(%s) = %v, want %s", name, tt.in, h, tt.want)
		}
	}
}

// What is no directive restricts all the same: origins write ; for a comma, or leave a quote open, and mean it.
func TestDirectivesThatAreNone(t *testing.T) {
	for value, want := range map[string]string{
		"private; max-age=600":             "private",
		"max-age=600; private":             "private",
		"no-cache; no-store":               "no-store no-cache",
		"no-store;":                        "no-store",
		"Max-Age=600, NO-STORE private":    "no-store private",
		": no-store":                       "no-store",
		"no-store: 1":                      "no-store",
		`"no-store", max-age=600`:          "no-store",
		`max-age="600, no-store`:           "no-store",
		`max-age=600, x="a, private`:       "private",
		`max-age=600,no-store="`:           "no-store",
		"max-age=600, private = x":         "private",
		`max-age=600, no-store\`:           "no-store",
		"max-age=600, 'no-store'":          "no-store",
		"#private, max-age=600":            "private",
		"max-age=600, x_private":           "",
		"max-age=600; public":              "",
		`max-age=600, x="no-store"`:        "", // these are directives of other names
		"max-age=600, x=private":           "",
		"max-age=600, x-no-store":          "",
		`max-age=600, x="a\", private`:     "private",
		`max-age=600, x="a, private"`:      "",
		`no-cache="no-store", max-age=600`: "",
	} {
		d, got := parseDirectives([]string{value}), []string{}
		for word, is := range map[string]bool{"no-store": d.NoStore, "private": d.Private, "no-cache": d.NoCache} {
			if is {
				got = append(got, word)
			}
		}
		slices.Sort(got)
		wanted := strings.Fields(want)
		if slices.Sort(wanted); !slices.Equal(got, wanted) {
			t.Errorf("parseDirectives(%s) says %q, want %q", value, got, wanted)
		}
	}
}

// The rows of CONFORMANCE.md test whole caches; this tests the methods of Response at their bounds.
func TestReuse(t *testing.T) {
	for name, tt := range map[string]struct {
		response, request string
		age               time.Duration
		use               Use
		reason            string
	}{
		"fresh to the end":           {"Cache-Control: max-age=60", "", 60*time.Second - 1, ServeFresh, ""},
		"stale from then on":         {"Cache-Control: max-age=60", "", 60 * time.Second, Validate, "stale"},
		"as stale as is allowed":     {"Cache-Control: max-age=60", "Cache-Control: max-stale=5", 65 * time.Second, ServeStale, ""},
		"no staler":                  {"Cache-Control: max-age=60", "Cache-Control: max-stale=5", 65*time.Second + 1, Validate, "stale"},
		"any staleness":              {"Cache-Control: max-age=60", "Cache-Control: max-stale", ageUnknown, ServeStale, ""},
		"an unknown age is stale":    {"Cache-Control: max-age=99999999999", "", ageUnknown, Validate, "stale"},
		"young enough":               {"Cache-Control: max-age=60", "Cache-Control: max-age=9", 9 * time.Second, ServeFresh, ""},
		"too old for the client":     {"Cache-Control: max-age=60", "Cache-Control: max-age=9", 9*time.Second + 1, Validate, "request"},
		"to be validated each time":  {"Cache-Control: no-cache, max-age=60", "", 0, Validate, "stale"},
		"while it is validated":      {"Cache-Control: max-age=60, stale-while-revalidate=5", "", 65*time.Second - 1, StaleWhileRevalidate, ""},
		"no longer":                  {"Cache-Control: max-age=60, stale-while-revalidate=5", "", 65 * time.Second, Validate, "stale"},
		"not for who wants it fresh": {"Cache-Control: max-age=60, stale-while-revalidate=5", "Cache-Control: max-age=60", 61 * time.Second, Validate, "request"},
	} {
		cc := RequestDirectives(header(tt.request))
		r := NewResponse(200, header(tt.response), 0, noon)
		if use, reason := r.Reuse(&cc, tt.age); use != tt.use || reason != tt.reason {
			t.Errorf("%s: Reuse(%s, %v) = %v, %q, want %v, %q", name, tt.request, tt.age, use, reason, tt.use, tt.reason)
		}
	}
}

func TestStaleOnError(t *testing.T) {
	for name, tt := range map[string]struct {
		response, request string
		status            int
		stale             time.Duration
		want              bool
	}{
		"unreachable for an hour":      {"max-age=60", "", 0, time.Hour, true},
		"for longer":                   {"max-age=60", "", 0, time.Hour + 1, false},
		"an error is no disconnection": {"max-age=60", "", 503, 0, false},
		"unless allowed":               {"max-age=60, stale-if-error=5", "", 503, 5 * time.Second, true},
		"for so long":                  {"max-age=60, stale-if-error=5", "", 503, 5*time.Second + 1, false},
		"no failure":                   {"max-age=60, stale-if-error=5", "", 404, 0, false},
		"the client allows it":         {"max-age=60", "Cache-Control: stale-if-error=5", 500, 5 * time.Second, true},
		"s-maxage forbids it":          {"s-maxage=60", "Cache-Control: stale-if-error=5", 500, 0, false},
		"must-revalidate":              {"max-age=60, must-revalidate, stale-if-error=5", "", 0, 0, false},
		"the client wants no cache":    {"max-age=60, stale-if-error=5", "Cache-Control: no-cache", 0, 0, false},
	} {
		cc := RequestDirectives(header(tt.request))
		r := NewResponse(200, header("Cache-Control: "+tt.response), 0, noon)
		if got := r.StaleOnError(&cc, tt.status, time.Minute+tt.stale); got != tt.want {
			t.Errorf("%s: StaleOnError(%s, %d) after %v = %v", name, tt.request, tt.status, tt.stale, got)
		}
	}
}

// NewResponse reads each kind of field.
func TestNewResponse(t *testing.T) {
	h := header("Date: Thu, 01 Jan 2026 11:59:50 GMT | Age: 3 | Last-Modified: Thu, 01 Jan 2026 11:43:10 GMT | Etag: \"e\"")
	r := NewResponse(200, h, 2*time.Second, noon)
	if r.InitialAge != 10*time.Second || r.Lifetime != 100*time.Second || r.Explicit || r.ETag != `"e"` ||
		!r.LastModified.Equal(noon.Add(-1010*time.Second)) || r.StrongValidator() != `"e"` || !r.Useful() {
		t.Errorf("%+v", r)
	}
	if a, b, c := r.Age(time.Second), r.Age(-1), r.Age(ageUnknown); a != 11*time.Second || b != ageUnknown || c != ageUnknown {
		t.Errorf("ages %v, %v, %v", a, b, c)
	}
	fresh := r.Freshened(header("Age: 7 | Cache-Control: max-age=5 | Content-Length: 9"), time.Second, noon.Add(time.Minute))
	if fresh.InitialAge != 8*time.Second || fresh.Lifetime != 5*time.Second || !fresh.Explicit || fresh.Header.Get("Content-Length") != "" ||
		fresh.ETag != `"e"` || r.Header.Get("Cache-Control") != "" {
		t.Errorf("freshened: %+v", fresh)
	}
}

// A private or no-store that a 304 brings anew counts, unless the 304 itself has a targeted field.
func TestFreshenedPrivately(t *testing.T) {
	for _, c := range []struct {
		stored, of string
		storable   bool
	}{
		{"Cache-Control: max-age=5", "Cache-Control: max-age=6", true},
		{"Cache-Control: max-age=5", "Cache-Control: private", false},
		{"Cdn-Cache-Control: max-age=5", "", true},
		{"Cdn-Cache-Control: max-age=5", "Cache-Control: private", false},
		{"Cdn-Cache-Control: max-age=5", "Cache-Control: no-store", false},
		{"Cdn-Cache-Control: max-age=5 | Cache-Control: private", "Cache-Control: private", true},
		{"Cdn-Cache-Control: max-age=5 | Cache-Control: no-store", "Cache-Control: no-store", true},
		{"Cdn-Cache-Control: max-age=5", "Cache-Control: private | Cdn-Cache-Control: max-age=6", true},
		{"Cdn-Cache-Control: max-age=5", "Cdn-Cache-Control: private", false},
	} {
		fresh := NewResponse(200, header(c.stored), 0, noon).Freshened(header(c.of), 0, noon)
		if got := fresh.Storable(nil, false); got != c.storable {
			t.Errorf("%q after a 304 with %q: Storable = %v", c.stored, c.of, got)
		}
	}
}

func TestRangeStart(t *testing.T) {
	for lines, want := range map[string]int64{
		"Range: bytes=0-": 0, "Range: bytes=7-9": 7, "Range: Bytes = 7-9": 7, "Range: bytes=-5": -1,
		"Range: bytes=-": -2, "Range: bytes=5": -2, "Range: bytes=x-9": -2, "Range: bytes=5-9,11-": -2, "Range: lines=5-9": -2,
		"Range: bytes=+5-9": -2, "Range: bytes=5-9 | Range: bytes=5-9": -2, "X: y": -2,
	} {
		got, ok := RangeStart(header(lines))
		if ok != (want != -2) || ok && got != want {
			t.Errorf("RangeStart(%s) = %d, %v", lines, got, ok)
		}
	}
}

func TestHasRest(t *testing.T) {
	r := NewResponse(200, header(`Etag: "e" | Content-Encoding: gzip`), 0, noon)
	for fields, want := range map[string]bool{
		`Content-Range: bytes 4-9/10 | Etag: "e"`:                          true,
		`Content-Range: bytes 4-9/10 | Etag: "e" | Content-Encoding: gzip`: true,
		`Content-Range: bytes 4-9/10 | Etag: "e" | Content-Encoding: br`:   false,
		`Content-Range: bytes 4-9/10 | Etag: "f"`:                          false,
		`Content-Range: bytes 4-9/10`:                                      false,
		`Content-Range: bytes 3-9/10 | Etag: "e"`:                          false,
		`Content-Range: bytes 4-8/10 | Etag: "e"`:                          false,
		`Content-Range: bytes 4-10/11 | Etag: "e"`:                         false,
		`Content-Range: bytes 4-9/* | Etag: "e"`:                           false,
		`Etag: "e"`:                                                        false,
	} {
		if got := r.HasRest(header(fields), 4, -1, 10); got != want {
			t.Errorf("HasRest(%s) = %v", fields, got)
		}
	}
	middle := NewResponse(206, header(`Etag: "e" | Content-Range: bytes 2-7/10`), 0, noon)
	for fields, want := range map[string]bool{
		"bytes 4-7/10":                 true,
		"bytes 4-9/10":                 false,
		"bytes 4-7/11":                 false,
		"bytes 4-9223372036854775807/": false,
	} {
		if got := middle.HasRest(header(`Etag: "e" | Content-Range: `+fields), 4, 8, 10); got != want {
			t.Errorf("HasRest(%s) of a part = %v", fields, got)
		}
	}
	if !middle.HasRest(header(`Etag: "e" | Content-Range: bytes 4-7/*`), 4, 8, 10) || middle.HasRest(header(`Etag: "e" | Content-Range: bytes 4-11/*`), 4, 12, 10) {
		t.Error("a part of what says no size")
	}
	if middle.HasRest(header(`Etag: "e" | Content-Range: bytes 4-11/10`), 4, 12, 10) {
		t.Error("a part beyond the end")
	}
	const date, part = "Last-Modified: Sat, 21 Nov 2026 12:00:00 GMT", "Content-Range: bytes 4-9/10"
	for _, tt := range []struct {
		whole, part string
		want        bool
	}{
		{`Etag: "e"`, `Etag: "e" | ` + date, true}, // only the part tells the date
		{`Etag: "e" | ` + date, `Etag: "e"`, true},
		{`Etag: "e" | ` + date, `Etag: "e" | ` + date, true},
		{`Etag: "e" | ` + date, `Etag: "e" | Last-Modified: Sat, 21 Nov 2026 12:00:01 GMT`, false},
	} {
		whole := NewResponse(200, header(tt.whole), 0, noon)
		if got := whole.HasRest(header(part+" | "+tt.part), 4, 10, 10); got != tt.want {
			t.Errorf("%s has rest %s = %v", tt.whole, tt.part, got)
		}
		if got := whole.SameBytes(NewResponse(200, header(tt.part), 0, noon)); got != tt.want {
			t.Errorf("%s same bytes %s = %v", tt.whole, tt.part, got)
		}
	}
	weak := NewResponse(200, header(`Etag: W/"e"`), 0, noon)
	if weak.HasRest(header(`Content-Range: bytes 4-9/10 | Etag: W/"e"`), 4, 10, 10) {
		t.Error("a weak tag joins two parts")
	}
}

func TestInvalidated(t *testing.T) {
	target, _ := url.Parse("http://O.test/a/b")
	for _, tt := range []struct {
		method string
		status int
		fields string
		want   []string
	}{
		{"GET", 200, "Location: /x", nil},
		{"MOVE", 201, "Destination: http://o.test/c", []string{"http://o.test/a/b", "http://o.test/c"}},
		{"COPY", 204, "Destination: /c", []string{"http://o.test/a/b", "http://o.test/c"}},
		{"COPY", 412, "Destination: /c", nil},
		{"MOVE", 201, "Destination: http://other.test/c", []string{"http://o.test/a/b"}},
		{"POST", 404, "Location: /x", nil},
		{"PUT", 204, "", []string{"http://o.test/a/b"}},
		{"POST", 201, "Location: c | Content-Location: http://other.test/d", []string{"http://o.test/a/b", "http://o.test/a/c"}},
		{"POST", 201, "Location: https://o.test/a/c", []string{"http://o.test/a/b"}},
	} {
		r := &http.Request{Method: tt.method, Header: header(tt.fields)} // Destination is the request's, the others the answer's
		if got := Invalidated(r, target, tt.status, r.Header); !slices.Equal(got, tt.want) {
			t.Errorf("Invalidated(%s, %d, %s) = %q, want %q", tt.method, tt.status, tt.fields, got, tt.want)
		}
	}
}

// LastStatus reads what Status writes, whatever the name of the cache.
func TestStatus(t *testing.T) {
	for _, s := range []Status{
		{Cache: "a", Hit: true, HasTTL: true, TTL: -2 * time.Second, Detail: "stale-if-error"},
		{Cache: "1a", Hit: true},
		{Cache: `a "b" \`, Fwd: "uri-miss", FwdStatus: 200, Stored: true, Collapsed: true},
	} {
		h := header("Cache-Status: cdn; hit")
		s.Add(h)
		if got, ok := LastStatus(h); !ok || got != s {
			t.Errorf("%q is read as %+v, want %+v", h["Cache-Status"], got, s)
		}
	}
	for _, bad := range []string{"", "1a; hit", "a; hit, (b)"} {
		if got, ok := LastStatus(http.Header{"Cache-Status": {bad}}); ok {
			t.Errorf("LastStatus(%q) = %+v", bad, got)
		}
	}
}

func TestVia(t *testing.T) {
	if got := Via(header("Via: 1.1 a, HTTP/1.0 b (squid/6) | Via: 1.1\tc, broken")); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("Via = %q", got)
	}
}

func TestObstacle(t *testing.T) {
	for name, tt := range map[string]struct {
		status            int
		response, request string
		want              Obstacle
	}{
		"nothing":                            {200, "Cache-Control: max-age=60", "", 0},
		"a validator is enough":              {200, `Etag: "a"`, "", 0},
		"or Last-Modified":                   {200, "Last-Modified: Thu, 01 Jan 2026 12:00:00 GMT", "", 0},
		"no lifetime, no validator":          {200, "Content-Type: text/html", "", LifetimeObstacle},
		"no time left, no validator":         {200, "Cache-Control: max-age=0", "", ExpiredObstacle},
		"arrived with no time left":          {200, "Cache-Control: max-age=60 | Age: 60", "", ExpiredObstacle},
		"stale at once, while it is fetched": {200, "Cache-Control: max-age=0, stale-while-revalidate=60", "", 0},
		"stale at once, if the origin fails": {200, "Cache-Control: s-maxage=0, stale-if-error=60", "", 0},
		"arrived stale, but not for long":    {200, "Cache-Control: max-age=60, stale-while-revalidate=60 | Age: 90", "", 0},
		"arrived stale for too long":         {200, "Cache-Control: max-age=60, stale-while-revalidate=30 | Age: 90", "", ExpiredObstacle},
		"never stale":                        {200, "Cache-Control: max-age=0, must-revalidate, stale-if-error=60", "", ExpiredObstacle},
		"never without asking":               {200, "Cache-Control: no-cache, max-age=0, stale-while-revalidate=60", "", ExpiredObstacle},
		"stale, but no lifetime":             {200, "Cache-Control: stale-while-revalidate=60", "", LifetimeObstacle},
		"an error":                           {500, `Etag: "a"`, "", StatusObstacle},
		"a part":                             {206, "Cache-Control: max-age=60", "", StatusObstacle},
		"an error with a lifetime":           {500, "Cache-Control: max-age=60", "", 0},
		"no-store":                           {200, "Cache-Control: no-store, max-age=60", "", NoStoreObstacle},
		"no-store with a cookie":             {200, "Cache-Control: no-store | Set-Cookie: a=b", "", NoStoreObstacle},
		"the request's no-store":             {200, "Cache-Control: max-age=60", "Cache-Control: no-store", RequestObstacle},
		"private":                            {200, "Cache-Control: private, max-age=60", "", PrivateObstacle},
		"Authorization":                      {200, "Cache-Control: max-age=60", "Authorization: Basic", AuthorizationObstacle},
		"Authorization and public":           {200, "Cache-Control: public, max-age=60", "Authorization: Basic", 0},
		"varies by everything":               {200, "Cache-Control: max-age=60 | Vary: *", "", VaryObstacle},
		"a cookie":                           {200, `Etag: "a" | Set-Cookie: a=b`, "", CookieObstacle},
		"a cookie refused by a rule":         {200, "Cache-Control: max-age=60 | Set-Cookie: a=b | Summarycache-Cache-Control: no-store", "", CookieObstacle},
		"a cookie for all, by the word":      {200, "Cache-Control: max-age=60 | Set-Cookie: a=b", "", 0},
	} {
		q := header(tt.request)
		cc := RequestDirectives(q)
		r := NewResponse(tt.status, header(tt.response), 0, noon)
		got := r.Obstacle(&cc, q["Authorization"] != nil)
		if got != tt.want {
			t.Errorf("%s: Obstacle(%d %s, %s) = %q, want %q", name, tt.status, tt.response, tt.request, got, tt.want)
		}
		if storable := r.Storable(&cc, q["Authorization"] != nil); (got == 0) != (storable && r.Useful()) {
			t.Errorf("%s: Obstacle %q, but Storable %v and Useful %v", name, got, storable, r.Useful())
		}
	}
}

// Many small parts are not longer than the body.
func TestManyParts(t *testing.T) {
	for _, tt := range []struct{ parts, size, want int }{{2, 10, 2}, {16, 100, 16}, {17, 100, 0}, {17, 17 * perRange, 17}, {256, 1 << 20, 256}, {257, 1 << 20, 0}} {
		ranges := "bytes=0-0"
		for i := 1; i < tt.parts; i++ {
			ranges += fmt.Sprintf(",%d-%d", i, i)
		}
		r := NewResponse(200, header(""), 0, noon)
		got := r.PartsFor(&http.Request{Method: "GET", Header: http.Header{"Range": {ranges}}}, int64(tt.size))
		if len(got) != tt.want {
			t.Errorf("%d parts of %d bytes: %d, want %d", tt.parts, tt.size, len(got), tt.want)
		}
	}
}
