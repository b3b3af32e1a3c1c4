package proxy

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func mustURLs(list ...string) (urls []*url.URL) {
	for _, s := range list {
		u, err := url.Parse(s)
		if err != nil {
			panic(err)
		}
		urls = append(urls, u)
	}
	return urls
}

// sited starts peers with sites whose origins answer with their name, the request and its Host.
func sited(t *testing.T, sites []Site, peers ...string) *world {
	w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) { t.Errorf("%s got a request", originHost) })
	w.tune = func(c *Config) { c.Origin, c.Sites = nil, sites }
	for _, name := range peers {
		w.start(name, t.TempDir())
	}
	return w
}

func (w *world) named(addr string) *http.Server {
	return w.serve(addr, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(rw, addr+" "+r.Host+r.URL.RequestURI())
	}))
}

// Hosts have separate URL spaces unless their site has a name, paths select among sites, and
// origins get the client's host.
func TestSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sited(t, []Site{
			{Hosts: []string{"one.test", "two.test"}, Origins: mustURLs("http://app:80")},
			{Hosts: []string{"one.test"}, Path: "/api/", Origins: mustURLs("http://api:80/v1")},
			{Hosts: []string{"one.test:9000"}, Origins: mustURLs("http://port:80")},
			{Hosts: []string{"[2001:db8::1]"}, Origins: mustURLs("http://app:80")},
			{Name: "shop", Hosts: []string{"www.shop.test", "*.shop.test"}, Origins: mustURLs("http://shop:80")},
			{Hosts: []string{"inner.test"}, Host: "app.internal", Origins: mustURLs("http://app:80")},
		}, "a", "b")
		defer w.close()
		for _, addr := range []string{"app:80", "api:80", "shop:80", "port:80"} {
			w.named(addr)
		}
		for _, c := range []struct {
			host, path string
			code       int
			body       string
			hit        bool
		}{
			{"one.test", "/x", 200, "app:80 one.test/x", false},
			{"one.test:8443", "/x", 200, "app:80 one.test:8443/x", false},
			{"One.Test:8443", "/x", 200, "app:80 one.test:8443/x", true},
			{"one.test:9000", "/x", 200, "port:80 one.test:9000/x", false},
			{"one.test.", "/x", 200, "app:80 one.test/x", true},
			{"one.test.:8443", "/x", 200, "app:80 one.test:8443/x", true},
			{"one.test:08443", "/x", 200, "app:80 one.test:8443/x", true},
			{"one.test.:0080", "/x", 200, "app:80 one.test/x", true},
			{"one.test:", "/x", 200, "app:80 one.test/x", true},
			{"[2001:db8::1]", "/x", 200, "app:80 [2001:db8::1]/x", false},
			{"[2001:DB8:0:0:0:0:0:1]", "/x", 200, "app:80 [2001:db8::1]/x", true},
			{"[2001:db8:0::1]:80", "/x", 200, "app:80 [2001:db8::1]/x", true},
			{"[2001:db8:0::1]:8080", "/x", 200, "app:80 [2001:db8::1]:8080/x", false},
			{"one.test:abc", "/x", 400, "", false},
			{"one.test:80a", "/x", 400, "", false},
			{"one.test:+80", "/x", 400, "", false},
			{"one.test:0", "/x", 400, "", false},
			{"one.test:65536", "/x", 400, "", false},
			{"one.test:80:80", "/x", 400, "", false},
			{"one..test", "/x", 400, "", false},
			{"one.test..", "/x", 400, "", false},
			{".", "/x", 400, "", false},
			{":80", "/x", 400, "", false},
			{"user@one.test", "/x", 400, "", false},
			{"one.test/x", "/x", 400, "", false},
			{"[::g]", "/x", 400, "", false},
			{"[2001:db8::1", "/x", 400, "", false},
			{"2001:db8::1", "/x", 400, "", false},
			{"[192.0.2.1]", "/x", 400, "", false},
			{"one.test", "/api/../x", 200, "app:80 one.test/x", true},
			{"www.shop.test:8443", "/y", 200, "shop:80 www.shop.test/y", false},
			{"www.shop.test", "/y", 200, "shop:80 www.shop.test/y", true},
			{"ONE.test:80", "/x", 200, "app:80 one.test/x", true},
			{"two.test", "/x", 200, "app:80 two.test/x", false},
			{"one.test", "/api/x", 200, "api:80 one.test/v1/api/x", false},
			{"one.test", "/api", 200, "api:80 one.test/v1/api", false},
			{"one.test", "/apix", 200, "app:80 one.test/apix", false},
			{"two.test", "/api/x", 200, "app:80 two.test/api/x", false},
			{"www.shop.test", "/x", 200, "shop:80 www.shop.test/x", false},
			{"a.b.shop.test", "/x", 200, "shop:80 www.shop.test/x", true},
			{"shop.test", "/x", 421, "", false},
			{"shop", "/x", 421, "", false},
			{"", "/x", 421, "", false},
			{"inner.test", "/x", 200, "app:80 app.internal/x", false},
		} {
			r := w.from("a", "192.0.2.1:1", "GET", c.path, "Host: "+c.host)
			synctest.Wait()
			if r.Code != c.code || c.body != "" && r.Body.String() != c.body || strings.Contains(r.Header().Get("Cache-Status"), "a; hit") != c.hit {
				t.Errorf("%s%s: %d %s %v, want %d %s, hit %v", c.host, c.path, r.Code, r.Body, r.Header()["Cache-Status"], c.code, c.body, c.hit)
			}
		}
		// Another peer of the cluster reaches the same sites at other addresses.
		for _, c := range []struct{ host, want string }{{"two.test", "a; hit"}, {"other.shop.test", "a; hit"}, {"b.shop.test", "b; hit"}} {
			r := w.from("b", "192.0.2.1:1", "GET", "/x", "Host: "+c.host)
			synctest.Wait()
			if got := strings.Join(r.Header()["Cache-Status"], ", "); !strings.Contains(got, c.want) {
				t.Errorf("%s at b: %s, want %s", c.host, got, c.want)
			}
		}
		if n, err := purge(w.peers["a"], "http://ONE.test.:0080/x", false); n != 1 || err != nil {
			t.Errorf("Purge by another spelling of the host = %d, %v", n, err)
		}
		if n, err := purge(w.peers["a"], "http://[2001:db8:0:0::1]/", true); n != 1 || err != nil {
			t.Errorf("Purge of a prefix by another spelling of the host = %d, %v", n, err)
		}
		if _, err := purge(w.peers["a"], "http://one.test:65536/x", false); err == nil {
			t.Errorf("a URL with a false port is purged")
		}
		if n, err := purge(w.peers["a"], "http://shop/x", false); n != 1 || err != nil {
			t.Errorf("Purge of the site's name = %d, %v", n, err)
		}
		if n, err := purge(w.peers["a"], "http://www.shop.test/x", false); n != 0 || err != nil {
			t.Errorf("Purge by host of a purged object = %d, %v", n, err)
		}
		if _, err := purge(w.peers["a"], "/x", false); err == nil {
			t.Errorf("a path without a site is purged")
		}
	})
}

// An origin whose answers are broken is one that fails: another one answers the request. If there is none, the client
// and the log get 502, and a counter knows of it.
func TestBrokenOrigins(t *testing.T) {
	for what, head := range map[string]string{"a status below 100": "HTTP/1.1 042 X", "a status above 599": "HTTP/1.1 999 X", "a name with a blank": "HTTP/1.1 200 OK\r\nCache-Control : private",
		"101 unasked": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x"} {
		synctest.Test(t, func(t *testing.T) {
			w := sited(t, []Site{{Hosts: []string{"one.test"}, Origins: mustURLs("http://broken:80")}, {Hosts: []string{"two.test"}, Origins: mustURLs("http://broken:80", "http://second:80")}}, "a")
			defer w.close()
			w.named("second:80")
			w.serve("broken:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				c, _, err := http.NewResponseController(rw).Hijack()
				if err != nil {
					t.Error(err)
				}
				io.WriteString(c, head+"\r\nContent-Length: 2\r\n\r\nok")
				c.Close()
			}))
			for _, upgrade := range []string{"Upgrade: websocket", "X-A: b"} {
				if r := w.from("a", "192.0.2.1:1", "GET", "/x", "Host: two.test", "Connection: Upgrade", upgrade); r.Code != 200 && upgrade[0] == 'X' {
					t.Errorf("%s, and another origin: %d", what, r.Code)
				}
				if r := w.from("a", "192.0.2.1:1", "GET", "/x", "Host: one.test", "Connection: Upgrade", upgrade); r.Code != 502 && !(what == "101 unasked" && upgrade[0] == 'U') {
					t.Errorf("%s, %s: %d, want 502", what, upgrade, r.Code)
				}
				synctest.Wait()
				if e := w.events["a"]; e[len(e)-1].Status != 502 && upgrade[0] == 'X' {
					t.Errorf("%s: logged as %d", what, e[len(e)-1].Status)
				}
			}
			if f := w.peers["a"].FailingOrigins(); len(f) != 1 || f[0].Host != "broken:80" {
				t.Errorf("%s: failing: %+v", what, f)
			}
			if n := w.peers["a"].Counters().OriginErrors; n == 0 {
				t.Errorf("%s: counted as no error", what)
			}
		})
	}
}

// A failing origin gets no requests for a while, and another origin answers the same request.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sited(t, []Site{{Origins: mustURLs("http://first:80", "http://second:80")}}, "a")
		defer w.close()
		second := w.named("second:80")
		get := func(path string) string {
			r := w.from("a", "192.0.2.1:1", "GET", path)
			synctest.Wait()
			return r.Body.String()
		}
		if got := get("/1"); !strings.HasPrefix(got, "second") {
			t.Errorf("with the first down: %s", got)
		}
		if f := w.peers["a"].FailingOrigins(); len(f) != 1 || f[0].Host != "first:80" {
			t.Errorf("failing: %+v", f)
		}
		w.named("first:80")
		if got := get("/2"); !strings.HasPrefix(got, "second") {
			t.Errorf("right after it failed: %s", got)
		}
		time.Sleep(restShortest + time.Millisecond)
		if got := get("/3"); !strings.HasPrefix(got, "first") {
			t.Errorf("after its rest: %s", got)
		}
		second.Close()
		if got := get("/4"); !strings.HasPrefix(got, "first") {
			t.Errorf("with the second down: %s", got)
		}
		if r := w.from("a", "192.0.2.1:1", "POST", "/5"); r.Code != 200 {
			t.Errorf("POST: %d", r.Code)
		}
	})
}

// A health check notices a failure, and a recovery, before a client does.
func TestHealthCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ok atomic.Bool
		ok.Store(true)
		w := sited(t, nil)
		defer w.close()
		w.serve("first:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !ok.Load() && r.URL.Path == "/up" {
				rw.WriteHeader(503)
			}
			io.WriteString(rw, "first "+r.Host)
		}))
		w.named("second:80")
		w.tune = func(c *Config) {
			c.Origin, c.Sites = nil, []Site{{Hosts: []string{"one.test"}, Check: "/up", Origins: mustURLs("http://first:80", "http://second:80")}}
		}
		w.start("a", t.TempDir())
		for i, c := range []struct {
			ok   bool
			want string
		}{{true, "first one.test"}, {false, "second"}, {true, "first"}} {
			ok.Store(c.ok)
			time.Sleep(checkEvery + time.Second)
			synctest.Wait()
			if r := w.from("a", "192.0.2.1:1", "GET", "/"+string(rune('a'+i)), "Host: one.test"); !strings.HasPrefix(r.Body.String(), c.want) {
				t.Errorf("with a check that passes %v: %s", c.ok, r.Body)
			}
		}
	})
}

// The pauses for a failing origin double up to their limit, however long it fails.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := twoOrigins(&bodiesOf{}, false)
		b := u.backends[0]
		for i := range 100 {
			b.fail()
			now, want := time.Now(), min(restShortest<<min(i, 10), restLongest)
			if !b.rests(now.Add(want-1)) || b.rests(now.Add(want)) {
				t.Fatalf("failure %d: the rest is not %v", i, want)
			}
			if c := u.candidates(now); len(c) != 2 || c[0] == b {
				t.Fatalf("an origin in its pause is tried first")
			}
			time.Sleep(want)
		}
	})
}

// Requests go to the origin with the fewest under way, and a request ends with its body.
func TestBalance(t *testing.T) {
	body := func() io.ReadCloser { return io.NopCloser(strings.NewReader("x")) }
	u := newUpstream(Site{Balance: true, Origins: mustURLs("http://a", "http://b", "http://c")},
		&origins{RoundTripper: bodied{body}, failings: &failings{}})
	asked := map[string]int{}
	var open []io.Closer
	for range 30 {
		b := u.candidates(time.Now())[0]
		r, _ := http.NewRequest("GET", b.url.String(), nil)
		resp, err := b.roundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		asked[b.url.Host]++
		open = append(open, resp.Body)
	}
	if asked["a"] != 10 || asked["b"] != 10 || asked["c"] != 10 {
		t.Errorf("requests: %v", asked)
	}
	for _, c := range open {
		c.Close()
		c.Close()
	}
	for _, b := range u.backends {
		if n := b.underWay.Load(); n != 0 {
			t.Errorf("%s: %d are under way at the end", b.url, n)
		}
	}
}

type bodied struct{ body func() io.ReadCloser }

func (a bodied) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: a.body(), Request: r}, nil
}

// An origin that switches protocols without being asked to has failed.
func TestUnaskedSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
		}, "a")
		defer w.close()
		for _, method := range []string{"GET", "POST"} {
			if r := w.do("a", method, "/x", ""); r.StatusCode != http.StatusBadGateway || !strings.Contains(r.status(), "detail=origin-failed") {
				t.Errorf("%s: %s, %v", method, r.Status, r.Header)
			}
		}
		if n := w.peers["a"].Counters().OriginErrors; n != 2 {
			t.Errorf("%d errors of the origin, want 2", n)
		}
	})
}

// A write invalidates the URLs in the response's Location and Content-Location in the form that
// clients use: with a prefix of the origin's path, under a site's name, and with either scheme.
func TestWritesReachWhatTheyName(t *testing.T) {
	for name, c := range map[string]struct {
		origin, host, keptAs string
		sites                []Site
		location             string
	}{
		"path of the origin":      {"http://app:80/v1", "", "", nil, "/v1/new"},
		"address of the origin":   {"http://app:80/v1", "", "", nil, "http://app/v1/new"},
		"without a prefix":        {"http://app:80", "", "", nil, "/new"},
		"host of a named site":    {"", "www.shop.test", "shop", []Site{{Name: "shop", Hosts: []string{"www.shop.test"}}}, "http://www.shop.test/new"},
		"host of a site":          {"", "www.shop.test", "", []Site{{Hosts: []string{"www.shop.test"}}}, "https://www.shop.test/new"},
		"path of a site's origin": {"", "www.shop.test", "", []Site{{Hosts: []string{"www.shop.test"}}}, "/new"},
	} {
		for _, field := range []string{"Location", "Content-Location"} {
			t.Run(name+"/"+field, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := sited(t, nil)
					defer w.close()
					w.serve("app:80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
						if r.Method == "POST" {
							rw.Header().Set(field, c.location)
							rw.WriteHeader(http.StatusCreated)
						}
						rw.Header().Set("Cache-Control", "max-age=60")
					}))
					w.tune = func(cfg *Config) {
						cfg.Origin, cfg.Sites = nil, c.sites
						if c.origin != "" {
							cfg.Origin = mustURLs(c.origin)[0]
						}
						for i := range cfg.Sites {
							cfg.Sites[i].Origins = mustURLs("http://app:80")
						}
						cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
					}
					w.start("a", t.TempDir())
					ask := func(method, path, scheme string) string {
						r := w.from("a", "192.0.2.1:1", method, path, "Host: "+c.host, "X-Forwarded-Proto: "+scheme)
						synctest.Wait()
						return r.Header().Get("Cache-Status")
					}
					for _, scheme := range []string{"http", "https"} {
						ask("GET", "/new", scheme)
						if got := ask("GET", "/new", scheme); !strings.Contains(got, "a; hit") {
							t.Fatalf("by %s: %s", scheme, got)
						}
					}
					ask("POST", "/list", "https")
					for _, scheme := range []string{"http", "https"} {
						if got := ask("GET", "/new", scheme); strings.Contains(got, "a; hit") {
							t.Errorf("after a write by https, by %s: %s", scheme, got)
						}
					}
					page := "/new"
					if c.host != "" {
						page = "http://" + c.host + "/new"
					}
					if c.keptAs != "" {
						page = "http://" + c.keptAs + "/new"
					}
					if n, err := purge(w.peers["a"], page, false); n != 2 || err != nil {
						t.Errorf("Purge(%s) = %d, %v, want the responses of both schemes", page, n, err)
					}
				})
			})
		}
	}
}
