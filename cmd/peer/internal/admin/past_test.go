package admin

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

func miss(o engine.Outcome, said rfc9111.Status, change ...func(*proxy.Event)) *proxy.Event {
	e := &proxy.Event{Request: httptest.NewRequest("GET", "/", nil), Duration: 3 * time.Millisecond}
	e.Outcome, e.Said, e.Status, e.Bytes = o, said, 200, 7
	for _, f := range change {
		f(e)
	}
	return e
}

func (p *Past) seen(target string, e *proxy.Event) {
	if before := len(p.ring); e.Sibling || e.Outcome == engine.LocalHit || e.Request.Method == "PURGE" || e.Status == 421 {
		if p.Observe(*e); len(p.ring) != before {
			panic("remembered")
		}
		return
	}
	p.add(e, target)
}

// TestPastOfHits: a hit takes no memory.
func TestPastOfHits(t *testing.T) {
	var p Past
	e := miss(engine.LocalHit, rfc9111.Status{})
	if n := testing.AllocsPerRun(100, func() { p.Observe(*e) }); n != 0 {
		t.Errorf("a hit makes %v allocations", n)
	}
	e.Outcome = engine.OriginFetch
	if p.Observe(*e); len(p.ring) != 1 {
		t.Errorf("%d misses are remembered, want 1", len(p.ring))
	}
}

// Past has clients' requests that were no whole hits, with the reasons that Cache-Status gives.
func TestPast(t *testing.T) {
	var p Past
	at := func(n int) string { return fmt.Sprintf("http://a.test/%d", n) }
	p.seen(at(1)+"?token=x", miss(engine.OriginFetch, rfc9111.Status{Fwd: "uri-miss", FwdStatus: 200, Detail: "private"}))
	p.seen(at(2), miss(engine.LocalHit, rfc9111.Status{}))
	p.seen(at(3), miss(engine.OriginFetch, rfc9111.Status{Fwd: "uri-miss"}, func(e *proxy.Event) { e.Sibling = true }))
	p.seen("http://b.test/4", miss(engine.SiblingHit, rfc9111.Status{Fwd: "stale", Stored: true, Detail: "sibling"}, func(e *proxy.Event) { e.Peer = "p2" }))
	p.seen(at(5), miss(engine.GatewayError, rfc9111.Status{Fwd: "uri-miss", Detail: "origin-unreachable"}, func(e *proxy.Event) { e.Err = errors.New("no route") }))
	p.seen(at(6), miss(engine.Bypass, rfc9111.Status{Fwd: "bypass", Detail: "purge"}, func(e *proxy.Event) { e.Request.Method = "PURGE" }))
	p.seen(at(7), miss(engine.ClientError, rfc9111.Status{}, func(e *proxy.Event) { e.Status = 421 }))
	for _, c := range []struct {
		q    PastRequest
		want string
	}{
		{PastRequest{}, "http://a.test/5 http://b.test/4 http://a.test/1?…"},
		{PastRequest{Queries: true, Last: 9}, "http://a.test/5 http://b.test/4 http://a.test/1?token=x"},
		{PastRequest{Last: 2}, "http://a.test/5 http://b.test/4"},
		{PastRequest{Site: "b.test"}, "http://b.test/4"},
		{PastRequest{Reason: "private"}, "http://a.test/1?…"},
		{PastRequest{Reason: "stale"}, "http://b.test/4"},
		{PastRequest{Outcome: "gateway-error"}, "http://a.test/5"},
		{PastRequest{URL: "test/4"}, "http://b.test/4"},
		{PastRequest{Exact: "http://a.test/5"}, "http://a.test/5"},
		{PastRequest{Since: time.Now()}, ""},
	} {
		var got []string
		for _, m := range p.Latest("p", c.q) {
			got = append(got, m.URL)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %s, want %s", c.q, got, c.want)
		}
		if back, err := pastRequest(c.q.values()); c.q.Exact == "" && (err != nil || !back.Since.Equal(c.q.Since)) {
			t.Errorf("%+v comes back as %+v, %v", c.q, back, err)
		}
	}
	all := p.Latest("p", PastRequest{})
	for i, want := range []string{"not here; no route", "stale here", "not here; the answer is private"} {
		if got := all[i].Why; got != want {
			t.Errorf("%s: %q, want %q", all[i].URL, got, want)
		}
	}
	text := TopText(Misses{Misses: all, Silent: []Holder{{Peer: "p3", Error: "dead for 3 s"}}}, "site", 1)
	for _, want := range []string{"3 requests that were no hits since", "in 2 groups", "a.test", "66.7 %", "p3: dead for 3 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the largest group lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "b.test") {
		t.Errorf("more groups than wanted:\n%s", text)
	}
}

// The words of a miss say what was not stored, and what went wrong then.
func TestWordsOfAMiss(t *testing.T) {
	for want, m := range map[string]Miss{
		"":                           {},
		"not here":                   {Reason: "uri-miss"},
		"another reason":             {Reason: "another reason"},
		"not here; the client left":  {Reason: "uri-miss", Outcome: engine.ClientGone.String(), Error: "context canceled"},
		"not here; no route":         {Reason: "uri-miss", Error: "no route", Detail: "origin-unreachable"},
		"not here; it sets a cookie": {Reason: "uri-miss", Detail: "set-cookie"},
		"not here; another detail":   {Reason: "uri-miss", Detail: "another detail"},
		"stale here":                 {Reason: "stale", Detail: "sibling", Sibling: "p2"},
		"the answer is private":      {Detail: "private"},
	} {
		if got := m.words(); got != want {
			t.Errorf("words() of %+v = %q, want %q", m, got, want)
		}
	}
}

// Past is bounded, in misses and in bytes of each.
func TestPastIsBounded(t *testing.T) {
	var p Past
	for i := range keptMisses + 10 {
		p.seen(fmt.Sprintf("http://a.test/%d/%s", i, strings.Repeat("é", 1000)), miss(engine.OriginFetch, rfc9111.Status{}))
	}
	all := p.Latest("p", PastRequest{})
	if len(all) != keptMisses || !strings.HasPrefix(all[0].URL, fmt.Sprintf("http://a.test/%d/", keptMisses+9)) || !strings.HasPrefix(all[keptMisses-1].URL, "http://a.test/10/") {
		t.Errorf("%d misses, the latest %.40q, the oldest %.40q", len(all), all[0].URL, all[len(all)-1].URL)
	}
	if n := len(all[0].URL); n > longestURL+len("…") {
		t.Errorf("a URL of %d bytes", n)
	}
}
