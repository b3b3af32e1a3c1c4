package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// The origin, the key and a sibling get the canonical form of what a client asks.
func TestCanonicalEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, r.RequestURI)
		}, "a", "b")
		defer w.close()
		for _, c := range []struct{ target, sent, again string }{
			{"/x/../%61", "/a", "/%61"},
			{"/@scope%2fname", "/@scope%2fname", "/@scope%2fname"},
			{"/bucket//key", "/bucket//key", "/bucket//key"},
			{"/pool/libc++_1.0+dfsg~1.deb", "/pool/libc++_1.0+dfsg~1.deb", "/pool/libc++_1.0+dfsg%7e1.deb"},
			{"/signed?X-Amz-Credential=A%2f1%7E&sig=a+b%3d", "/signed?X-Amz-Credential=A%2f1%7E&sig=a+b%3d", "/signed?X-Amz-Credential=A%2f1%7E&sig=a+b%3d"},
			{`/q?a="<>`, "/q?a=%22%3C%3E", "/q?a=%22%3C%3E"},
			{`/a%2Fb"`, "/a%2Fb%22", "/a%2Fb%22"},
		} {
			before := w.origin.count()
			if r := w.from("a", "192.0.2.1:1", "GET", c.target); r.Body.String() != c.sent {
				t.Errorf("GET %s: the origin got %s, want %s", c.target, r.Body, c.sent)
			}
			synctest.Wait()
			for _, peer := range []string{"a", "b"} {
				if r := w.from(peer, "192.0.2.1:1", "GET", c.again); r.Body.String() != c.sent || w.origin.count() != before+1 {
					t.Errorf("then GET %s at %s: %s after %d requests to the origin, want %s after 1", c.again, peer, r.Body, w.origin.count()-before, c.sent)
				}
				synctest.Wait()
			}
			if n, err := purge(w.peers["a"], c.target, false); n != 1 || err != nil {
				t.Errorf("Purge(%s) = %d, %v", c.target, n, err)
			}
		}
	})
}

// An operator's URL is absolute, or a path of the only site.
func TestOperatorsURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {}, "a")
		defer w.close()
		for at, refused := range map[string]bool{"/x": false, "/": false, "x": true, "x/y": true, "?q": true, "": true, ":": true} {
			_, _, err := w.peers["a"].Explain("GET", at, nil)
			if (err != nil) != refused {
				t.Errorf("Explain(%q) = %v, want refused: %v", at, err, refused)
			}
		}
	})
}

// HTTP/2 allows no space at either end of a value, of whatever kind, and any within.
func TestSpaced(t *testing.T) {
	for value, refused := range map[string]bool{
		"": false, "x": false, "x y": false, "x\ty": false, " x": true, "\tx": true, "x ": true, "x\t": true, " ": true, "\t": true,
	} {
		got := paddedField(http.Header{"X-A": {"x", value}})
		if (got != nil) != refused || got != nil && got.status != http.StatusBadRequest {
			t.Errorf("paddedField(%q) = %+v, want refused: %v", value, got, refused)
		}
	}
}

// No private page is stored by a rule for another path, or by one that ignores its cookie.
func TestDeception(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := time.Hour
		bypass := true
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			io.WriteString(w, "hello "+r.Header.Get("Cookie"))
		})
		w.tune = func(c *Config) {
			c.Rules = rules.Set{
				{Name: "1", Paths: []string{"/account*"}, Bypass: &bypass},
				{Name: "2", Paths: []string{"/static/*", "*.css"}, TTL: &hour},
			}
		}
		w.start("a", t.TempDir())
		defer w.close()
		for _, target := range []string{"/account", "/static/..%2faccount", "/static/../account", "/static/%2e%2e/account", "/static/.%2e/account", "/x/..%2faccount.css",
			"/static/..%5caccount", "/static/..%252faccount", "//account.css", "/account;.css", "/account%3b.css", "/account%00.css", "/account%0a.css", "/account%3f.css", "/account%23.css",
			"/static/..;/account", "/x.css", "/static/x", "/%61ccount", "/static/%2E./account"} {
			w.from("a", "192.0.2.1:1", "GET", target, "Cookie: session=victim")
			synctest.Wait()
			if r := w.from("a", "192.0.2.2:1", "GET", target); strings.Contains(r.Body.String(), "victim") {
				t.Errorf("GET %s gives a stranger %q", target, r.Body)
			}
		}
		for path, want := range map[string]int{"/static/..%2faccount": 2, "/static/y": 1} { // bypass, and why; ttl
			if _, decisions, err := w.peers["a"].Explain("GET", path, nil); len(decisions) != want || err != nil {
				t.Errorf("Explain(%s) = %v, %v, want %d decisions", path, decisions, err, want)
			}
		}
		w.from("a", "192.0.2.1:1", "GET", "/static/y")
		synctest.Wait()
		if r := w.from("a", "192.0.2.1:1", "GET", "/static/y"); !strings.Contains(r.Header().Get("Cache-Status"), "a; hit") {
			t.Errorf("without a cookie /static/y is not stored: %v", r.Header())
		}
	})
}

// What a client sends is refused here, not by the origin, and marks no origin as failing.
func TestRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, cached("x"))
		w.tune = func(c *Config) { c.PassFields = []string{"X_Api_Version"} }
		w.start("a", t.TempDir())
		defer w.close()
		long := strings.Repeat("b", 16<<10)
		for _, c := range []struct {
			method, target string
			fields         []string
			code           int
		}{
			{"GET /a", "/x", nil, 400},
			{"", "/x", nil, 400},
			{"G\x00T", "/x", nil, 400},
			{"GET", "/x", []string{"Cookie: a=" + long}, 431},
			{"GET", "/x?" + long, nil, 431},
			{"POST", "/x", []string{"X-A: " + long}, 431},
			{"GET", "/x", []string{"Cookie: a=" + long[:15<<10]}, 200},
		} {
			before := w.origin.count()
			r := w.from("a", "192.0.2.1:1", c.method, c.target, c.fields...)
			if asked := w.origin.count() > before; r.Code != c.code || asked != (c.code == 200) {
				t.Errorf("%q %.20s: %d, the origin was asked: %v, want %d", c.method, c.target, r.Code, asked, c.code)
			}
			synctest.Wait()
		}
		h := w.peers["a"]
		if n := h.Counters(); len(h.FailingOrigins()) > 0 || n.OriginErrors > 0 || n.ClientErrors != 6 {
			t.Errorf("failing %v, %d errors of origins, %d of clients", h.FailingOrigins(), n.OriginErrors, n.ClientErrors)
		}
		w.from("a", "192.0.2.1:1", "GET", "/y", "X_forwarded_host: evil.test", "X_api_version: 2", "X-Forwarded-Port: 1", "Range: cow", "Expect: 100-continue")
		checkFields(t, "origin's request", w.origin.last().Header, "X_forwarded_host: | X_api_version: 2 | X-Forwarded-Port: | Range: | Expect:")
	})
}

// With PreserveHost the origin gets the client's host, which is part of the key.
func TestPreserveHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "http://"+r.Host+"/tarball "+r.Header.Get("X-Forwarded-Host"))
		})
		w.tune = func(c *Config) { c.PreserveHost = true }
		w.start("a", t.TempDir())
		w.start("b", t.TempDir())
		defer w.close()
		for _, host := range []string{"one.test", "two.test:8080"} {
			for _, peer := range []string{"a", "b"} {
				if r := w.from(peer, "192.0.2.1:1", "GET", "/x", "Host: "+host); r.Body.String() != "http://"+host+"/tarball "+host {
					t.Errorf("Host %s at %s: %s", host, peer, r.Body)
				}
				synctest.Wait()
			}
		}
		if n := w.origin.count(); n != 2 {
			t.Errorf("%d requests to the origin, want one for each host", n)
		}
	})
}
