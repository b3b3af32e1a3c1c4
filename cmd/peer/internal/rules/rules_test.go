package rules

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

func is[T any](v T) *T { return &v }

func request(t *testing.T, url string, fields ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequest("GET", url, nil)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// The rules change requests as the configuration says.
func TestRequest(t *testing.T) {
	set := Set{
		{Name: "1", Paths: []string{"/raw/*"}, QueryDrop: []string{}, QuerySort: is(false), Bypass: is(false)},
		{Name: "2", Cookies: []string{"session", "wp_*"}, Bypass: is(true)},
		{Name: "3", Headers: []string{"X-Preview"}, Bypass: is(true)},
		{Name: "4", Sites: []string{"other.test"}, QueryKeep: []string{"q"}},
		{Name: "5", QueryDrop: []string{"utm_*", "fb clid"}, QuerySort: is(true), CookiesKeep: []string{"lang"}, IgnoreNoCache: is(true)},
		{Name: "6", Statuses: []Range{{404, 404}}, TTL: is(time.Minute)},
		{Name: "7", Sites: []string{"a.test"}, Paths: []string{"/account*"}, QuerySort: is(false), Bypass: is(true)},
	}
	for _, c := range []struct {
		url    string
		fields []string
		want   string
	}{
		{"http://a.test/x?b=2&utm_source=x&a=1&fb+clid=1&a=0", nil, "a=1&a=0&b=2 query/5"},
		{"http://a.test/x?utm_source=x", nil, " query/5"},
		{"http://a.test/raw/x?b=2&utm_source=x", nil, "b=2&utm_source=x"},
		{"http://other.test/x?b=2&q=1&q", nil, "q=1&q query/4 query/5"},
		{"http://a.test/x", []string{"Cookie: session=1; lang=de"}, " cookie=lang=de bypass cookies-keep/5 bypass/2"},
		{"http://a.test/raw/x", []string{"Cookie: session=1"}, " cookies-keep/5"},
		{"http://a.test/x", []string{"x-preview: 1"}, " bypass bypass/3"},
		{"http://a.test/x", []string{"Cache-Control: no-cache, max-age=0, max-stale=9", "Pragma: no-cache"}, " cc=max-stale=9 ignore-no-cache/5"},
		{"http://a.test/x", []string{"Cookie: a=b"}, " cookies-keep/5"},
		{"http://a.test/account/", nil, " bypass bypass/7"},
		{"http://a.test/static/..%2faccount?b=2&a=1", nil, "a=1&b=2 bypass query/5 bypass/7"},
		{"http://a.test/raw//x?b=2&utm_source=x", nil, "b=2 bypass query/5 bypass/7"},
		{"http://other.test/any%2Fthing?q", nil, "q"},
	} {
		r := request(t, c.url, c.fields...)
		before := fmt.Sprint(r.URL, r.Header)
		var said []string
		out, e := set.Request(r, netip.Addr{}, false, func(d Decision) {
			what, _, _ := strings.Cut(d.What, " ")
			said = append(said, what+"/"+d.Rule)
		})
		got := out.URL.RawQuery
		if v := out.Header.Get("Cookie"); v != "" {
			got += " cookie=" + v
		}
		if v := out.Header.Get("Cache-Control"); v != "" {
			got += " cc=" + v
		}
		if e.Bypass {
			got += " bypass"
		}
		if got = strings.Join(append([]string{got}, said...), " "); got != c.want {
			t.Errorf("Request(%s, %q) = %q, want %q", c.url, c.fields, got, c.want)
		}
		if after := fmt.Sprint(r.URL, r.Header); after != before {
			t.Errorf("the request was changed: %s, %s", before, after)
		}
		if again, _ := set.Request(out, netip.Addr{}, true, nil); again.URL.RawQuery != out.URL.RawQuery {
			t.Errorf("%s: a sibling has another key", c.url)
		}
	}
}

// Clients with the same preferred coding, among those that the origin has, share one key.
func TestEncodings(t *testing.T) {
	set := Set{{Name: "1", Encodings: []string{"zstd", "gzip"}}}
	for accept, want := range map[string]string{
		"gzip": "gzip", "deflate, gzip": "gzip", "gzip, deflate, br": "gzip", "X-GZip": "gzip", "*": "zstd", "br;q=1, *;q=0.1": "zstd",
		"gzip, deflate, br, zstd": "zstd", "zstd;q=0, gzip;q=0.5": "gzip", "zstd; q=0.000, *": "gzip", "gzip;q=0": "identity", "br": "identity", "": "identity", "*;q=0": "identity",
	} {
		out, _ := set.Request(request(t, "http://a.test/x", "Accept-Encoding: "+accept), netip.Addr{}, false, nil)
		if got := out.Header.Get("Accept-Encoding"); got != want {
			t.Errorf("%q becomes %q, want %q", accept, got, want)
		}
	}
	out, _ := set.Request(request(t, "http://a.test/x"), netip.Addr{}, true, nil)
	if got := out.Header.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("none becomes %q", got)
	}
}

// Codings of compress come after those of encodings, and are not used for clients that want the
// origin's bytes.
func TestCompress(t *testing.T) {
	set := Set{
		{Name: "1", Paths: []string{"/off/*"}, Compress: []string{}},
		{Name: "2", Paths: []string{"/br/*"}, Encodings: []string{"br"}},
		{Name: "3", Compress: []string{"zstd", "gzip"}},
	}
	for _, c := range []struct{ path, accept, field, want, coding string }{
		{"/x", "gzip, br", "", "gzip", "gzip"},
		{"/x", "deflate, br", "", "identity", "identity"},
		{"/x", "gzip, zstd", "", "zstd", "zstd"},
		{"/x", "gzip", "Range: bytes=0-", "identity", "identity"},
		{"/x", "gzip", "Cache-Control: max-age=5, no-transform", "identity", "identity"},
		{"/br/x", "gzip, br", "", "br", "identity"},
		{"/br/x", "gzip, br", "Range: bytes=0-", "br", "identity"},
		{"/br/x", "gzip", "", "gzip", "gzip"},
		{"/off/x", "gzip, br", "", "gzip, br", ""},
	} {
		r := request(t, "http://a.test"+c.path, "Accept-Encoding: "+c.accept)
		if name, value, ok := strings.Cut(c.field, ": "); ok {
			r.Header.Set(name, value)
		}
		out, _ := set.Request(r, netip.Addr{}, false, nil)
		if got, coding := out.Header.Get("Accept-Encoding"), set.Coding(out); got != c.want || coding != c.coding {
			t.Errorf("%+v: requested %q, compressed by %q", c, got, coding)
		}
		if again, _ := set.Request(out, netip.Addr{}, true, nil); again.Header.Get("Accept-Encoding") != c.want {
			t.Errorf("%+v: a sibling has another key", c)
		}
		out.Method = "POST"
		if coding := set.Coding(out); coding != "" {
			t.Errorf("%+v: the answer to a POST is put into %q", c, coding)
		}
	}
	set.Request(&http.Request{Method: "GET", URL: request(t, "http://a.test/x").URL}, netip.Addr{}, true, nil) // of a purge, which has no header
}

// The decision of the rules determines for how long caches that read it consider a response fresh.
func TestResponse(t *testing.T) {
	minute, hour, day := time.Minute, time.Hour, 24*time.Hour
	set := Set{
		{Name: "1", Types: []string{"image/*"}, TTL: &hour, MinTTL: &minute, SetCookie: Drop},
		{Name: "2", Paths: []string{"/api/*"}, MaxTTL: &minute},
		{Name: "3", Statuses: []Range{{404, 404}, {500, 599}}, TTL: is(10 * time.Second)},
		{Name: "4", Paths: []string{"/login"}, SetCookie: Store},
		{Name: "5", Paths: []string{"/static/*"}, TTL: &hour, MinTTL: &minute},
		{Name: "default-ttl", TTL: &minute},
	}
	now := time.Unix(1e9, 0)
	modified := "Last-Modified: " + now.Add(-10*day).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		path, request string
		status        int
		fields        []string
		life          time.Duration // that is left; -1 = it is not kept
		rule          string
	}{
		{"/", "", 200, nil, minute, "default-ttl"},
		{"/", "", 200, []string{"Age: 30"}, minute, "default-ttl"},
		{"/", "", 200, []string{modified}, minute, "default-ttl"},
		{"/", "Cookie: a=b", 200, nil, 0, ""},
		{"/", "Cookie: a=b", 200, []string{modified}, day, ""},
		{"/", "", 200, []string{"Cache-Control: max-age=5"}, 5 * time.Second, ""},
		{"/", "", 200, []string{"Expires: 0"}, 0, ""},
		{"/", "", 200, []string{"Cache-Control: no-store"}, -1, ""},
		{"/", "", 200, []string{"Cache-Control: private"}, -1, ""},
		{"/", "", 200, []string{"Cache-Control: no-cache"}, 0, ""},
		{"/", "", 302, nil, -1, ""},
		{"/", "", 404, nil, 10 * time.Second, "3"},
		{"/", "", 503, nil, 10 * time.Second, "3"},
		{"/", "", 200, []string{"Content-Type: image/png"}, hour, "1"},
		{"/", "", 200, []string{"Content-Type: Image/PNG; q=1"}, hour, "1"},
		{"/", "Cookie: a=b", 200, []string{"Content-Type: image/png"}, 0, ""},
		{"/", "Cookie: a=b", 200, []string{"Content-Type: image/png", "Cache-Control: max-age=5"}, minute, "1"},
		{"/", "Cookie: a=b", 200, []string{"Content-Type: image/png", "Expires: 0"}, 0, ""},
		{"/static/a", "", 200, nil, hour, "5"},
		{"/static/..%2flogin", "", 200, nil, minute, "default-ttl"},
		{"/static/a;b", "", 200, []string{"Cache-Control: max-age=5"}, 5 * time.Second, ""},
		{"/any%2fthing", "", 200, []string{"Cache-Control: max-age=3600"}, minute, "2"},
		{"/login%2f", "", 200, []string{"Set-Cookie: a=b", "Cache-Control: max-age=60"}, -1, ""},
		{"/", "", 200, []string{"Content-Type: image/png", "Cache-Control: max-age=5, must-revalidate"}, minute, "1"},
		{"/", "", 200, []string{"Content-Type: image/png", "Cache-Control: max-age=7200"}, 2 * hour, ""},
		{"/", "", 200, []string{"Content-Type: image/png", "Expires: 0"}, minute, "1"},
		{"/", "", 200, []string{"Content-Type: image/png", "Set-Cookie: a=b"}, hour, "1"},
		{"/", "", 200, []string{"Set-Cookie: a=b", "Cache-Control: max-age=60"}, -1, ""},
		{"/login", "", 200, []string{"Set-Cookie: a=b", "Cache-Control: max-age=60"}, minute, ""},
		{"/login", "", 200, []string{"Set-Cookie: a=b", "Cache-Control: private"}, -1, ""},
		{"/api/x", "", 200, []string{"Cache-Control: s-maxage=3600, stale-if-error=9"}, minute, "2"},
		{"/api/x", "", 200, []string{modified, "Age: 5"}, minute, "default-ttl"},
		{"/api/x", "", 200, []string{"Cache-Control: max-age=3600", `CDN-Cache-Control: max-age=30`}, 30 * time.Second, ""},
	} {
		q := request(t, "http://a.test"+c.path)
		if c.request != "" {
			q = request(t, "http://a.test"+c.path, c.request)
		}
		h := request(t, "http://x/", c.fields...).Header
		was := rfc9111.NewResponse(c.status, h.Clone(), 0, now).Control
		set.Response(q, c.status, h, now, 0)
		r := rfc9111.NewResponse(c.status, h, 0, now)
		life := time.Duration(-1)
		if r.Storable(nil, false) {
			life = r.Lifetime - r.InitialAge
			if c.life == 0 {
				life = max(0, min(life, 0)) // stale, however much
			}
		}
		if life != c.life || DecidedBy(h) != c.rule {
			t.Errorf("%s %q %d %q: %v by %q (%v), want %v by %q", c.path, c.request, c.status, c.fields, life, DecidedBy(h), h[rfc9111.ClusterControl], c.life, c.rule)
		}
		now := r.Control
		if was.MustRevalidate != now.MustRevalidate || was.StaleIfError != now.StaleIfError || (was.SMaxAge >= 0) != (now.SMaxAge >= 0) {
			t.Errorf("%q: the other directives are lost: %q", c.fields, h[rfc9111.ClusterControl])
		}
	}
}

// A 304 does not revoke what was decided about the response that it confirms, unless the origin now
// forbids it.
func TestConfirmation(t *testing.T) {
	set := Set{{Name: "1", Types: []string{"image/*"}, MinTTL: is(time.Hour)}}
	now := time.Unix(1e9, 0)
	q := request(t, "http://a.test/")
	stored := http.Header{"Content-Type": {"image/png"}, "Cache-Control": {"max-age=5"}}
	set.Response(q, 200, stored, now, 0)
	for _, c := range []struct {
		set   Set
		field string
		life  time.Duration
		kept  bool
	}{
		{set, "", time.Hour, true},
		{set, "max-age=7", time.Hour, true},
		{set, "no-store", time.Hour, false},
		{set, "private", 0, false},
		{nil, "max-age=7", 7 * time.Second, true},
	} {
		h := http.Header{}
		if c.field != "" {
			h["Cache-Control"] = []string{c.field}
		}
		c.set.Response(q, 304, h, now, 0)
		r := rfc9111.NewResponse(200, stored, 0, now).Freshened(h, 0, now)
		if kept := r.Storable(nil, false); kept != c.kept || kept && r.Lifetime != c.life {
			t.Errorf("after a 304 with %q: kept %v for %v, %v", c.field, kept, r.Lifetime, r.Header)
		}
	}
	typed := []string{"image/*"}
	for name, c := range map[string]struct {
		set          Set
		field        string
		kept, cookie bool
	}{
		"no rule":             {nil, "max-age=7", false, true},
		"no rule, no field":   {nil, "", false, true},
		"no rule, private":    {nil, "private", false, true},
		"refused":             {Set{{SetCookie: Refuse}, {SetCookie: Drop}}, "max-age=7", false, true},
		"dropped":             {Set{{SetCookie: Drop}, {SetCookie: Refuse}}, "max-age=7", true, false},
		"dropped for a type":  {Set{{SetCookie: Drop, Types: typed}}, "", true, false},
		"stored":              {Set{{SetCookie: Store}}, "max-age=7", true, true},
		"stored for a type":   {Set{{SetCookie: Store, Types: typed}}, "max-age=7", true, false},
		"stored for a status": {Set{{SetCookie: Store, Statuses: []Range{{200, 299}}}}, "", true, true},
	} {
		h := http.Header{"Set-Cookie": {"a=b"}}
		if c.field != "" {
			h["Cache-Control"] = []string{c.field}
		}
		c.set.Response(q, 304, h, now, 0)
		r := rfc9111.NewResponse(200, stored, 0, now).Freshened(h, 0, now)
		if kept, cookie := r.Storable(nil, false), r.Header["Set-Cookie"] != nil; kept != c.kept || cookie != c.cookie {
			t.Errorf("%s: after a 304 with Set-Cookie and %q: kept %v with cookie %v, want %v, %v", name, c.field, kept, cookie, c.kept, c.cookie)
		}
	}
}

// Each header field is decided by the first matching rule that names it. Lines that belong to others
// stay as they are.
func TestFields(t *testing.T) {
	set := Set{
		{Name: "1", Paths: []string{"/a*"}, RequestHeader: []Field{{"X-A", "1", 0, nil}, {"X-B", "", '-', nil}}, ResponseHeader: []Field{{"Server", "", '-', nil}}},
		{Name: "2", RequestHeader: []Field{{"X-A", "2", 0, nil}, {"X-B", "2", '+', nil}}},
		{Name: "3", Statuses: []Range{{404, 404}}, ResponseHeader: []Field{{"Server", "x", 0, nil}, {"Link", "c", '+', nil}}},
	}
	out, e := set.Request(request(t, "http://a.test/a", "X-B: 0"), netip.Addr{}, false, nil)
	if got := fmt.Sprint(out.Header); got != "map[X-A:[1]]" || !e.Deliver {
		t.Errorf("/a: %s, %+v", got, e)
	}
	r := request(t, "http://a.test/b", "X-B: 0")
	if out, e = set.Request(r, netip.Addr{}, false, nil); fmt.Sprint(out.Header, r.Header) != "map[X-A:[2] X-B:[0 2]] map[X-B:[0]]" || !e.Deliver {
		t.Errorf("/b: %v, %v, %+v", out.Header, r.Header, e)
	}
	if out, _ = set.Request(r, netip.Addr{}, true, nil); out != r {
		t.Error("a sibling's request was changed")
	}
	for path, want := range map[string]string{"/a": "map[Link:[a c]]", "/b": "map[Link:[a c] Server:[x]]"} {
		lines := []string{"a", "b"}
		h := http.Header{"Server": {"own"}, "Link": lines[:1]}
		if set.Deliver(request(t, "http://a.test"+path), 404, h); fmt.Sprint(h) != want || lines[1] != "b" {
			t.Errorf("%s: %v, want %s", path, h, want)
		}
		if set.Deliver(request(t, "http://a.test"+path), 200, h); len(h["Link"]) != 2 {
			t.Errorf("%s: a 200 has %v", path, h)
		}
	}
}

// A redirect keeps what clients send where it was, and leads to no host that the operator didn't name.
func TestLocation(t *testing.T) {
	for _, c := range []struct{ path, to, url, want string }{
		{"/old/*", "/new/*", "http://a.test/old/b%2Bc/d?x=*&{host}", "/new/b%2Bc/d?x=*&{host}"},
		{"/*.htm", "/*.html?from=htm", "http://a.test/%C3%A9.htm?x", "/%C3%A9.html?from=htm"},
		{"/old/*", "/*", "http://a.test/old//evil.test", "/.//evil.test"},
		{"*", "https://{host}{uri}", "http://a.test/a%20b?c", "https://www.test/a%20b?c"},
		{"/x", "https://b.test/", "http://a.test/x", "https://b.test/"},
	} {
		rule := Rule{Paths: []string{c.path}, Redirect: &Target{Text: c.to}}
		if status, to := rule.Location(request(t, c.url).URL, "www.test", ""); to != c.want || status != 302 {
			t.Errorf("%s, redirect %s: %s = %d %s, want %s", c.path, c.to, c.url, status, to, c.want)
		}
	}
	rule := Rule{Redirect: &Target{"https://{host}{uri}", 308}}
	if status, to := rule.Location(request(t, "http://a.test/prefix/x").URL, "www.test", "/prefix"); status != 308 || to != "https://www.test/x" {
		t.Errorf("with a prefix: %d %s", status, to)
	}
}

// A host stands for all its ports, and a scheme for what the client used.
func TestSiteAndScheme(t *testing.T) {
	set := Set{{Name: "1", Sites: []string{"a.test", "[::1]"}, Scheme: "http", Deny: is(true)}}
	for url, want := range map[string]bool{
		"http://a.test/": true, "http://a.test:8080/": true, "https://a.test/": false, "http://b.test/": false, "http://[::1]:80/": true, "http://[::1]/": true,
	} {
		if _, e := set.Request(request(t, url), netip.Addr{}, false, nil); (e.Deny != nil) != want {
			t.Errorf("%s: denied: %v", url, !want)
		}
	}
}

// A client has no say in what a rewritten path is taken for: where it would be none in normal form, the
// origin gets the client's path.
func TestRewritten(t *testing.T) {
	for _, c := range []struct{ path, to, url, want string }{
		{"/a/*", "/b/*", "http://a.test/a/x%2By%C3%A9?q=1", "/b/x%2By%C3%A9?q=1"},
		{"/a*", "/*", "http://a.test/a../secret", ""},
		{"/a*", "/b*", "http://a.test/a../secret", "/b../secret"},
		{"/a*", "/*", "http://a.test/a/x", ""}, // it would be //x
		{"/a*", "/.*", "http://a.test/a.", ""},
		{"/a/*", "/b/*", "http://a.test/a/..%2fx", ""},
		{"/a/*", "/b/*", "http://a.test/c", ""},
		{"/*", "/*", "http://a.test/%C3%A9/+%2B", "/%C3%A9/+%2B"},
	} {
		set := Set{{Name: "1", Paths: []string{c.path}, Rewrite: &Target{Text: c.to}}, {Name: "2", Rewrite: &Target{}}, {Name: "3", Rewrite: &Target{Text: "/late"}}}
		got := ""
		if u := set.Rewritten(request(t, c.url)); u != nil {
			got = u.RequestURI()
		}
		if got != c.want {
			t.Errorf("%s, rewrite %s: %s becomes %q, want %q", c.path, c.to, c.url, got, c.want)
		}
	}
}

// The first matching rule decides which answers another origin replaces.
func TestFailsOver(t *testing.T) {
	set := Set{{Name: "1", Paths: []string{"/final"}, Statuses: []Range{{500, 599}}, Failover: is(false)}, {Name: "2", Statuses: []Range{{502, 504}}, Failover: is(true)}}
	for url, want := range map[string]map[int]bool{"http://a.test/final": {500: false, 502: false}, "http://a.test/x": {200: false, 500: false, 503: true}} {
		for status, want := range want {
			if got := set.FailsOver(request(t, url), &http.Response{StatusCode: status}); got != want {
				t.Errorf("%s, %d: %v", url, status, got)
			}
		}
	}
}

// Rules that do not match cost a request no memory.
func TestRulesAllocateNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, unmatched(t)); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkUnmatchedRules(b *testing.B) {
	f := unmatched(b)
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

// unmatched decides about a request that no rule of each kind is for.
func unmatched(t testing.TB) func() {
	other := []string{"/other/*"}
	set := Set{
		{Name: "1", Paths: other, Deny: is(true)}, {Name: "2", Paths: other, Redirect: &Target{Text: "/x"}}, {Name: "3", Paths: other, Rewrite: &Target{Text: "/x"}},
		{Name: "4", Paths: other, Rate: &Rate{1, time.Second}}, {Name: "5", Paths: other, MaxBody: is(int64(1))}, {Name: "6", Scheme: "https", RequestHeader: []Field{{"X-A", "1", 0, nil}}},
		{Name: "7", Sites: []string{"b.test"}, ResponseHeader: []Field{{"X-A", "1", 0, nil}}}, {Name: "8", Statuses: []Range{{500, 599}}, Failover: is(true)},
	}
	r := httptest.NewRequest("GET", "http://a.test/page/x.html?q=1", nil)
	ok := &http.Response{StatusCode: 200, Header: http.Header{}}
	return func() {
		if out, e := set.Request(r, netip.Addr{}, false, nil); out != r || e != (Effect{}) || set.Rewritten(r) != nil || set.FailsOver(r, ok) {
			t.Fatalf("%+v", e)
		}
	}
}

// A rule for clients of some networks restricts these alone, and an earlier one makes an exception for some of them.
func TestClients(t *testing.T) {
	networks := func(list ...string) (all []netip.Prefix) {
		for _, n := range list {
			all = append(all, netip.MustParsePrefix(n))
		}
		return all
	}
	set := Set{
		{Name: "1", Clients: networks("10.0.0.1/32"), Deny: is(false)},
		{Name: "2", Clients: networks("10.0.0.0/8", "2001:db8::/32"), Deny: is(true)},
	}
	for client, want := range map[string]bool{"10.0.0.1": false, "10.0.0.2": true, "2001:db8::1": true, "192.0.2.1": false, "": true} {
		ip, _ := netip.ParseAddr(client)
		for _, lookup := range []bool{false, true} {
			if _, e := set.Request(request(t, "http://a.test/x"), ip, lookup, nil); (e.Deny != nil) != want {
				t.Errorf("%q, lookup %v: denied: %v", client, lookup, !want)
			}
		}
	}
	if !set.ByClient() || (Set{{Name: "1", Deny: is(true)}}).ByClient() {
		t.Error("ByClient is wrong")
	}
}
