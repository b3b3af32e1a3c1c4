package proxy

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// TestSums: what decides an answer of a host is in its sum, and nothing else.
func TestSums(t *testing.T) {
	to := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	yes, ttl := true, time.Minute
	plain := func() Settings {
		return Settings{Sites: []Site{
			{Hosts: []string{"a.test", "b.test"}, Origins: []*url.URL{to("http://10.0.0.1")}},
			{Hosts: []string{"c.test"}, Path: "/x/", Origins: []*url.URL{to("http://10.0.0.2")}},
			{Name: "docs", Hosts: []string{"d.test"}, Origins: []*url.URL{to("http://10.0.0.3")}},
		}, Rules: rules.Set{{Name: "1", Where: "f:1", Sites: []string{"b.test"}, TTL: &ttl}}}
	}
	base := plain().Sums()
	if got := slices.Sorted(maps.Keys(base)); !slices.Equal(got, []string{"a.test", "b.test", "c.test/x", "docs"}) {
		t.Fatalf("sums of %v", got)
	}
	for name, c := range map[string]struct {
		change func(*Settings)
		differ []string
	}{
		"nothing":             {func(*Settings) {}, nil},
		"an origin":           {func(s *Settings) { s.Sites[0].Origins[0] = to("http://10.0.0.9") }, []string{"a.test", "b.test"}},
		"one of a named site": {func(s *Settings) { s.Sites[2].Origins[0] = to("http://10.0.0.9") }, nil},
		"the origin's host":   {func(s *Settings) { s.Sites[2].Host = "x.test" }, []string{"docs"}},
		"another site less":   {func(s *Settings) { s.Sites = s.Sites[:2] }, nil},
		"a deadline":          {func(s *Settings) { s.ConnectTimeout, s.Sites[0].FirstByteTimeout = 1, 1 }, nil},
		"the place of a rule": {func(s *Settings) { s.Rules[0].Where, s.Rules[0].Name = "g:7", "2" }, nil},
		"a rule of one host":  {func(s *Settings) { s.Rules[0].TTL = nil; s.Rules[0].Bypass = &yes }, []string{"b.test"}},
		"a rule of all":       {func(s *Settings) { s.Rules = append(s.Rules, rules.Rule{Bypass: &yes}) }, []string{"a.test", "b.test", "c.test/x", "docs"}},
		"a rule that only bars": {func(s *Settings) {
			s.Rules = append(s.Rules, rules.Rule{Deny: &yes, Paths: []string{"/p"}, Clients: []netip.Prefix{{}}})
		}, nil},
	} {
		s := plain()
		c.change(&s)
		var differ []string
		for host, sum := range s.Sums() {
			if was, ok := base[host]; ok && was != sum {
				differ = append(differ, host)
			}
		}
		if slices.Sort(differ); !slices.Equal(differ, c.differ) {
			t.Errorf("%s changes the sums of %v, want %v", name, differ, c.differ)
		}
	}
	one, other := Settings{Origin: to("http://o.test")}, Settings{Origin: to("http://p.test")}
	for host := range one.Sums() {
		if _, ok := other.Sums()[host]; ok {
			t.Errorf("%s is compared, though its origins are parts of the keys", host)
		}
	}
	one.PreserveHost, other.PreserveHost = true, true
	if a, b := one.Sums(), other.Sums(); a["*"] == b["*"] || a["*"] == 0 {
		t.Errorf("%v and %v are called alike", a, b)
	}
}
