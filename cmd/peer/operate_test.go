package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/digest"
)

// pair starts two peers in a cluster with a secret, in front of a site, and waits until each has
// the other's empty digest.
func pair(t *testing.T, s *site) (a, b started) {
	t.Helper()
	secret := write(t, "secret", "0123456789abcdef0123456789abcdef")
	a = inProcess(t, local(t, "a", "--origin", s.url, "--secret-file", secret))
	b = inProcess(t, local(t, "b", "--origin", s.url, "--secret-file", secret, "--join", a.gossip))
	eventually(t, time.Minute, "the peers know each other", func() bool {
		for _, p := range []started{a, b} {
			s, err := admin.Client(p.admin).Status(t.Context())
			if err != nil || len(s.Members) != 1 || !s.Members[0].Current {
				return false
			}
		}
		return true
	})
	return a, b
}

// words calls the program and returns its output, with runs of white space replaced by single
// spaces.
func words(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(t, args...)
	if code != want {
		t.Errorf("peer %q = %d\n%s%s", args, code, stdout, stderr)
	}
	return strings.Join(strings.Fields(stdout+" "+stderr), " ")
}

func holds(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// An operator's session: why, inspect and purge, each as text and as JSON.
func TestOperate(t *testing.T) {
	s := newSite(t, 20, 100)
	a, b := pair(t, s)
	s.fill(t, a.listen, 0, 20)
	eventually(t, time.Minute, "b knows what a holds", func() bool {
		st, err := admin.Client(b.admin).Status(t.Context())
		return err == nil && st.Members[0].Keys == 20 && st.Members[0].Current
	})

	holds(t, words(t, 0, "why", "/object/3", "--admin", b.admin), "GET "+s.url+"/object/3", "A miss: not here. Asked: a, then the origin.", "a alive any yes")
	holds(t, words(t, 0, "why", "/object/3", "--admin", a.admin), "A hit: the stored response is fresh.", "a 100 B")
	holds(t, words(t, 0, "why", "/object/3", "--admin", b.admin), "HELD IN BY BYTES AGE", "a 100 B", "yes yes 200", "Not held by b")
	holds(t, words(t, 0, "why", "/object/3", "--json", "--admin", b.admin), `"others": [ { "peer": "a", "error": "", "stored": [ {`)
	holds(t, words(t, 0, "why", "/nowhere", "--admin", b.admin), "Not held by b, a")
	holds(t, words(t, 0, "status", "--cluster", "--admin", b.admin), "PEER REQUESTS HITS SIBLINGS TO ORIGIN SAVED STATE", "b 0 - - 0 0 B serving",
		"a 20 0.0 % 0.0 % 20 0 B serving", "all 20 0.0 % 0.0 % 20 0 B 2 of 2")
	holds(t, words(t, 0, "status", "--cluster", "--json", "--admin", b.admin), `{ "peers": [ { "peer": "b", "state": "serving",`, `"all": { "requests": 20,`)
	holds(t, words(t, 1, "status", "--cluster", "--admin", "127.0.0.1:1"), "no peer answers at 127.0.0.1:1")
	holds(t, words(t, 2, "status", "--cluster", "a", "--admin", b.admin), "unexpected argument a")
	holds(t, words(t, 0, "why", "/object/3", "--json", "--method", "POST", "--admin", a.admin), `"verdict": "pass"`)
	holds(t, words(t, 2, "why", "/object/3", "-H", "x", "--admin", a.admin), `--header "x" is not a field`)
	holds(t, words(t, 1, "why", "http://elsewhere/", "--admin", a.admin), "another origin")

	file := filepath.Join(t.TempDir(), "digest")
	holds(t, words(t, 0, "inspect", a.admin, "--save", file), "kind filter", "objects 20")
	holds(t, words(t, 0, "inspect", "a", "--admin", b.admin), "objects 20")
	holds(t, words(t, 0, "inspect", file, "--fields"), "53 43 44 magic", "XXH64")
	holds(t, words(t, 0, "inspect", file, "--json"), `"keys": 20`)
	pieces := filepath.Join(t.TempDir(), "pieces")
	if b, err := os.ReadFile(file); err != nil {
		t.Fatal(err)
	} else if f, err := digest.DecodeFilter(b, digest.Limits{Profile: digest.HTTP}); err != nil {
		t.Fatal(err)
	} else if err := os.WriteFile(pieces, f.AppendPieces(nil, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, words(t, 0, "inspect", pieces), "kind filter in pieces", "objects 20", "false positives")
	holds(t, words(t, 0, "inspect", pieces, "--fields"), "03 kind", "head checksum")
	holds(t, words(t, 1, "inspect", "nobody", "--admin", a.admin), "nobody is not a file; as a peer: there is no digest")
	holds(t, words(t, 1, "inspect", "./nowhere"), "no such file")
	holds(t, words(t, 1, "inspect", "./internal"), "is a directory")
	holds(t, words(t, 1, "inspect", "internal", "--admin", a.admin), "internal is not a file; as a peer: there is no digest")
	if err := os.WriteFile(file, []byte("SCD\x01rest"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, words(t, 1, "inspect", file), "is not a valid digest", "--fields shows")

	for i := range 10 { // as clients of the sibling would
		if r, _ := ask(t, b.listen, fmt.Sprint("/object/", i), ""); !strings.HasPrefix(r.Header.Get("Cache-Status"), "a; hit") {
			t.Errorf("/object/%d: %v", i, r.Header)
		}
	}
	b.stored(t, 10)
	holds(t, words(t, 0, "purge", "/object/3", "--everywhere", "--admin", b.admin), "b 1 done a - done")
	holds(t, words(t, 0, "purge", "/*/4", "--pattern", "--everywhere", "--soft", "--admin", b.admin), "/*/4 PEER", "b 1 done")
	holds(t, words(t, 0, "purge", "/object/", "--prefix", "--admin", a.admin, "--json"), `"removed": 19`)
	holds(t, words(t, 2, "purge", "/*/x", "--prefix", "--pattern", "--admin", a.admin), "not both")
	holds(t, words(t, 1, "purge", "http://*/", "--pattern", "--admin", a.admin), "another origin")
	holds(t, words(t, 1, "purge", "http://elsewhere/", "--admin", a.admin), "another origin")
	b.stored(t, 9) // of those requested, what was not purged
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestPurgeAtAForwardProxy(t *testing.T) {
	a, s := inProcess(t, local(t, "a")), newSite(t, 2, 100)
	holds(t, words(t, 1, "purge", "/object/1", "--admin", a.admin), "is not an absolute URL")
	holds(t, words(t, 0, "purge", s.url+"/object/1", "--everywhere", "--admin", a.admin), "done")
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"usual":      {[]string{"--objects", "200000", "--peers", "8"}, 0, []string{"1 hash", "false positives 0.1 %", "bound by --false-candidates", "peer run --objects 200000 --false-positives 0.001"}},
		"bandwidth":  {[]string{"--objects", "200000", "--peers", "8", "--churn", "20", "--bandwidth", "700B"}, 0, []string{"bound by --bandwidth", "received 700 B/s", "--publish"}},
		"memory":     {[]string{"--objects", "200000", "--peers", "8", "--memory", "2MiB"}, 0, []string{"bound by --memory", "memory 2.00 MiB", "1 hash"}},
		"plenty":     {[]string{"--objects", "200000", "--memory", "1MiB"}, 0, []string{"bound by nothing", "memory 759 KiB"}},
		"JSON":       {[]string{"--objects", "1000", "--json"}, 0, []string{`"binding": "--false-candidates"`, `"hashes": 1`}},
		"little use": {[]string{"--objects", "200000", "--memory", "1KiB"}, 0, []string{"of little use"}},
		"impossible": {[]string{"--objects", "200000", "--memory", "100KiB", "--false-candidates", "0.0001"}, 1, []string{"no plan meets all of this: --memory is 100 KiB and would have to be at least"}},
		"mistakes":   {[]string{"--objects", "many", "--churn=-1", "--memory", "5"}, 2, []string{`--objects "many"`, `--churn "-1"`, `--memory "5" is not a size`}},
		"nothing":    {nil, 2, []string{"missing flags: --objects"}},
	} {
		text := words(t, c.code, append([]string{"plan"}, c.args...)...)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}

// Why requests were no hits is remembered by each peer, and shown for all: by log, top and why.
func TestPastReasons(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		switch r.URL.Path {
		case "/private":
			w.Header().Set("Cache-Control", "private")
		case "/kept":
			w.Header().Set("Cache-Control", "max-age=60")
		}
		io.WriteString(w, "body")
	}))
	defer app.Close()
	a := inProcess(t, local(t, "a", "--origin", app.URL))
	b := inProcess(t, local(t, "b", "--origin", app.URL, "--join", a.gossip))
	for _, path := range []string{"/private", "/private", "/private", "/kept", "/kept", "/plain?token=secret"} {
		ask(t, a.listen, path, "")
	}
	eventually(t, time.Minute, "b gets it from a", func() bool {
		r, _ := ask(t, b.listen, "/kept", "")
		return strings.Contains(r.Header.Get("Cache-Status"), "hit")
	})
	command := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if err := run(t.Context(), append(args, "--admin", b.admin), &out, &errs); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	for _, c := range []struct {
		args      []string
		want, not []string
	}{
		{[]string{"log"}, []string{"a GET 200 " + app.URL + "/private", "not here; the answer is private", "no lifetime is stated", "/plain?…", "b GET 200 " + app.URL + "/kept"}, []string{"secret"}},
		{[]string{"log", "--queries", "--reason", "no-lifetime"}, []string{"token=secret"}, []string{"/private", "/kept"}},
		{[]string{"log", "--here"}, []string{"/kept"}, []string{"/private"}},
		{[]string{"top", "--by", "reason"}, []string{"the answer is private", "MISSES"}, nil},
		{[]string{"top", "--by", "url", "--most", "1"}, []string{"/private"}, []string{"/plain"}},
	} {
		out := command(c.args...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("peer %v lacks %q:\n%s", c.args, want, out)
			}
		}
		for _, not := range c.not {
			if strings.Contains(out, not) {
				t.Errorf("peer %v has %q:\n%s", c.args, not, out)
			}
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"why", "/private", "--admin", a.admin}, &out, &out); err != nil || !strings.Contains(out.String(), "The last times that it was no hit:") {
		t.Errorf("why: %v\n%s", err, out.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var followed lockedBuffer
	go func() {
		defer cancel()
		for i := 0; ctx.Err() == nil && strings.Count(followed.String(), "/new/") < 2; i++ { // the first may be the last from before
			ask(t, a.listen, fmt.Sprint("/new/", i), "")
			time.Sleep(50 * time.Millisecond)
		}
	}()
	if err := run(ctx, []string{"log", "--follow", "--last", "1", "--admin", b.admin}, &followed, &followed); err != nil || strings.Count(followed.String(), "/new/") < 2 {
		t.Errorf("log --follow: %v\n%s", err, followed.String())
	}
}
