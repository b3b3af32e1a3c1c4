//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var cacheTests = flag.String("cache-tests", "", "directory of the npm package http-cache-tests, to run a peer through that suite (cache-tests.fyi)")

// notPassed are the tests of the public suite, both of required and of optimal behaviour, that a
// peer does not pass, with the reasons.
var notPassed = func() map[string]string {
	const (
		age      = "RFC 9111 section 5.1: the first of several values counts, an invalid field is ignored; the suite wants both stale"
		closed   = "the suite takes our 502, which has no number of a request, for a stored answer"
		cookie   = "cookies are not stored unless a rule says so (SITES.md)"
		partial  = "parts are not stored; what the suite calls a retry is the whole, fetched in the background"
		refused  = "a complaint about one request is not stored for others, whatever lifetime it states (SITES.md)"
		language = "the order in Accept-Language is kept: some origins read it as preference"
	)
	all := map[string]string{
		"method-POST":                                 "only GET is stored",
		"conditional-lm-fresh-no-lm":                  "If-Modified-Since is compared with Last-Modified alone",
		"headers-store-Transfer-Encoding":             "an unknown transfer coding is refused (502)",
		"304-etag-update-response-Content-MD5":        "RFC 9111 section 3.2: a 304 replaces every field but those listed there",
		"304-etag-update-response-ETag":               "a 304 with another entity tag confirms nothing: the whole is fetched, which the suite calls a retry",
		"freshness-max-age-s-maxage-private":          "for private caches",
		"freshness-max-age-s-maxage-private-multiple": "for private caches",
		"cc-resp-private-private":                     "for private caches",
		"cc-resp-immutable-fresh":                     "for private caches",
		"cc-resp-immutable-stale":                     "for private caches",
	}
	for reason, ids := range map[string][]string{
		age: {"age-parse-nonnumeric", "age-parse-negative", "age-parse-float", "age-parse-prefix-twoline", "age-parse-dup-0",
			"age-parse-dup-0-twoline", "age-parse-dup-old", "age-parse-parameter", "age-parse-numeric-parameter"},
		closed: {"stale-close-must-revalidate", "stale-close-proxy-revalidate", "stale-close-no-cache", "stale-close-s-maxage=2"},
		cookie: {"headers-store-Set-Cookie", "304-etag-update-response-Set-Cookie", "other-set-cookie"},
		partial: {"partial-store-partial-reuse-partial", "partial-store-partial-reuse-partial-byterange", "partial-store-partial-reuse-partial-absent",
			"partial-store-partial-reuse-partial-suffix", "partial-store-partial-complete"},
		refused:  {"heuristic-414-cached"},
		language: {"vary-normalise-lang-order", "vary-normalise-lang-select"},
	} {
		for _, id := range ids {
			all[id] = reason
		}
	}
	return all
}()

// TestPublicCacheTests runs a peer through the public suite behind cache-tests.fyi: its tests of
// required and of optimal behaviour. Tests that only record behaviour are not counted.
func TestPublicCacheTests(t *testing.T) {
	if *cacheTests == "" {
		t.Skip("needs Node and npm's http-cache-tests (-cache-tests)")
	}
	node := func(env []string, args ...string) *exec.Cmd {
		cmd := exec.Command("node", append([]string{"--no-warnings"}, args...)...)
		cmd.Dir = *cacheTests
		cmd.Env = append(os.Environ(), append(env, "npm_config_protocol=http", "npm_config_id=", "npm_package_config_id=", "npm_config_pidfile="+filepath.Join(t.TempDir(), "pid"))...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	origin := node([]string{"npm_config_port=" + port}, "server/server.mjs")
	if err := origin.Start(); err != nil {
		t.Fatal(err)
	}
	defer origin.Wait()
	defer origin.Process.Kill()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", "localhost:"+port); err == nil {
			c.Close()
			break
		} else if time.Since(begun) > 10*time.Second {
			t.Fatal(err)
		}
	}
	peer := spawn(t, "run", "--name", "a", "--store", t.TempDir(), "--origin", "http://localhost:"+port,
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0")

	kinds := map[string]string{}
	decode(t, node(nil, "--input-type=module", "-e",
		`import t from "`+filepath.Join(*cacheTests, "tests/index.mjs")+`"; const kinds = {}; for (const s of t) for (const one of s.tests) kinds[one.id] = one.kind || "required"; console.log(JSON.stringify(kinds))`), &kinds)
	results := map[string]any{}
	decode(t, node([]string{"npm_config_base=http://" + peer.listen}, "cli.mjs"), &results)
	count := map[string][2]int{}
	for id, kind := range kinds {
		n := count[kind]
		n[1]++
		if result := results[id]; result == true {
			n[0]++
			if why := notPassed[id]; why != "" {
				t.Errorf("%s passes, and is listed as %q", id, why)
			}
		} else if kind != "check" && notPassed[id] == "" {
			t.Errorf("%s, %s: %v", kind, id, result)
		}
		count[kind] = n
	}
	t.Log("passed, of:", fmt.Sprint(count))
	if len(kinds) < 300 {
		t.Errorf("the suite has %d tests", len(kinds))
	}
}

// decode runs a command that prints JSON.
func decode(t *testing.T, cmd *exec.Cmd, into any) {
	t.Helper()
	out, err := cmd.Output()
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(out)).Decode(into)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%.500s", cmd.Args[:2], err, out)
	}
}
