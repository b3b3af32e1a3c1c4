package admin

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/sibling"
)

func TestClient(t *testing.T) {
	addr, _ := serve(t, example())
	c := Client(addr)
	e, err := c.Why(t.Context(), "HEAD", "/a b", []string{"accept: x: y", "Accept:z"})
	if err != nil || e.Method != "HEAD" || e.URL != "/a b" || e.Text != "x: y|z" {
		t.Errorf("Why = %+v, %v", e, err)
	}
	if _, err := c.Why(t.Context(), "", "", nil); err == nil || err.Error() != "no URL" {
		t.Errorf("Why of nothing = %v", err)
	}
	if b, err := c.Digest(t.Context(), ""); err != nil || string(b) != "digest" {
		t.Errorf("Digest = %q, %v", b, err)
	}
	if _, err := c.Digest(t.Context(), "x"); err == nil || err.Error() != ErrNoDigest.Error() {
		t.Errorf("Digest of nobody = %v", err)
	}
	r, err := c.Purge(t.Context(), PurgeRequest{URL: "/x", Prefix: true}, anyToken)
	if err != nil || r.Failed() != 1 || *r.Peers[0].Removed != 3 || r.Peers[1].Removed != nil || r.Peers[1].Peer != "/x" || r.Peers[1].Error != "true false" {
		t.Errorf("Purge = %+v, %v", r, err)
	}
}

// anyToken is that of the peers of these tests.
const anyToken = "a token of an operator"

// A command without a token goes by the socket of the peer that was named, never by that of another peer that has its socket at
// the same path of this machine, and says what to do if the socket is another user's.
func TestCommandsGoByTheSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "socket") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "admin.sock")
	named := func(name, socket string) Status {
		s := example()
		s.Name, s.Addresses.Socket = name, socket
		return s
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	own := &http.Server{Handler: Handler(source{named("a", path)}, NewDurations(), func() Access { return Access{Operators: authority.Operators{Socket: true}} })}
	go own.Serve(l)
	t.Cleanup(func() { own.Close() })
	for _, tt := range []struct{ name, peer, socket, err string }{
		{"its own", "a", path, ""},
		{"another peer's", "b", path, "need a token"},
		{"none there", "a", path + "x", "need a token"},
		{"none at all", "a", "", "need a token"},
		{"a relative path", "a", "admin.sock", "need a token"},
	} {
		addr, _ := serve(t, named(tt.peer, tt.socket))
		_, err := Client(addr).Purge(t.Context(), PurgeRequest{URL: "/x"}, "")
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: Purge = %v, want %q", tt.name, err, tt.err)
		}
	}
	if _, err := Client(path).Purge(t.Context(), PurgeRequest{URL: "/x"}, ""); err != nil {
		t.Errorf("by the path of the socket: %v", err)
	}
	addr, _ := serve(t, example())
	if s, err := Client(addr).Session(t.Context(), anyToken); err != nil || s.Token != "a session" {
		t.Errorf("Session = %+v, %v", s, err)
	}
}

func TestOrdersThatAreNone(t *testing.T) {
	addr, get := serve(t, example())
	for name, c := range map[string]struct {
		body, site string
		want       int
	}{
		"not JSON":       {"x", "", 400},
		"unknown field":  {`{"url":"/","all":true}`, "", 400},
		"too long":       {`{"url":"` + strings.Repeat("x", maxCommand) + `"}`, "", 400},
		"another site's": {`{"url":"/"}`, "cross-site", 403},
		"good":           {`{"url":"/"}`, "same-origin", 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/purge", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+anyToken)
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", name, resp.Status, c.want)
		}
	}
	if code, _ := get("/purge"); code != http.StatusMethodNotAllowed {
		t.Errorf("GET /purge = %d", code)
	}
	if code, _ := get("/why?url=/x&header=nothing"); code != 400 {
		t.Errorf("a header that is none = %d", code)
	}
}

func TestExplanationText(t *testing.T) {
	printed := ExplanationText(Explanation{
		Peer: "p1", Method: "GET", Text: "A miss.", Explanation: engine.Explanation{URL: "http://x/",
			Stored: []engine.Stored{{Identity: "GET http://x/\nAccept:a\nOrigin:b", Status: 200, ETag: `"v1"`, Bytes: 2048, Age: 70, FreshFor: -3, Listed: true}}},
		Others: []Holder{{Peer: "p2"}, {Peer: "p3", Error: "dead for 9 s"}, {Peer: "p4"},
			{Peer: "p5", Stored: []engine.Stored{{Status: 200, LastModified: "Mon"}}}},
		Matches: []Match{{Peer: "p", State: "alive", Identity: "GET http://x/", Says: true, Turn: 2, FalsePositiveRate: 0.001, Age: 2,
			Record: Record{sibling.Record{Hits: 5}, 0.00123}, Odds: 0.95, Cost: 0.0013},
			{Peer: "q", State: "dead", Identity: "GET http://x/"},
			{Peer: "cache-1", State: "alive", Identity: "GET http://y/\nAccept-Encoding:", FalsePositiveRate: 1e-6, Age: 0.113, Record: Record{RoundTrip: 0.000967}}},
	})
	for line := range strings.Lines(printed) {
		if len(line) > 80+len("\n") {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	text := strings.Join(strings.Fields(printed), " ")
	for _, want := range []string{
		"GET http://x/ A miss.", "p5 0 B 0 ms stale for 0 ms no no 200 modified Mon Not held by p2, p4 Unknown at p3: dead for 9 s", "p1 2.00 KiB 1 min 10 s stale for 3 s yes no 200 \"v1\", for Accept:a Origin:b",
		"p alive any yes 0.1 % 2 s 1.23 ms 95 % 1.3 ms 2.", "q dead any no 0 0 ms - - - no",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
}
