package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
)

// from sends a request as if from a remote address: clients over pipes have none.
func (w *world) from(peer, remote, method, target string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr, r.RequestURI, r.Method = remote, target, method // any method, as over HTTP/2
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	if strings.HasPrefix(target, "/") {
		r.Host = "front.test"
		if h := r.Header.Get("Host"); h != "" {
			r.Host = h
			r.Header.Del("Host")
		}
	}
	answer := httptest.NewRecorder()
	w.peers[peer].ServeHTTP(answer, r)
	return answer
}

func trusting(cidrs ...string) func(*Config) {
	return func(c *Config) {
		for _, s := range cidrs {
			c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(s))
		}
	}
}

// Forwarding fields are believed only from trusted proxies, and replaced in requests from others.
func TestWhoIsAsking(t *testing.T) {
	const terminator, stranger = "10.1.0.1:4000", "192.0.2.7:4000"
	for name, c := range map[string]struct {
		from   string
		fields []string
		want   string // of the origin's request
		client string
	}{
		"plain":                         {stranger, nil, "X-Forwarded-For: 192.0.2.7 | X-Forwarded-Proto: http | X-Forwarded-Host: | Forwarded:", "192.0.2.7"},
		"a stranger's claims":           {stranger, []string{"X-Forwarded-For: 10.0.0.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.test", "Forwarded: proto=https;host=evil.test"}, "X-Forwarded-For: 192.0.2.7 | X-Forwarded-Proto: http | X-Forwarded-Host: | Forwarded:", "192.0.2.7"},
		"a terminator's":                {terminator, []string{"X-Forwarded-For: 192.0.2.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: Shop.test"}, "X-Forwarded-For: 192.0.2.9, 10.1.0.1 | X-Forwarded-Proto: https | X-Forwarded-Host: shop.test | Forwarded:", "192.0.2.9"},
		"what it passed on of a client": {terminator, []string{"X-Forwarded-For: 192.0.2.9", "Forwarded: for=1.1.1.1;host=evil.test;proto=https"}, "X-Forwarded-For: 192.0.2.9, 10.1.0.1 | X-Forwarded-Proto: http | X-Forwarded-Host: | Forwarded:", "192.0.2.9"},
		"by Forwarded":                  {terminator, []string{`Forwarded: for=192.0.2.9;proto=http, for="[2001:db8::1]";host="shop.test:8443";proto=https`}, `X-Forwarded-Proto: https | X-Forwarded-Host: shop.test:8443 | Forwarded: for=192.0.2.9, for="[2001:db8::1]", for=10.1.0.1`, "2001:db8::1"},
		"Forwarded without a hop":       {terminator, []string{"Forwarded: host=shop.test, 192.0.2.1"}, "Forwarded:", "10.1.0.1"},
		"hops of Forwarded":             {terminator, []string{`Forwarded: for="192.0.2.9:80";by=_x, For=10.1.2.3`}, "X-Forwarded-For: 10.1.0.1", "192.0.2.9"},
		"a hidden hop":                  {terminator, []string{"Forwarded: for=192.0.2.9, for=_hidden"}, "X-Forwarded-For: 10.1.0.1", "10.1.0.1"},
		"with a port":                   {terminator, []string{"X-Forwarded-For: 1.1.1.1, 192.0.2.9:51234"}, "X-Forwarded-For: 1.1.1.1, 192.0.2.9:51234, 10.1.0.1", "192.0.2.9"},
		"IPv6 with a port":              {terminator, []string{"X-Forwarded-For: [2001:db8::1]:51234, [::ffff:10.1.2.3]"}, "", "2001:db8::1"},
		"IPv4 as IPv6":                  {terminator, []string{"X-Forwarded-For: ::ffff:192.0.2.9"}, "", "192.0.2.9"},
		"no address":                    {terminator, []string{"X-Forwarded-For: 192.0.2.9, unknown"}, "", "10.1.0.1"},
		"two terminators":               {terminator, []string{"X-Forwarded-For: 192.0.2.9, 10.1.2.3", "X-Forwarded-Proto: http, https"}, "X-Forwarded-For: 192.0.2.9, 10.1.2.3, 10.1.0.1 | X-Forwarded-Proto: https", "192.0.2.9"},
		"a host that is none":           {terminator, []string{"X-Forwarded-Host: a/b?c"}, "X-Forwarded-Host:", "10.1.0.1"},
		"fields that nobody is believed in": {terminator, []string{"X-Forwarded-Scheme: https", "X-Forwarded-Ssl: on", "Front-End-Https: on", "X-HTTP-Method-Override: DELETE", "X-Real-IP: 1.1.1.1", "True-Client-IP: 1.1.1.1", "Client-IP: 1.1.1.1", "Proxy: http://evil.test", "X-Original-URL: /admin"},
			"X-Forwarded-Scheme: | X-Forwarded-Ssl: | Front-End-Https: | X-Http-Method-Override: | X-Real-Ip: | True-Client-Ip: | Client-Ip: | Proxy: | X-Original-Url:", "10.1.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, true, cached("x"))
				w.tune = trusting("10.1.0.0/16")
				h := w.start("a", t.TempDir())
				defer w.close()
				w.from("a", c.from, "GET", "/x", c.fields...)
				checkFields(t, "origin's request", w.origin.last().Header, c.want)
				r := httptest.NewRequest("GET", "/x", nil)
				r.RemoteAddr = c.from
				for _, f := range c.fields {
					name, value, _ := strings.Cut(f, ": ")
					r.Header.Add(name, value)
				}
				if got := h.applied.Load().client(r); got != c.client {
					t.Errorf("Client() = %s, want %s", got, c.client)
				}
			})
		})
	}
}

// With an application that redirects http to https, each scheme gets its own response.
func TestSchemeIsInTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			if r.Header.Get("X-Forwarded-Proto") == "https" {
				io.WriteString(w, "secure at "+r.Header.Get("X-Forwarded-Host"))
				return
			}
			http.Redirect(w, r, "https://front.test/x", http.StatusMovedPermanently)
		})
		w.tune = trusting("10.0.0.0/8")
		w.start("a", t.TempDir())
		defer w.close()
		for range 2 {
			if r := w.from("a", "192.0.2.7:1", "GET", "/x"); r.Code != 301 || r.Header().Get("Location") != "https://front.test/x" {
				t.Errorf("by http: %d, %v", r.Code, r.Header())
			}
			for _, host := range []string{"one.test", "two.test"} {
				r := w.from("a", "10.0.0.1:1", "GET", "/x", "X-Forwarded-Proto: https", "X-Forwarded-Host: "+host)
				if r.Code != 200 || r.Body.String() != "secure at "+host {
					t.Errorf("by https: %d, %v, %s", r.Code, r.Header(), r.Body)
				}
			}
			synctest.Wait()
		}
		if n := w.origin.count(); n != 3 {
			t.Errorf("the origin got %d requests, want 3", n)
		}
	})
}

// Lookups at siblings use the keys of the clients of a trusted proxy.
func TestTrustedKeysAtSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, cached("x"))
		w.tune = trusting("10.0.0.0/8")
		w.start("a", t.TempDir())
		w.start("b", t.TempDir())
		defer w.close()
		fields := []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: one.test"}
		w.from("a", "10.0.0.1:1", "GET", "/x", fields...)
		synctest.Wait()
		r := w.from("b", "10.0.0.1:1", "GET", "/x", fields...)
		if got := strings.Join(r.Header()["Cache-Status"], ", "); !strings.Contains(got, "a; hit") {
			t.Errorf("Cache-Status: %s", got)
		}
		if r := w.from("b", "192.0.2.1:1", "GET", "http://one.test/x"); r.Code != http.StatusMisdirectedRequest {
			t.Errorf("another host, by a client: %d", r.Code)
		}
	})
}

// A response that varies by the client is not stored, since the client is not part of any key.
func TestVaryByClientIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("Vary", "Accept, x-forwarded-for")
			io.WriteString(w, r.Header.Get("X-Forwarded-For"))
		}, "a")
		defer w.close()
		for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
			if r := w.from("a", ip+":1", "GET", "/x"); r.Body.String() != ip {
				t.Errorf("%s got the response for %s", ip, r.Body)
			}
			synctest.Wait()
		}
	})
}

func TestLocationIsMappedBack(t *testing.T) {
	for _, c := range []struct{ at, origin, scheme, host, want string }{
		{"http://127.0.0.1:8080/dir/", "http://127.0.0.1:8080", "http", "", "/dir/"},
		{"http://127.0.0.1:8080/dir/?a=b#c", "http://127.0.0.1:8080", "https", "shop.test", "/dir/?a=b#c"},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080", "http", "", "/"},
		{"http://127.0.0.1:8080//evil.test/x", "http://127.0.0.1:8080", "http", "", "/.//evil.test/x"},
		{"https://app.test/x", "http://app.test:80", "http", "", "https://app.test/x"},
		{"https://app.test/x", "http://app.test", "http", "shop.test", "https://shop.test/x"},
		{"https://app.test/x", "http://app.test", "https", "", "/x"},
		{"http://app.test/base/x", "http://app.test/base", "http", "", "/x"},
		{"http://app.test/base", "http://app.test/base/", "http", "", "/"},
		{"/base/x", "http://app.test/base", "http", "", "/x"},
		{"http://app.test/based/x", "http://app.test/base", "http", "", "http://app.test/based/x"},
		{"http://elsewhere.test/x", "http://app.test", "http", "", "http://elsewhere.test/x"},
		{"/x", "http://app.test", "http", "", "/x"},
		{"x/y", "http://app.test/base", "http", "", "x/y"},
	} {
		u := newUpstream(Site{Origins: mustURLs(c.origin)}, nil)
		h := http.Header{"Location": {c.at}}
		u.mapBack(h, c.scheme, c.host)
		if got := h.Get("Location"); got != c.want {
			t.Errorf("Location %s of %s for %s://%s = %s, want %s", c.at, c.origin, c.scheme, c.host, got, c.want)
		}
	}
}
