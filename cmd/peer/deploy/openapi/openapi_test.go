// Package openapi holds what a peer's admin listener answers against its description. It is a
// module of its own, so that nobody inherits its dependencies.
package openapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// TestAnswers asks two running peers for everything that the description has, right and
// wrong, and compares each answer with it.
func TestAnswers(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Cache-Tag", "news")
		fmt.Fprint(w, "body")
	}))
	defer origin.Close()
	binary := filepath.Join(t.TempDir(), "peer")
	build := exec.Command("go", "build", "-o", binary, "./cmd/peer")
	build.Dir = "../../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a := run(t, binary, "a", origin.URL)
	b := run(t, binary, "b", origin.URL, "--join", a.gossip)
	for _, at := range []string{a.listen, b.listen} {
		get(t, "http://"+at+"/x")
	}
	d := describedAt(t, a.admin)
	link, err := exec.Command(binary, "open", "--admin", a.admin).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(strings.TrimSpace(string(link)), "#token=")
	eventually(t, "the peers know each other", func() bool {
		return strings.Contains(get(t, "http://"+a.admin+"/status.json"), `"name": "b"`)
	})
	asked := map[string]bool{}
	for _, q := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/", "", 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/readyz", "", 200},
		{"GET", "/status", "", 200},
		{"GET", "/status.json", "", 200},
		{"GET", "/cluster.json", "", 200},
		{"GET", "/events.json", "", 200},
		{"GET", "/history.json", "", 200},
		{"GET", "/history.json?since=2026-01-02T03:04:05%2B01:00", "", 200},
		{"GET", "/metrics", "", 200},
		{"GET", "/openapi.json", "", 200},
		{"GET", "/why?url=/x", "", 200},
		{"GET", "/why?url=/none&method=POST&header=Accept:%20text/html", "", 200},
		{"GET", "/why?url=/x&header=nothing", "", 400},
		{"GET", "/digest", "", 200},
		{"GET", "/digest?peer=b", "", 200},
		{"GET", "/digest?peer=nobody", "", 404},
		{"POST", "/purge", `{"url":"/x","everywhere":true}`, 200},
		{"POST", "/purge", `{"url":"/","prefix":true,"soft":true}`, 200},
		{"POST", "/purge", `{"tags":["news"]}`, 200},
		{"POST", "/purge", `{"url":"http://"}`, 400},
		{"GET", "/misses.json?last=5&everywhere=1", "", 200},
		{"GET", "/misses.json?last=-1", "", 400},
		{"POST", "/reload", `{"dry_run":true}`, 200},
		{"POST", "/session", `{}`, 200},
		{"POST", "/session", `{}`, 401}, // without the token
		{"POST", "/replace", `{}`, 200}, // the last one: it is the same program
	} {
		r, err := http.NewRequest(q.method, "http://"+a.admin+q.path, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		if q.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if q.status != http.StatusUnauthorized {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		path, _, _ := strings.Cut(q.path, "?")
		asked[q.method+" "+path] = true
		if status := d.check(t, r, q.body); status != q.status {
			t.Errorf("%s %s: %d, want %d", q.method, q.path, status, q.status)
		}
	}
	for path, item := range d.doc.Paths.Map() {
		for method := range item.Operations() {
			if !asked[method+" "+path] {
				t.Errorf("%s %s is described, and was not asked for", method, path)
			}
		}
	}
}

// A description is what a peer says that it answers.
type description struct {
	doc    *openapi3.T
	router routers.Router
}

func describedAt(t *testing.T, admin string) description {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(get(t, "http://"+admin+"/openapi.json")))
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = openapi3.Servers{{URL: "http://" + admin}}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return description{doc, router}
}

// check sends a request, and compares both it and the answer with the description.
func (d description) check(t *testing.T, r *http.Request, body string) int {
	t.Helper()
	route, params, err := d.router.FindRoute(r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true}}
	if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	r.Body = io.NopCloser(strings.NewReader(body))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{RequestValidationInput: in,
		Status: resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(got)), Options: in.Options}); err != nil {
		t.Errorf("%s %s, answered %d: %v", r.Method, r.URL, resp.StatusCode, err)
	}
	return resp.StatusCode
}

// peer is where one listens.
type peer struct{ listen, admin, gossip string }

// run starts a peer that ends with the test.
func run(t *testing.T, binary, name, origin string, args ...string) (p peer) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"run", "--name", name, "--origin", origin, "--store", t.TempDir(),
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, _ := fmt.Sscanf(strings.ReplaceAll(lines.Text(), ",", " "), name+" is up: listen %s admin %s gossip %s", &p.listen, &p.admin, &p.gossip); n == 3 {
			go io.Copy(io.Discard, out)
			return p
		}
	}
	t.Fatalf("%s ended", name)
	return p
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(b)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
