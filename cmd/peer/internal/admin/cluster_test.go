package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/summarycache/summarycache/cmd/peer/internal/health"
)

// A peer's row has one word for its state, and a sentence for each fault.
func TestRowOf(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	alone := []Trouble{{Part: "cluster", Severe: true, Text: "alone: no other peer is found"}}
	member := func(state string, current bool, age float64, bytes int) Member {
		return Member{Name: "x", State: state, Current: current, Age: age, MemoryBytes: bytes, Since: now.Add(-3 * time.Second)}
	}
	for name, c := range map[string]struct {
		status         Status
		state, trouble string
		others, behind int
	}{
		"well":            {Status{Members: []Member{member("alive", true, 0, 1), member("left", false, 99, 1)}}, "serving", "", 1, 0},
		"a moment behind": {Status{Members: []Member{member("alive", false, 0.9, 1)}}, "serving", "", 1, 0},
		"behind":          {Status{Members: []Member{member("alive", false, 1, 1), member("suspended", false, 70, 1), member("dead", false, 99, 1)}}, "behind", "behind: 2 of 2 digests, for 1 min 10 s", 2, 2},
		"without digest":  {Status{Members: []Member{member("alive", false, 0, 0)}}, "behind", "behind: 1 of 1 digest, for 3 s", 1, 1},
		"a Squid":         {Status{Members: []Member{{Squid: true, State: "alive"}}}, "serving", "", 0, 0},
		"alone":           {Status{Health: Health{OK: true, Degraded: alone}}, "alone", "degraded: cluster: alone: no other peer is found", 0, 0},
		"degraded":        {Status{Health: Health{OK: true, Degraded: []Trouble{{Part: "store", Text: "full"}}}}, "degraded", "degraded: store: full", 0, 0},
		"half":            {Status{Health: Health{OK: true, Degraded: []Trouble{{Part: "cluster", Text: "c is not heard"}}}}, "degraded", "degraded: cluster: c is not heard", 0, 0},
		"hangs":           {Status{Health: Health{Degraded: alone, Parts: []health.Part{{Name: "store", Hangs: true, Stalled: 20}}}}, "hangs", "store hangs: no progress for 20 s though there was work", 0, 0},
		"draining":        {Status{State: "draining", Health: Health{OK: true, Degraded: alone}}, "draining", "degraded: cluster: alone: no other peer is found", 0, 0},
	} {
		s := c.status
		s.Now = now
		if s.State == "" {
			s.State, s.Ready = "serving", true
		}
		if s.Health.Degraded == nil {
			s.Health.OK = true
		}
		r := RowOf(s)
		if first := strings.Join(append(r.Troubles, "")[:1], ""); r.State != c.state || first != c.trouble || r.Others != c.others || r.Behind != c.behind {
			t.Errorf("%s: RowOf = %s %q, %d others, %d behind, want %s %q, %d, %d", name, r.State, first, r.Others, r.Behind, c.state, c.trouble, c.others, c.behind)
		}
	}
	if c := ClusterOf([]ClusterRow{{Peer: "a", State: "serving", Others: 1}, {Peer: "b", State: "serving"}}); c.Peers[0].State != "serving" || c.Peers[1].State != "alone" {
		t.Errorf("one of two that knows no other: %+v", c.Peers)
	}
}

// A peer reports an address of its status page that the others can reach.
func TestAdminOfRow(t *testing.T) {
	for _, c := range []struct{ admin, service, want string }{
		{"10.0.0.1:3129", "10.0.0.1:80", "10.0.0.1:3129"},
		{"[fd00::1]:3129", "cache-1:80", "[fd00::1]:3129"},
		{"127.0.0.1:3129", "10.0.0.1:80", ""},
		{"127.0.0.1:3129", "cache-1:80", ""},
		{"[::1]:3129", "127.0.0.1:80", "[::1]:3129"}, // all on one machine
		{"0.0.0.0:3129", "10.0.0.1:80", "10.0.0.1:3129"},
		{"[::]:3129", "[fd00::1]:80", "[fd00::1]:3129"},
		{"[::]:3129", "cache-1.example:80", "cache-1.example:3129"},
		{"[::]:3129", "", ""}, // while it starts
	} {
		if got := RowOf(Status{Addresses: Addresses{Admin: c.admin, Service: c.service}}).Admin; got != c.want {
			t.Errorf("a peer with --admin %s that serves at %q names %q, want %q", c.admin, c.service, got, c.want)
		}
	}
}

// The table fits 80 columns for any number of peers with any names.
func TestClusterTextWidth(t *testing.T) {
	for _, peers := range []int{3, 20} {
		var rows []ClusterRow
		for i := range peers {
			rows = append(rows, ClusterRow{Peer: fmt.Sprintf("summarycache-of-the-whole-site-%d", i), State: "serving", Others: peers - 1,
				Figures: Figures{Requests: 49_999_999, Hits: 49_999_999, SiblingHits: 40_000_000, ToOrigins: 9_999_999, BytesSaved: 1000 << 30}})
		}
		rows[1] = Silent("b", "no answer", "no answer within a second")
		text := ClusterText(ClusterOf(rows))
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		for _, want := range []string{"b: no answer within a second", "summar…-site-2 ", fmt.Sprintf("%d of %d", peers-1, peers)} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if peers == 3 {
			t.Log("\n" + text)
		}
	}
}
