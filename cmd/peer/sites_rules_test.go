package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
)

// sitesRules returns the rules of a section of SITES.md, as they stand in a configuration.
func sitesRules(t *testing.T, heading string) string {
	t.Helper()
	p := pageOf(t, "cmd/peer/SITES.md")
	_, after, found := strings.Cut(p.text, "\n## "+heading+"\n")
	section, _, _ := strings.Cut(after, "\n## ")
	all := "rules:\n"
	for _, b := range p.blocks {
		if rest, ok := strings.CutPrefix(b.text, "rules:\n"); ok && strings.Contains(section, b.text) {
			all += rest
		}
	}
	if !found || all == "rules:\n" {
		t.Fatalf("SITES.md has no rules under %q", heading)
	}
	return all
}

// The rules of the page refuse, redirect and change header fields as it says; what a sibling gets
// has the origin's fields.
func TestSitesRules(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Server", "app")
		w.Header().Set("Content-Type", "font/woff2")
		if r.URL.Path == "/static/f" {
			w.Write(make([]byte, 3<<20))
			return
		}
		fmt.Fprintf(w, "%s %q %q", r.URL.RequestURI(), r.Header["X-Cache-Cluster"], r.Header["X-Debug"])
	}))
	defer app.Close()
	config := "trusted-proxies: 127.0.0.1\nsites:\n  - hosts: [www.test]\n    origins: " + app.URL + "\n"
	a := inProcess(t, local(t, "a", "--config", write(t, "a.yaml", config+sitesRules(t, "Refusing, redirecting, limits, header fields"))))
	b := inProcess(t, local(t, "b", "--join", a.gossip, "--config", write(t, "b.yaml", config)))
	https := []string{"X-Forwarded-Proto: https", "X-Debug: 1"}
	for _, c := range []struct {
		path   string
		fields []string
		status int
		want   string // Location, or the body
	}{
		{"/x?a=1", nil, 301, "https://www.test/x?a=1"},
		{"/.well-known/x", nil, 200, `/.well-known/x ["eu-1"] []`},
		{"/x?a=1", https, 200, `/x?a=1 ["eu-1"] []`},
		{"/blog/2026/caf%c3%a9?p=*", https, 302, "/news/2026/caf%C3%A9?p=*"},
		{"/admin/", https, 403, "a: a rule denies this request.\n"},
		{"/admin/", append(https, "X-Forwarded-For: 10.1.2.3"), 200, `/admin/ ["eu-1"] []`},
		{"/y", append(https, "X-Forwarded-For: 198.51.100.7"), 403, "a: a rule denies this request.\n"},
		{"/a/.git/config", https, 403, "a: a rule denies this request.\n"},
		{"/x/..%2fadmin/", https, 403, "a: a rule denies this request.\n"}, // some origins take it for /admin/
		{"/blog/%2e%2e", https, 403, "a: a rule denies this request.\n"},
		{"/admin/", []string{"X-Forwarded-Proto: https", "Cache-Control: only-if-cached"}, 504, "a: a rule denies this request here.\n"},
	} {
		r, body := ask(t, a.listen, c.path, "www.test", c.fields...)
		if l := r.Header.Get("Location"); r.StatusCode != c.status || c.want != l && (c.want != body || l != "") {
			t.Errorf("%s with %q: %s, Location %q, %s", c.path, c.fields, r.Status, l, body)
		}
		if sts := r.Header.Get("Strict-Transport-Security"); c.status != 504 && sts != "max-age=31536000" {
			t.Errorf("%s: Strict-Transport-Security: %q", c.path, sts)
		}
	}
	for range 2 { // from the origin, and from the store
		r, body := ask(t, a.listen, "/static/f", "www.test", https...)
		if h := r.Header; len(body) != 3<<20 || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Server") != "" {
			t.Errorf("/static/f: %v", h)
		}
	}
	if r, body := ask(t, a.listen, "/static/f", "www.test", append(https, "Range: bytes=100-2000099")...); r.StatusCode != 206 || len(body) != 2_000_000 || r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a range of /static/f: %s, %d bytes, %v", r.Status, len(body), r.Header)
	}
	eventually(t, time.Minute, "b knows what a holds", func() bool {
		s, err := admin.Client(b.admin).Status(t.Context())
		return err == nil && len(s.Members) == 1 && s.Members[0].Keys == 4 && s.Members[0].Current
	})
	r, _ := ask(t, b.listen, "/static/f", "www.test", "X-Forwarded-Proto: https")
	if h := r.Header; h.Get("Access-Control-Allow-Origin") != "" || h.Get("Server") != "app" || !strings.HasPrefix(h.Get("Cache-Status"), "a; hit") {
		t.Errorf("b's answer: %v", h)
	}
	holds(t, words(t, 0, "why", "https://www.test/blog/x", "--admin", a.admin), "redirect /news/*")
}

// A forward proxy opens tunnels, and forwards, to the destinations that rules allow.
func TestDeniedDestinations(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer app.Close()
	addr := app.Listener.Addr().String()
	_, port, _ := strings.Cut(addr, ":")
	p := inProcess(t, local(t, "a", "--connect-port", port, "--config", write(t, "a.yaml", "rules:\n  - site: 127.0.0.1\n    deny: false\n  - deny: true\n")))
	for target, want := range map[string]int{addr: 200, "localhost:" + port: 403} {
		for _, method := range []string{"GET", "CONNECT"} {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.listen, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.URL.Opaque, r.Host = "http://"+target+"/", target
			if method == "CONNECT" {
				r.URL.Opaque = target
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s %s: %s, want %d", method, target, resp.Status, want)
			}
		}
	}
}

// The other rules of the page: an origin gets another path, another origin answers instead of the first
// one, and a client that sends too much is told so.
func TestSitesLimits(t *testing.T) {
	origin := func(name string) *httptest.Server {
		app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Cache-Control", "max-age=600")
			if name == "first" && strings.HasPrefix(r.URL.Path, "/fails") {
				w.WriteHeader(503)
			}
			fmt.Fprintf(w, "%s %s", name, r.URL.RequestURI())
		}))
		t.Cleanup(app.Close)
		return app
	}
	config := "trusted-proxies: 127.0.0.1\nsites:\n  - hosts: [www.test]\n    origins: [" + origin("first").URL + ", " + origin("second").URL + "]\n" +
		sitesRules(t, "Refusing, redirecting, limits, header fields")
	a := inProcess(t, local(t, "a", "--config", write(t, "a.yaml", config)))
	https := []string{"X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.1"}
	get := func(path, want string, fields ...string) http.Header {
		t.Helper()
		r, body := ask(t, a.listen, path, "www.test", append(fields, https[0])...)
		if got := fmt.Sprint(r.StatusCode, " ", body); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		return r.Header
	}
	get("/app/caf%C3%A9?q", "200 first /v2/caf%C3%A9?q")
	get("/app/../app/x", "200 first /v2/x")
	get("/app//x", "403 a: a rule denies this request.\n") // ambiguous: some servers take it for any path
	a.stored(t, 2)
	if h := get("/app/caf%C3%A9?q", "200 first /v2/caf%C3%A9?q"); !strings.Contains(h.Get("Cache-Status"), "hit") {
		t.Errorf("a rewritten path is not stored: %v", h)
	}
	holds(t, words(t, 0, "purge", "https://www.test/app/caf%C3%A9?q", "--admin", a.admin), "a 1 done")
	get("/fails", "200 second /fails")
	for range 5 {
		get("/login", "200 first /login", https[1])
	}
	if h := get("/login", "429 a: too many requests from this address.\n", https[1]); h.Get("Retry-After") != "12" {
		t.Errorf("Retry-After: %q", h.Get("Retry-After"))
	}
	get("/login", "200 first /login", "X-Forwarded-For: 192.0.2.2")
	get("/x", "200 first /x", https[1])
	for size, want := range map[int64]int{10 << 20: 200, 10<<20 + 1: 413} {
		for _, chunked := range []bool{false, true} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+a.listen+"/upload/x", io.LimitReader(strings.NewReader(strings.Repeat("x", 11<<20)), size))
			if err != nil {
				t.Fatal(err)
			}
			if r.Host = "www.test"; !chunked {
				r.ContentLength = size
			}
			r.Header.Set("X-Forwarded-Proto", "https")
			r.Header.Set("Expect", "100-continue") // else the refusal of a body that is still being sent may be lost
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != want {
				t.Errorf("%d bytes, chunked %v: %s, want %d", size, chunked, resp.Status, want)
			}
		}
	}
}
