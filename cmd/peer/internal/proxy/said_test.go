package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

func to[T any](v T) *T { return &v }

// ruledWorld runs a test in virtual time with an origin and peers that have these rules.
func ruledWorld(t *testing.T, set rules.Set, serve func(http.ResponseWriter, *http.Request, int), test func(*world), peers ...string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			if r.Header[rfc9111.KeyField] != nil {
				t.Errorf("the origin gets %v", r.Header)
			}
			serve(w, r, n)
		})
		defer w.close()
		w.tune = func(c *Config) { c.Rules = set }
		for _, p := range peers {
			w.start(p, t.TempDir())
		}
		test(w)
		synctest.Wait()
	})
}

// expect asks a peer and compares the body; a hit is one of its own store.
func (w *world) expect(peer, path, body string, hit bool, fields ...string) reply {
	w.t.Helper()
	r := w.get(peer, path, fields...)
	synctest.Wait()
	own := strings.Contains(r.status(), peer+"; hit")
	if r.body != body || own != hit || r.Header[rfc9111.ClusterControl] != nil || strings.Contains(fmt.Sprint(r.Header), rfc9111.KeyField) {
		w.t.Errorf("%s at %s with %q: %q %v, want %q, hit %v", path, peer, fields, r.body, r.Header, body, hit)
	}
	return r
}

// With grace in a rule nobody waits for the origin when a page expires, and its errors and timeouts do not reach clients
// for as long as the rule says.
func TestGrace(t *testing.T) {
	set := rules.Set{{Name: "1", TTL: to(time.Second), StaleWhileRevalidate: to(10 * time.Second), StaleIfError: to(time.Hour)}}
	var state atomic.Int64
	state.Store(200)
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		if n > 0 {
			time.Sleep(2 * time.Second)
		}
		if state.Load() == 0 {
			time.Sleep(time.Hour) // longer than any deadline
			return
		}
		w.WriteHeader(int(state.Load()))
		fmt.Fprint(w, n)
	}, func(w *world) {
		w.expect("a", "/", "0", false)
		time.Sleep(5 * time.Second)
		began := time.Now()
		w.expect("a", "/", "0", true) // stale, at once
		if d := time.Since(began); d != 0 {
			t.Errorf("a user waited %v", d)
		}
		time.Sleep(3 * time.Second) // fetched aside
		w.expect("a", "/", "1", true)
		for _, status := range []int64{500, 502, 503, 504, 0} {
			state.Store(status)
			time.Sleep(4 * time.Minute)
			if r := w.expect("a", "/", "1", true); r.StatusCode != 200 {
				t.Errorf("%d reaches the client", r.StatusCode)
			}
		}
		time.Sleep(2 * time.Hour)
		if state.Store(503); w.get("a", "/").StatusCode != 503 {
			t.Error("served beyond its grace")
		}
	}, "a")
}

// What the origin forbids to serve stale, and what a cookie may have made, gets no grace.
func TestGraceIsNotForAll(t *testing.T) {
	set := rules.Set{{Name: "1", TTL: to(time.Second), StaleWhileRevalidate: to(time.Hour), StaleIfError: to(time.Hour)}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		if r.URL.Path == "/must" {
			w.Header().Set("Cache-Control", "max-age=1, must-revalidate")
		} else if r.URL.Path == "/zero" {
			w.Header().Set("Cache-Control", "max-age=0")
			w.Header().Set("Etag", fmt.Sprintf(`"%d"`, n))
		}
		fmt.Fprint(w, n)
	}, func(w *world) {
		w.expect("a", "/must", "0", false)
		w.expect("a", "/x", "1", false, "Cookie: id=1")
		w.expect("a", "/zero", "2", false, "Cookie: id=1")
		time.Sleep(5 * time.Second)
		w.expect("a", "/must", "3", false)
		w.expect("a", "/x", "4", false)
		w.expect("a", "/zero", "5", false)
	}, "a")
}

// An origin's no-store of a session does not count where a rule says so, unless a cookie or a token may have made the page.
func TestIgnoredOrigin(t *testing.T) {
	set := rules.Set{{Name: "1", IgnoreOrigin: []string{"cache-control", "expires"}, TTL: to(time.Minute), SetCookie: rules.Drop}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		h := w.Header()
		h.Set("Expires", "Thu, 19 Nov 1981 08:52:00 GMT")
		h.Set("Cache-Control", "no-store, no-cache, must-revalidate")
		h.Set("Pragma", "no-cache")
		h.Set("Etag", `"e"`)
		if r.Header["Cookie"] == nil && r.URL.Path == "/" {
			h.Add("Set-Cookie", "PHPSESSID=1")
		}
		if r.Header["If-None-Match"] != nil {
			w.WriteHeader(304)
			return
		}
		fmt.Fprint(w, n)
	}, func(w *world) {
		if r := w.expect("a", "/", "0", false); r.Header["Set-Cookie"] != nil {
			t.Errorf("the session is given away: %v", r.Header)
		}
		if r := w.expect("a", "/", "0", true); r.Header.Get("Cache-Control") != "no-store, no-cache, must-revalidate" {
			t.Errorf("browsers get %v", r.Header)
		}
		w.expect("a", "/c", "1", false, "Cookie: PHPSESSID=2")
		w.expect("a", "/c", "2", false)
		w.expect("a", "/t", "3", false, "Authorization: Bearer x")
		w.expect("a", "/t", "4", false)
		time.Sleep(2 * time.Minute)
		w.get("a", "/") // 304, whose no-store does not count either
		w.expect("a", "/", "0", true)
	}, "a")
	set = rules.Set{{Name: "1", IgnoreOrigin: []string{"cache-control"}, TTL: to(time.Minute), SetCookie: rules.Store}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Cache-Control", "private")
		w.Header().Set("Set-Cookie", "session=1")
		fmt.Fprint(w, n)
	}, func(w *world) {
		w.expect("a", "/", "0", false)
		w.expect("a", "/", "1", false)
	}, "a")
}

// Where only some fields are ignored, what a cookie may have made stays private by those, too.
func TestIgnoredForCookies(t *testing.T) {
	set := rules.Set{{Name: "1", IgnoreOrigin: []string{"cache-control"}, TTL: to(time.Minute)}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Cache-Control", "private")
		w.Header().Set("Expires", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		fmt.Fprint(w, n)
	}, func(w *world) {
		w.expect("a", "/x", "0", false, "Cookie: id=1")
		w.expect("a", "/x", "1", false, "Cookie: id=2")
		w.expect("a", "/x", "2", false, "Authorization: Bearer 1")
		w.expect("a", "/x", "3", false)
		w.expect("a", "/x", "3", true)
	}, "a")
}

// A client has no say in the key, whether a rule has one for its request or not.
func TestKeyIsNotTheClients(t *testing.T) {
	set := rules.Set{{Name: "1", Paths: []string{"/shop/*"}, Key: []string{"cookie.currency"}}, {Name: "2", TTL: to(time.Minute)}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) { fmt.Fprint(w, n) }, func(w *world) {
		w.expect("a", "/x", "0", false, rfc9111.KeyField+": cookie.currency=EUR")
		w.expect("a", "/x", "0", true)
		w.expect("a", "/shop/x", "1", false, rfc9111.KeyField+": cookie.currency=EUR")
		w.expect("a", "/shop/x", "1", true)
		w.expect("a", "/shop/x", "2", false, "Cookie: currency=EUR")
	}, "a")
}

// Fields and cookies in the key have an object each, which siblings find by them, too; what else is in the cookie field
// keeps an answer from being stored.
func TestKey(t *testing.T) {
	set := rules.Set{{Name: "1", Key: []string{"header.Accept", "cookie.currency"}, TTL: to(time.Minute)}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Vary", "Accept-Encoding")
		fmt.Fprintf(w, "%s %s", r.Header.Get("Accept"), r.Header.Get("Cookie"))
	}, func(w *world) {
		for _, peer := range []string{"a", "b"} {
			for i, c := range []struct {
				body   string
				fields []string
			}{
				{"x/a ", []string{"Accept: x/a"}}, {"x/b ", []string{"Accept: x/b"}}, {" ", nil},
				{"x/a currency=EUR", []string{"Accept: x/a", "Cookie: currency=EUR"}}, {"x/a currency=USD", []string{"Accept: x/a", "Cookie: currency=USD"}},
			} {
				r := w.expect(peer, "/", c.body, false, c.fields...)
				if vary := r.Header.Get("Vary"); vary != "Accept, Accept-Encoding, Cookie" {
					t.Errorf("Vary: %s", vary)
				}
				if peer == "b" && !strings.Contains(r.status(), "sibling") {
					t.Errorf("%d: %s", i, r.status())
				}
				w.expect(peer, "/", c.body, true, c.fields...)
			}
		}
		w.expect("a", "/", " currency=EUR; id=1", false, "Cookie: currency=EUR; id=1")
		w.expect("a", "/", " currency=EUR; id=1", false, "Cookie: currency=EUR; id=1")
		w.expect("a", "/", " currency=EUR; currency=USD", false, "Cookie: currency=EUR; currency=USD")
		w.expect("a", "/", " currency=EUR", false, "Cookie: currency=EUR", rfc9111.KeyField+": header.Accept=x%2Fa&cookie.currency=USD")
		w.expect("a", "/", " currency=EUR", true, "Cookie: currency=EUR", rfc9111.KeyField+": header.Accept=x%2Fa&cookie.currency=USD")
		if n, err := purge(w.peers["a"], "/", false); n == 0 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
	}, "a", "b")
}

// Answers to requests with a token are stored where a rule says for whom they are the same: for everybody, or for the
// holders of one token. Errors are not, unless the rule names their status.
func TestTokens(t *testing.T) {
	set := rules.Set{
		{Name: "1", Paths: []string{"/v2/*"}, Authorized: rules.Shared, TTL: to(time.Minute)},
		{Name: "2", Paths: []string{"/me/*"}, Key: []string{"header.Authorization"}, TTL: to(time.Minute)},
		{Name: "3", TTL: to(time.Minute)},
	}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		if strings.HasSuffix(r.URL.Path, "/none") {
			w.WriteHeader(404)
		}
		fmt.Fprint(w, n)
	}, func(w *world) {
		one, two := "Authorization: Bearer 1", "Authorization: Bearer 2"
		w.expect("a", "/v2/m", "0", false, one)
		w.expect("a", "/v2/m", "0", true, two)
		w.expect("a", "/v2/m", "0", true)
		w.expect("a", "/v2/none", "1", false, one)
		w.expect("a", "/v2/none", "2", false, two)
		w.expect("a", "/me/x", "3", false, one)
		w.expect("a", "/me/x", "3", true, one)
		if r := w.expect("a", "/me/x", "4", false, two); r.Header.Get("Vary") != "Authorization" {
			t.Errorf("%v", r.Header)
		}
		w.expect("a", "/me/x", "5", false)
		w.expect("a", "/me/x", "5", true)
		w.expect("a", "/other", "6", false, one)
		w.expect("a", "/other", "7", false, one)
		w.expect("a", "/v2//m", "8", false, one) // some origins take it for a path of rule 2
		w.expect("a", "/v2//m", "8", true, one)
		w.expect("a", "/v2//m", "9", false, two)
		if e, _, err := w.peers["a"].Explain("GET", "/me/x", http.Header{"Authorization": {"Bearer 1"}}); err != nil || e.Verdict != "hit" || strings.Contains(fmt.Sprint(e.Stored), "Bearer") {
			t.Errorf("%+v, %v", e, err)
		}
	}, "a")
	// With an ETag alone, each use is validated by the origin with the token of its client.
	ruledWorld(t, rules.Set{{Name: "1", Authorized: rules.Shared}}, func(w http.ResponseWriter, r *http.Request, n int) {
		switch w.Header().Set("Etag", `"1"`); {
		case r.Header.Get("Authorization") != "Bearer 1":
			w.WriteHeader(403)
		case r.Header["If-None-Match"] != nil:
			w.Header().Set("Cache-Control", "max-age=0")
			w.WriteHeader(304)
		}
		w.Header().Set("Cache-Control", "max-age=0")
		io.WriteString(w, "text")
	}, func(w *world) {
		for i := range 4 {
			if r := w.get("a", "/", "Authorization: Bearer 1"); r.body != "text" || i > 0 && !strings.Contains(r.status(), "fwd-status=304") {
				t.Errorf("%d: %q, %v", i, r.body, r.Header)
			}
			synctest.Wait()
		}
		if r := w.get("a", "/", "Authorization: Bearer 2"); r.StatusCode != 403 {
			t.Errorf("a stranger gets %d", r.StatusCode)
		}
	}, "a")
}

// Redirects of an origin to hosts that a rule names are followed inside, without the client's credentials, and their target is
// stored under the URL that was asked for. Others go to the client.
func TestFollow(t *testing.T) {
	set := rules.Set{{Name: "1", Paths: []string{"/v2/*"}, Follow: []string{"*.store.test", "origin.test"}, Authorized: rules.Shared, TTL: to(time.Minute)}}
	places := map[string]string{
		"/v2/blob": "http://a.store.test/signed?sig=1", "/v2/far": "http://evil.test/", "/v2/twice": "http://a.store.test/again", "/v2/loop": "http://a.store.test/loop",
		"/v2/here": "/v2/there", "/v2/bad": "http://u:p@a.store.test/", "/v2/file": "file:///etc/passwd", "/other": "http://a.store.test/signed",
	}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		if to := places[r.URL.Path]; to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(307)
			return
		}
		fmt.Fprintf(w, "home %s %s", r.URL.Path, r.Header.Get("Authorization"))
	}, func(w *world) {
		asked := 0
		w.serve("a.store.test:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			asked++
			for _, name := range []string{"Authorization", "Cookie", "X-Forwarded-For", "X-Forwarded-Proto"} {
				if r.Header[name] != nil {
					t.Errorf("the store gets %s: %v", name, r.Header)
				}
			}
			switch r.URL.Path {
			case "/again":
				http.Redirect(rw, r, "/signed", http.StatusFound)
			case "/loop":
				http.Redirect(rw, r, "/loop", http.StatusFound)
			default:
				http.ServeContent(rw, r, "", time.Time{}, strings.NewReader("0123456789"))
			}
		}))
		token := "Authorization: Bearer 1"
		w.expect("a", "/v2/blob", "0123456789", false, token)
		w.expect("a", "/v2/blob", "0123456789", true, token)
		w.expect("a", "/v2/blob", "23", true, token, "Range: bytes=2-3")
		w.expect("a", "/v2/twice", "0123456789", false, token)
		w.expect("a", "/v2/here", "home /v2/there Bearer 1", false, token)
		w.expect("a", "/v2/here", "home /v2/there Bearer 1", true, token)
		asked = 0
		if r := w.get("a", "/v2/loop"); r.StatusCode != 302 || asked != mostHops {
			t.Errorf("a loop: %d after %d", r.StatusCode, asked)
		}
		for _, path := range []string{"/v2/far", "/v2/bad", "/v2/file", "/other"} {
			if r := w.get("a", path); r.StatusCode != 307 || r.Header.Get("Location") != places[path] {
				t.Errorf("%s: %d, %v", path, r.StatusCode, r.Header)
			}
		}
		if r := w.do("a", "POST", "/v2/blob", "x"); r.StatusCode != 307 {
			t.Errorf("a POST is followed: %d", r.StatusCode)
		}
	}, "a")
}

// A client gets the operator's page instead of an error, of the origin or of the peer; what is stored stays as it is.
func TestErrorPage(t *testing.T) {
	page := &rules.Page{File: "sorry.html", Type: "text/html; charset=utf-8", Body: []byte("sorry")}
	set := rules.Set{{Name: "1", Statuses: []rules.Range{{From: 404, To: 404}, {From: 500, To: 599}}, ErrorPage: page}, {Name: "2", Paths: []string{"/deny"}, Deny: to(true)},
		{Name: "3", ResponseHeader: []rules.Field{outcomeField(t)}}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) {
		switch w.Header().Set("Etag", `"1"`); r.URL.Path {
		case "/404":
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(404)
		case "/503":
			w.WriteHeader(503)
		case "/gone":
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, strings.Repeat("the origin's own words. ", 100))
	}, func(w *world) {
		for _, c := range []struct {
			path, outcome string
			status        int
		}{
			{"/404", "miss", 404}, {"/404", "hit", 404}, {"/503", "miss", 503}, {"/gone", "miss", 502},
		} {
			r := w.get("a", c.path)
			synctest.Wait()
			if r.body != "sorry" || r.StatusCode != c.status || r.Header.Get("Content-Type") != page.Type || r.Header["Content-Encoding"] != nil || r.Header["Etag"] != nil ||
				r.ContentLength != 5 || r.Header.Get("X-Cache") != c.outcome || r.err != nil {
				t.Errorf("%s: %d %q %v %v", c.path, r.StatusCode, r.body, r.Header, r.err)
			}
		}
		if r := w.do("a", "HEAD", "/404", ""); r.body != "" || r.ContentLength != 5 || r.StatusCode != 404 {
			t.Errorf("HEAD: %d %q %v", r.StatusCode, r.body, r.Header)
		}
		if r := w.get("a", "/deny"); r.StatusCode != 403 || r.body == "sorry" {
			t.Errorf("a 403: %d %q", r.StatusCode, r.body)
		}
		if r := w.get("a", "/x"); len(r.body) != 2400 || r.Header.Get("X-Cache") != "miss" {
			t.Errorf("a good answer: %d bytes, %v", len(r.body), r.Header)
		}
	}, "a")
}

func outcomeField(t *testing.T) rules.Field {
	f := rules.Field{Name: "X-Cache", Value: "{outcome}"}
	if err := f.Refer(); err != nil {
		t.Fatal(err)
	}
	return f
}

// A response is stored when its URL has been fetched as often as a rule says.
func TestMinUses(t *testing.T) {
	set := rules.Set{{Name: "1", Paths: []string{"/x*"}, MinUses: to(uint64(3)), TTL: to(time.Minute)}, {Name: "2", TTL: to(time.Minute)}}
	ruledWorld(t, set, func(w http.ResponseWriter, r *http.Request, n int) { fmt.Fprint(w, n) }, func(w *world) {
		for i := range 3 {
			w.expect("a", "/x", fmt.Sprint(i), false)
		}
		w.expect("a", "/x", "2", true)
		w.expect("a", "/y", "3", false)
		w.expect("a", "/y", "3", true)
		w.expect("a", "/x?other", "4", false)
	}, "a")
	var u fetchCounts
	for i := range 1 << 18 { // a URL that is driven out is counted anew, and never counts more than it was used
		if n := u.add(fmt.Sprint(i)); n != 1 {
			t.Fatalf("%d was used once, and counts %d", i, n)
		}
	}
}
