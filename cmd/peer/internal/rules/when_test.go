package rules

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func when(t testing.TB, text string) *When {
	t.Helper()
	w, err := ParseWhen(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

// Expressions mean what they say.
func TestWhen(t *testing.T) {
	r := request(t, "http://a.test:8080/api/x?nocache=1&b=%C3%A9+&twice=1&twice=2", "User-Agent: GoogleBot/2", "Cookie: lang=de; wp_x=1; two=1", "Cookie: two=2", "X-A: 1", "X-A: 2")
	answer := http.Header{"Content-Type": {"Text/HTML; charset=utf-8"}, "Content-Length": {"12"}, "X-Cacheable": {"yes"}, "Cache-Status": {"o; fwd=miss", "a; hit; ttl=5"}}
	for text, want := range map[string]truth{
		`method == "GET" && path startsWith "/api/" && query["nocache"] == "1"`: yes,
		`method != "GET" || !(path in ["/static/*", "/api/*"])`:                 no,
		`method in ["POST", "PUT"]`:                                             no,
		`host == "a.test" and scheme == "http" and not (path endsWith ".css")`:  yes,
		`query.b == "é "`: yes,
		`query["none"] == "" && !("none" in query) && "no*" in query`: yes,
		`query["twice"] == "1"`:                                             maybe, // some servers take the first, some the last
		`!(query["twice"] == "1")`:                                          maybe,
		`cookie["two"] == "1" || cookie.lang == "de"`:                       yes,
		`cookie["two"] != "1"`:                                              maybe,
		`"wp_*" in cookie && "two" in cookie`:                               yes,
		"header[\"user-agent\"] matches `(?i)bot\\b`":                       yes,
		`header["X-A"] == "1, 2" && "x-a" in header && !("X-B*" in header)`: yes,
		`status == 200 && status in 200..299`:                               yes,
		`status in [404, 410] or status >= 500`:                             no,
		`type == "text/html" && type in ["text/*"] && length < 13`:          yes,
		`answer["X-Cacheable"] == "yes" && outcome == "hit"`:                yes,
		`client in ["10.0.0.0/8"]`:                                          no,
		`client == "192.0.2.1" && client != "192.0.2.2"`:                    yes,
		`true && !false`:                                                    yes,
	} {
		f := facts{q: r, client: netip.MustParseAddr("192.0.2.1"), status: 200, h: answer}
		if got := when(t, text).of(f); got != want {
			t.Errorf("%s = %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{
		`metod == "GET"`:                        "1:1 unknown name metod",
		"path == \"/\" &&\n  status == \"200\"": "2:10 invalid operation",
		`path`:                                  "1:1 expected bool",
		`method == "get"`:                       `1:11 method is never "get"`,
		`path == "/x?a=1"`:                      `1:9 path is never "/x?a=1": want a path, which begins with /, is decoded, and has no query`,
		`path startsWith "/caf%C3%A9"`:          `path is never "/caf%C3%A9"`,
		`path in ["static/*"]`:                  `1:10 path is never`,
		`path startsWith "static"`:              `path is never`,
		`scheme == "HTTPS"`:                     `want http or https`,
		`host == "A.test:80"`:                   `want a host as requests have it: in lower case, in ASCII, without a port`,
		"host == `b\u00fccher.test`":            `want a host as requests have it`,
		`type == "text/html; charset=utf-8"`:    `without parameters`,
		`path matches "\bx"`:                    `1:14 has a control character`,
		"path matches `(`":                      `error parsing regexp`,
		`path matches header["X"]`:              `is no constant pattern`,
		`all(["a"], # == path)`:                 `is no condition here`,
		`path + "x" == "/x"`:                    `is no text that rules have`,
		`len(path) > 3`:                         `unknown name len`,
		`(path == "/" ? true : false)`:          `is no condition here`,
		`let x = path; x == "/"`:                `is no condition here`,
		`header["X-*"] == "1"`:                  `is a pattern, which has no value`,
		`cookie[path] == "1"`:                   `is no text that rules have`,
		`client in ["office"]`:                  `is no network`,
		`client startsWith "10."`:               `client is compared by`,
		`client in cookie`:                      `is no constant network`,
		`path in cookie`:                        `in wants a list`,
		strings.Repeat(`!`, 2_000) + `true`:     `exceeds maximum allowed nodes`,
		strings.Repeat(`(`, 2_000):              ``,
		`status == 1e400`:                       ``,
	} {
		_, err := ParseWhen(text)
		at := &PlaceError{}
		if at, _ = err.(*PlaceError); at == nil || !strings.Contains(fmt.Sprintf("%d:%d %s", at.Line, at.Column, at), want) {
			t.Errorf("%.60s: %+v, want %s", text, err, want)
		}
	}
}

// drawn returns a random condition, and the names of its parts that a drawn request may have.
func drawn(rng *rand.Rand, depth int) string {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	if depth > 0 && rng.IntN(4) > 0 {
		a, b := drawn(rng, depth-1), drawn(rng, depth-1)
		return one("!("+a+")", "("+a+") && ("+b+")", "("+a+") || ("+b+")", "not ("+a+" or "+b+")")
	}
	return one(`path == "/a"`, `path != "/b"`, `path startsWith "/a"`, `path in ["/a*", "*.css"]`, `path endsWith "b"`, "path matches `^/[ab]$`", `path contains "a"`, `path < "/b"`,
		`method == "GET"`, `query["q"] == "1"`, `"q" in query`, `cookie["c"] == "1"`, `"c*" in cookie`, `cookie["c"] != "2"`, `header["X-A"] == "1"`, `"X-A" in header`,
		`status == 404`, `status >= 500`, `type in ["text/*"]`, `"X-B" in answer`, `client in ["10.0.0.0/8"]`, `client != "10.0.0.1"`, `true`, `path == header["X-A"]`)
}

var candidates = []string{"/a", "/b", "/a/b", "/x.css", "/", "/ab", "1"}

// Whatever an expression says, and however often it negates: what is not known makes it neither true nor false, unless
// it is that for each value that the unknown may have. So an ambiguous path counts for what restricts wherever one of its
// readings does, and for what permits only where all do; and so do an answer before it comes and an unknown client.
func TestUnknownIsNeither(t *testing.T) {
	rng := rand.New(rand.NewPCG(60, 1))
	undecided := 0
	for range 400 {
		text := drawn(rng, 4)
		w := when(t, text)
		fields := []string{"Accept: x"}
		for _, f := range []string{"Cookie: c=1", "Cookie: c=2", "X-A: 1"} {
			if rng.IntN(2) == 0 {
				fields = append(fields, f)
			}
		}
		q := request(t, "http://a.test/x//y?q=1&q="+fmt.Sprint(rng.IntN(2)), fields...)
		known := facts{q: q, client: netip.MustParseAddr("10.0.0.2"), status: 200, h: http.Header{"Content-Type": {"text/html"}}}
		for _, hidden := range []string{"path", "client", "answer", "all"} {
			f := known
			f.ambiguous = hidden == "path" || hidden == "all"
			if hidden == "client" || hidden == "all" {
				f.client = netip.Addr{}
			}
			if hidden == "answer" || hidden == "all" {
				f.status, f.h = 0, nil
			}
			got := w.of(f)
			if got == maybe {
				undecided++
				continue
			}
			for _, path := range candidates {
				for _, client := range []string{"10.0.0.1", "10.0.0.2", "192.0.2.1"} {
					for _, status := range []int{200, 404, 503} {
						as := known
						u := *q.URL
						copied := *q
						if as.q = &copied; f.ambiguous {
							u.Path = path
						}
						copied.URL = &u
						if !f.client.IsValid() {
							as.client = netip.MustParseAddr(client)
						}
						if f.status == 0 {
							as.status, as.h = status, http.Header{"X-B": {"1"}}
						}
						if as := w.of(as); as != got && as != maybe {
							t.Fatalf("%s is %d without %s, and %d with path %s, client %s, status %d", text, got, hidden, as, path, client, status)
						}
					}
				}
			}
		}
	}
	if undecided < 200 {
		t.Errorf("only %d were undecided: the test draws nothing", undecided)
	}
}

// A rule with a drawn expression bypasses the cache on an ambiguous path if any reading of it would, and gives it a
// lifetime only if all would. Another peer, which has read the same file, decides alike.
func TestDrawnRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(60, 2))
	for range 200 {
		text := drawn(rng, 3)
		if w := when(t, text); OfAnswers(w.Uses) || use(w.Uses, "client") {
			continue
		}
		decide := func(path string) (bypass, keeps bool) {
			set := Set{{Name: "1", When: when(t, text), Bypass: is(true), IgnoreNoCache: is(true), TTL: is(time.Hour)}}
			q := request(t, "http://a.test"+path+"?q=1", "X-A: 1", "Pragma: no-cache")
			out, e := set.Request(q, netip.Addr{}, false, nil)
			h := http.Header{}
			set.Response(q, 200, h, time.Unix(1e9, 0), 0)
			if keeps = out.Header["Pragma"] == nil; keeps != (len(h) > 0) {
				t.Fatalf("%s on %s: no-cache ignored %v, %v", text, path, keeps, h)
			}
			return e.Bypass, keeps
		}
		bypass, keeps := decide("/x//y")
		if again, too := decide("/x//y"); again != bypass || too != keeps {
			t.Errorf("%s: two peers decide differently", text)
		}
		for _, path := range candidates[:6] {
			if b, k := decide(path); b && !bypass || !k && keeps {
				t.Errorf("%s: %s has bypass %v, lifetime %v, and an ambiguous path %v, %v", text, path, b, k, bypass, keeps)
			}
		}
	}
}

// The short forms mean the same as their expressions.
func TestShortForms(t *testing.T) {
	for text, short := range map[string]Rule{
		`scheme == "https"`:                     {Scheme: "https"},
		`host in ["a.test", "*.b.test"]`:        {Sites: []string{"a.test", "*.b.test"}},
		`path in ["/a*", "*.css"]`:              {Paths: []string{"/a*", "*.css"}},
		`"c" in cookie || "wp_*" in cookie`:     {Cookies: []string{"c", "wp_*"}},
		`"x-a" in header || "X-P*" in header`:   {Headers: []string{"x-a", "X-P*"}},
		`client in ["10.0.0.0/8"]`:              {Clients: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		`status in [404, 410] || status >= 500`: {Statuses: []Range{{404, 404}, {410, 410}, {500, 599}}},
		`type in ["text/*"]`:                    {Types: []string{"text/*"}},
	} {
		for _, url := range []string{"http://a.test/a", "https://x.b.test:81/x.css", "http://c.test/b//c", "http://a.test:8080/b"} {
			for _, field := range []string{"Cookie: c=1", "Cookie: d=1; wp_1=", "X-A: 1", "x-prev: 1", "Y: 1"} {
				for _, client := range []string{"10.0.0.1", "192.0.2.1", ""} {
					for _, status := range []int{0, 200, 404, 503} {
						f := facts{q: request(t, url, field), status: status, ambiguous: strings.Contains(url, "//c"[:2]+"c") && strings.HasSuffix(url, "//c"), partly: status == 404}
						f.client, _ = netip.ParseAddr(client)
						if status > 0 {
							f.h = http.Header{"Content-Type": {[]string{"text/html", "image/png"}[status%2]}}
						}
						long := Rule{When: when(t, text)}
						if a, b := short.match(f), long.match(f); a != b {
							t.Errorf("%s: short %d, long %d for %s %s %q %d", text, a, b, url, field, client, status)
						}
					}
				}
			}
		}
	}
}

func FuzzWhen(f *testing.F) {
	rng := rand.New(rand.NewPCG(60, 3))
	for range 30 {
		f.Add(drawn(rng, 2))
	}
	f.Add("query[\"a\"] in [\"*\"] ?? x")
	q, _ := http.NewRequest("GET", "http://a.test/a//b?q=1&%zz", nil)
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseWhen(text)
		if err != nil {
			if at, ok := err.(*PlaceError); !ok || at.Line < 1 || at.Column < 1 {
				t.Errorf("%q: %#v has no place", text, err)
			}
			return
		}
		for _, f := range []facts{{q: q}, {q: q, ambiguous: true}, {q: q, status: 200, h: http.Header{}}} {
			if is := w.of(f); is < no || is > yes {
				t.Errorf("%q is %d", text, is)
			}
		}
	})
}

// Three conditions cost less than a microsecond, and no memory.
func BenchmarkThreeConditions(b *testing.B) {
	set := Set{{Name: "1", When: when(b, `method == "POST" && path startsWith "/api/" || query["nocache"] == "1" && header["User-Agent"] contains "bot"`), Bypass: is(true)},
		{Name: "2", When: when(b, `path startsWith "/api/" && query["nocache"] == "1"`), Bypass: is(true)},
		{Name: "3", When: when(b, `method == "GET" && path startsWith "/api/" && query["nocache"] == "2"`), Bypass: is(true)}}
	r, _ := http.NewRequest("GET", "http://a.test/api/x?a=b&nocache=3", nil)
	r.Header.Set("User-Agent", "Mozilla/5.0")
	r.Header.Set("Cookie", "a=b; c=d")
	for name, n := range map[string]int{"rules=0": 0, "rules=1": 1, "rules=3": 3} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, e := set[:n].Request(r, netip.Addr{}, false, nil); e.Bypass {
					b.Fatal(e)
				}
			}
		})
	}
}

func TestConditionsAllocateNothing(t *testing.T) {
	w := when(t, `method == "GET" && path startsWith "/api/" && query["nocache"] == "1" && (cookie["a"] == "b" || header["X-A"] matches "^a+$")`)
	q := request(t, "http://a.test/api/x?nocache=1", "Cookie: c=d; a=x", "X-A: aaa")
	set := Set{{Name: "1", When: w, Bypass: is(true)}}
	if n := testing.AllocsPerRun(100, func() {
		if _, e := set.Request(q, netip.Addr{}, false, nil); !e.Bypass {
			t.Fatal("the rule does not match")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
