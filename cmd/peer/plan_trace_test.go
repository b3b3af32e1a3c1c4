package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// accessLog writes a log of 64 clients that request 200 objects of 1,000 bytes and some more, and returns its path and the objects that
// were requested.
func accessLog(t *testing.T, requests int) (path string, objects map[string]bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 62))
	var b strings.Builder
	objects = map[string]bool{}
	for i := range requests {
		key := fmt.Sprintf("/%d", int(200*rng.Float64()*rng.Float64()))
		objects[key] = true
		fmt.Fprintf(&b, "shop.test:80 10.0.0.%d - - [17/May/2015:10:%02d:%02d +0000] \"GET %s HTTP/1.1\" 200 %d \"-\" \"x\"\n", rng.IntN(64), i/60%60, i%60, key, 1000+len(key))
	}
	b.WriteString("shop.test:80 10.0.0.1 - - [17/May/2015:11:00:00 +0000] \"\\x16\\x03\" 400 0 \"-\" \"-\"\n")
	path = filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, objects
}

// TestPlanTrace: the ways of cooperating on one log fit each other, and what must be.
func TestPlanTrace(t *testing.T) {
	log, objects := accessLog(t, 3000)
	for size, whole := range map[string]bool{"10MB": true, "20kB": false} {
		code, stdout, stderr := call(t, "plan", "--trace", log, "--peers", "4", "--size", size, "--json")
		var r compared
		if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
			t.Fatalf("plan = %d, %v: %s", code, err, stderr)
		}
		if r.Read != "Combined, virtual host first: 3,000 requests, 64 clients, 1 line skipped: 1 request in no HTTP (the first in line 3,001)" || r.Objects != len(objects) {
			t.Errorf("read as %q, %d objects of %d", r.Read, r.Objects, len(objects))
		}
		for _, w := range r.Ways {
			if w.Own+w.Sibling+w.Origin != r.Requests || w.OriginBytes < r.Bytes && w.Name != "nothing" || w.OriginBytes > r.RequestBytes || w.Moved < w.Sibling {
				t.Errorf("--size %s, %s: %+v of %d requests", size, w.Name, w, r.Requests)
			}
		}
		nothing, apart, one, owners, icp, digests := r.way("nothing"), r.way("apart"), r.way("one"), r.way("owners"), r.way("icp"), r.way("digests")
		if nothing.OriginBytes != r.RequestBytes || nothing.Origin != r.Requests || apart.Sibling+apart.Messages > 0 || one.Sibling > 0 {
			t.Errorf("--size %s: no cache %+v, apart %+v, one %+v", size, nothing, apart, one)
		}
		if digests.Origin >= apart.Origin || digests.Messages >= icp.Messages || owners.MovedBytes <= digests.MovedBytes || digests.Membership <= 0 || digests.MessageBytes <= digests.Membership {
			t.Errorf("--size %s: apart %+v, owners %+v, ICP %+v, digests %+v", size, apart, owners, icp, digests)
		}
		for _, w := range []cost{one, owners, icp} { // where everything fits, each object is fetched once
			if (w.Origin == len(objects) && w.OriginBytes == r.Bytes) != whole {
				t.Errorf("--size %s, %s: %d fetches of %d objects", size, w.Name, w.Origin, len(objects))
			}
		}
	}
	_, text, _ := call(t, "plan", "--trace", log, "--peers", "4", "--size", "20kB")
	for _, says := range []string{"Combined, virtual host first: 3,000 requests", "4 peers of 19.5 KiB each save", "no cache", "4 caches apart", "one cache of 78.1 KiB", "owner hashing", "ICP, asking all", "digests, as peer", "by hash: 64 clients."} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), says) {
			t.Errorf("plan --trace does not say %q:\n%s", says, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 81 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}

func TestPlanTraceRefuses(t *testing.T) {
	log, _ := accessLog(t, 3)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "--objects"},
		{[]string{"--trace", log, "--objects", "5"}, 2, "--objects"},
		{[]string{"--trace", log, "--churn", "5"}, 2, "takes --peers, --size and --json only"},
		{[]string{"--trace", log, "--peers", "65"}, 2, "at most 64"},
		{[]string{"--objects", "5", "--size", "1MiB"}, 2, "needs --trace"},
		{[]string{"--trace", log + "x"}, 1, "no such file"},
		{[]string{"--trace", "plan.go"}, 1, "neither SECONDS CLIENT KEY SIZE"},
	} {
		if code, _, stderr := call(t, append([]string{"plan"}, c.args...)...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("plan %q = %d, %s; want %d and %s", c.args, code, stderr, c.code, c.says)
		}
	}
}
