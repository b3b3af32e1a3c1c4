package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// siteFile returns a file of deploy/sites with other values in some places; each must be there.
func siteFile(t *testing.T, name string, replaced ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("deploy", "sites", name))
	if err != nil {
		t.Fatal(err)
	}
	s := string(text)
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(s, replaced[i]) {
			t.Fatalf("%s has no %s", name, replaced[i])
		}
		s = strings.ReplaceAll(s, replaced[i], replaced[i+1])
	}
	return write(t, name, s)
}

// A site is a peer before an origin that numbers its answers.
type siteUnderTest struct {
	t    *testing.T
	p    started
	host string
}

// hit asks until the answer comes from the cache, and returns it.
func (s siteUnderTest) hit(path string, fields ...string) (r *http.Response, body string) {
	s.t.Helper()
	eventually(s.t, time.Minute, path+" is a hit", func() bool {
		r, body = ask(s.t, s.p.listen, path, s.host, fields...)
		return strings.Contains(r.Header.Get("Cache-Status"), "; hit")
	})
	return r, body
}

// miss asks twice; neither answer comes from the cache, and they differ.
func (s siteUnderTest) miss(path string, fields ...string) *http.Response {
	s.t.Helper()
	_, one := ask(s.t, s.p.listen, path, s.host, fields...)
	r, two := ask(s.t, s.p.listen, path, s.host, fields...)
	if one == two || strings.Contains(r.Header.Get("Cache-Status"), "; hit") {
		s.t.Errorf("%s with %q: %q, then %q, %v", path, fields, one, two, r.Header)
	}
	return r
}

// Every file of deploy/sites opens with what it stands for, and validate finds nothing to say about it.
func TestSiteFilesAreGood(t *testing.T) {
	files, err := filepath.Glob("deploy/sites/*.yaml")
	if err != nil || len(files) != 5 {
		t.Fatalf("%v, %v", files, err)
	}
	sorry, err := filepath.Abs("deploy/sites/sorry.html")
	if err != nil {
		t.Fatal(err)
	}
	stands := regexp.MustCompile(`^# [^\n]* Stands for this (VCL|nginx\.conf):\n#\n#   \S`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !stands.Match(text) {
			t.Errorf("%s: %v, begins with %.80q", file, err, text)
		}
		config := write(t, "peer.yaml", strings.ReplaceAll(string(text), "/etc/peer/sorry.html", sorry))
		said := words(t, 0, "validate", "--config", config, "--store", t.TempDir())
		holds(t, said, "The configuration is good.")
		if strings.Contains(said, "Warning") {
			t.Errorf("%s: %s", file, said)
		}
	}
}

func TestWordPressFile(t *testing.T) {
	var n atomic.Int64
	down := atomic.Bool{}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(503)
			return
		}
		h := w.Header()
		h.Set("X-Powered-By", "PHP/8.4")
		h.Set("Content-Type", "text/html; charset=UTF-8")
		switch {
		case strings.HasPrefix(r.URL.Path, "/wp-content/"):
			h.Set("Content-Type", "text/css")
		case r.URL.Path == "/none":
			w.WriteHeader(404)
		default: // as PHP's sessions and WooCommerce do
			h.Set("Expires", "Thu, 19 Nov 1981 08:52:00 GMT")
			h.Set("Cache-Control", "no-store, no-cache, must-revalidate")
			h.Set("Set-Cookie", "PHPSESSID=1; path=/")
		}
		fmt.Fprintf(w, "%d %s %s", n.Add(1), r.URL.RequestURI(), r.Header.Get("Cookie"))
	}))
	defer app.Close()
	s := siteUnderTest{t, inProcess(t, local(t, "a", "--config", siteFile(t, "wordpress.yaml", "http://10.0.0.9:8080", app.URL))), "shop.example"}
	r, page := s.hit("/hello/?utm_source=x&b=2&a=1&fbclid=y", "Cookie: _ga=1; currency=EUR")
	if !strings.HasSuffix(page, " /hello/?a=1&b=2 currency=EUR") || r.Header["Set-Cookie"] != nil || r.Header["X-Powered-By"] != nil || r.Header.Get("X-Cache") != "hit" || r.Header.Get("Vary") != "Cookie" {
		t.Errorf("%s, %v", page, r.Header)
	}
	if _, other := s.hit("/hello/?a=1&b=2", "Cookie: currency=USD"); other == page || !strings.HasSuffix(other, "currency=USD") {
		t.Errorf("another currency gets %s", other)
	}
	if _, same := s.hit("/hello/?b=2&a=1", "Cookie: x=y; currency=EUR"); same != page {
		t.Errorf("another order: %s", same)
	}
	s.hit("/wp-content/x.css", "Cookie: wordpress_test_cookie=1")
	s.hit("/none")
	s.miss("/hello/", "Cookie: wordpress_logged_in_1=a")
	s.miss("/hello/", "Cookie: woocommerce_items_in_cart=1; currency=EUR")
	for _, path := range []string{"/cart/", "/checkout/", "/my-account/orders", "/wp-admin/index.php", "/hello/?add-to-cart=5", "/?wc-ajax=get_refreshed_fragments", "/wp-content/..%2fcart/", "/shop//x"} {
		s.miss(path)
	}
	down.Store(true)
	if _, still := s.hit("/hello/?a=1&b=2", "Cookie: currency=EUR"); still != page {
		t.Errorf("while the shop is down: %s", still)
	}
	holds(t, words(t, 0, "validate", "--config", siteFile(t, "wordpress.yaml"), "--store", t.TempDir(), "--explain", "http://shop.example/cart/"), "bypass")
}

func TestMicrocacheFile(t *testing.T) {
	var n atomic.Int64
	status := atomic.Int64{}
	status.Store(200)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store, no-cache")
		w.Header().Set("Expires", "Thu, 19 Nov 1981 08:52:00 GMT")
		w.Header().Set("Set-Cookie", "PHPSESSID=2")
		w.WriteHeader(int(status.Load()))
		fmt.Fprint(w, n.Add(1))
	}))
	defer app.Close()
	sorry, _ := filepath.Abs("deploy/sites/sorry.html")
	s := siteUnderTest{t, inProcess(t, local(t, "a", "--config", siteFile(t, "microcache.yaml", "http://127.0.0.1:8080", app.URL, "/etc/peer/sorry.html", sorry))), "x.test"}
	r, first := s.hit("/")
	if r.Header["Set-Cookie"] != nil || r.Header.Get("X-Cache-Status") != "hit" {
		t.Errorf("%v", r.Header)
	}
	s.miss("/", "Cookie: PHPSESSID=1")
	s.miss("/?nocache=1")
	eventually(t, time.Minute, "the page is fetched aside", func() bool { _, body := ask(t, s.p.listen, "/", "x.test"); return body != first })
	status.Store(503)
	if _, body := s.hit("/"); body == "" || strings.Contains(body, "Sorry") {
		t.Errorf("while PHP fails: %q", body)
	}
	if r, body := ask(t, s.p.listen, "/other", "x.test"); r.StatusCode != 503 || !strings.Contains(body, "<title>Sorry</title>") || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%s %q %v", r.Status, body, r.Header)
	}
}

// A mirror of a registry that wants tokens, answers manifests by Accept, and has its blobs elsewhere, behind 307. skopeo
// pulls an image twice; the second time nothing of it comes from the registry or the store.
func TestRegistryFile(t *testing.T) {
	from := newRegistry(t, 3<<20, 1<<20)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Authorization"] != nil || r.URL.Query().Get("sig") != "1" {
			t.Errorf("the store gets %s %v", r.URL, r.Header)
		}
		body := from.blobs[strings.TrimPrefix(r.URL.Path, "/blob/")]
		w.Header().Set("Etag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
		http.ServeContent(&counting{w, from}, r, "", time.Time{}, bytes.NewReader(body))
	}))
	defer store.Close()
	var realm string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := regexp.MustCompile(`^/v2/image/(blobs|manifests)/(.*)$`).FindStringSubmatch(r.URL.Path)
		switch {
		case r.URL.Path == "/token":
			json.NewEncoder(w).Encode(map[string]string{"token": "t"})
		case r.Header.Get("Authorization") != "Bearer t":
			w.Header().Set("Www-Authenticate", `Bearer realm="`+realm+`/token",service="x"`)
			w.WriteHeader(401)
		case kind != nil && kind[1] == "blobs":
			http.Redirect(w, r, store.URL+"/blob/"+url.PathEscape(kind[2])+"?sig=1", http.StatusTemporaryRedirect)
		case kind != nil && !strings.Contains(r.Header.Get("Accept"), "application/vnd.oci.image.manifest.v1+json"):
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v1+json") // of an old client
			from.sent.Add(2)
			io.WriteString(w, "{}")
		default:
			from.ServeHTTP(w, r)
		}
	}))
	defer front.Close()
	realm = front.URL
	host, _, _ := strings.Cut(store.Listener.Addr().String(), ":")
	file := func() string {
		return siteFile(t, "registry.yaml", "  - hosts: [registry.example]\n    origins:", "  - name: registry.example\n    origins:", "https://registry-1.docker.io", front.URL,
			"production.cloudfront.docker.com", host, "    origin-host: registry-1.docker.io\n", "")
	}
	a := inProcess(t, local(t, "a", "--config", file()))
	s := siteUnderTest{t, a, "registry.example"}
	token := "Authorization: Bearer t"
	manifest := "Accept: application/vnd.oci.image.manifest.v1+json"
	if _, body := s.hit("/v2/image/manifests/latest", token, manifest); !strings.Contains(body, "layers") {
		t.Errorf("%.80s", body)
	}
	if _, body := s.hit("/v2/image/manifests/latest", token, "Accept: */*"); body != "{}" {
		t.Errorf("another Accept: %.80s", body)
	}
	if r, _ := ask(t, a.listen, "/v2/", "registry.example"); r.StatusCode != 401 {
		t.Errorf("without a token: %s", r.Status)
	}
	skopeo, err := exec.LookPath("skopeo")
	if err != nil {
		t.Skip("skopeo is not here")
	}
	for i := range 2 {
		before := from.sent.Load()
		if err := from.pull(skopeo, a.listen, t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if sent := from.sent.Load() - before; i == 1 && sent > 0 {
			t.Errorf("%d bytes for the second pull", sent)
		}
		if i == 0 {
			for digest := range from.layers {
				s.hit("/v2/image/blobs/"+digest, token)
			}
			s.hit("/v2/image/manifests/latest", token, manifest)
		}
	}
}

func TestMirrorFile(t *testing.T) {
	var n atomic.Int64
	down := atomic.Bool{}
	origin := func(name string) *httptest.Server {
		app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				w.WriteHeader(500)
				return
			}
			if r.Host != name {
				t.Errorf("%s gets the host %s", name, r.Host)
			}
			w.Header().Set("Etag", fmt.Sprintf(`"%s"`, r.Header.Get("Accept")))
			if name == "registry.npmjs.org" {
				w.Header().Set("Cache-Control", "public, max-age=300")
			}
			fmt.Fprintf(w, "%d %s %s", n.Add(1), r.URL.RequestURI(), r.Header.Get("Accept"))
		}))
		t.Cleanup(app.Close)
		return app
	}
	p := inProcess(t, local(t, "a", "--config", siteFile(t, "mirror.yaml", "http://deb.debian.org", origin("deb.debian.org").URL, "https://registry.npmjs.org", origin("registry.npmjs.org").URL)))
	deb, npm := siteUnderTest{t, p, "deb.example"}, siteUnderTest{t, p, "npm.example"}
	life := func(s siteUnderTest, path string, least, most time.Duration, fields ...string) string {
		t.Helper()
		r, body := s.hit(path, append(fields, "Cache-Control: no-cache")...) // apt and npm send it
		_, after, _ := strings.Cut(r.Header.Get("Cache-Status"), "ttl=")
		ttl, err := time.ParseDuration(after + "s")
		if err != nil || ttl < least || ttl > most {
			t.Errorf("%s: %v", path, r.Header)
		}
		return body
	}
	day := 24 * time.Hour
	life(deb, "/debian/pool/main/h/hello/hello_2.10-3_amd64.deb", 29*day, 31*day)
	life(deb, "/debian/dists/stable/main/by-hash/SHA256/abc", 29*day, 31*day)
	life(deb, "/debian/dists/stable/InRelease", time.Minute, 5*time.Minute)
	life(npm, "/left-pad/-/left-pad-1.3.0.tgz", 29*day, 31*day)
	life(npm, "/@scope/x/-/x-1.0.0.tgz", 29*day, 31*day)
	short, full := "Accept: application/vnd.npm.install-v1+json", "Accept: application/json"
	if one, two := life(npm, "/@scope%2fx", time.Minute, 5*time.Minute, short), life(npm, "/@scope%2fx", time.Minute, 5*time.Minute, full); one == two {
		t.Errorf("two formats of the metadata are one object: %s", one)
	}
	down.Store(true)
	if r, _ := deb.hit("/debian/dists/stable/InRelease"); r.StatusCode != 200 {
		t.Errorf("while the origin is down: %s", r.Status)
	}
}

func TestAPIFile(t *testing.T) {
	var n atomic.Int64
	down := atomic.Bool{}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch tag := fmt.Sprintf(`"%s"`, r.URL.Path); {
		case down.Load():
			w.WriteHeader(503)
		case strings.HasPrefix(r.URL.Path, "/items/") && r.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(403)
		case strings.HasPrefix(r.URL.Path, "/items/") && r.Header.Get("If-None-Match") == tag:
			w.WriteHeader(304)
		default:
			w.Header().Set("Etag", tag)
			fmt.Fprintf(w, "%d %s", n.Add(1), r.Header.Get("Authorization"))
		}
	}))
	defer app.Close()
	p := inProcess(t, local(t, "a", "--config", siteFile(t, "api.yaml", "http://10.0.0.9:8080", app.URL)))
	s := siteUnderTest{t, p, "api.test"}
	one, two := "Authorization: Bearer good", "Authorization: Bearer other"
	if r, _ := s.hit("/public/x", one); r.Header.Get("Access-Control-Allow-Origin") != "*" || r.Header.Get("X-Cache") != "hit" {
		t.Errorf("%v", r.Header)
	}
	if _, body := s.hit("/public/x", two); !strings.HasSuffix(body, "good") {
		t.Errorf("public for another token: %s", body)
	}
	if _, body := s.hit("/me/x", one); !strings.HasSuffix(body, "good") {
		t.Errorf("me: %s", body)
	}
	if _, body := s.hit("/me/x", two); !strings.HasSuffix(body, "other") {
		t.Errorf("me of another token: %s", body)
	}
	eventually(t, time.Minute, "an item is validated by its ETag", func() bool {
		r, body := ask(t, p.listen, "/items/1", "api.test", one)
		return strings.Contains(r.Header.Get("Cache-Status"), "fwd-status=304") && strings.HasSuffix(body, "good")
	})
	if r, _ := ask(t, p.listen, "/items/1", "api.test", two); r.StatusCode != 403 {
		t.Errorf("an item for another token: %s", r.Status)
	}
	ask(t, p.listen, "/items/1", "api.test", one)
	if r, _ := ask(t, p.listen, "/internal/x", "api.test"); r.StatusCode != 200 {
		t.Errorf("internal from this machine: %s", r.Status)
	}
	s.miss("/public/x?fresh=1")
	down.Store(true)
	if r, _ := ask(t, p.listen, "/items/1", "api.test", two); r.StatusCode != 503 {
		t.Errorf("an item while nobody checks tokens: %s", r.Status)
	}
}
