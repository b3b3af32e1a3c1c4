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
		fmt.Fprintf(w, "%s %q %q", r.URL.RequestURI(), r.Header["X-Cache-Cluster"], r.Header["X-Debug"])
	}))
	defer app.Close()
	config := "trusted-proxies: 127.0.0.1\nsites:\n  - hosts: [www.test]\n    origins: " + app.URL + "\n"
	a := inProcess(t, local(t, "a", "--config", write(t, "a.yaml", config+sitesRules(t, "Refusing, redirecting, header fields"))))
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
		r, _ := ask(t, a.listen, "/static/f", "www.test", https...)
		if h := r.Header; h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Server") != "" {
			t.Errorf("/static/f: %v", h)
		}
	}
	eventually(t, time.Minute, "b knows what a holds", func() bool {
		s, err := admin.Client(b.admin).Status(t.Context())
		return err == nil && len(s.Members) == 1 && s.Members[0].Keys == 3 && s.Members[0].Current
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
