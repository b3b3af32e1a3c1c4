package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A span is the part of a span, as collectors get it, that this test checks.
type span struct {
	peer                                string
	TraceID, SpanID, ParentSpanID, Name string
	Attributes                          []spanAttribute
	StartTimeUnixNano, EndTimeUnixNano  string
}

type spanAttribute struct {
	Key   string
	Value struct{ StringValue string }
}

func (s span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

// TestTracesGoThroughTheCluster checks that a client's request is one trace at the peer that got
// it, at that peer's sibling and at the origin.
func TestTracesGoThroughTheCluster(t *testing.T) {
	var mu sync.Mutex
	var spans []span
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []spanAttribute }
				ScopeSpans []struct{ Spans []span }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range e.ResourceSpans {
			for _, s := range rs.ScopeSpans[0].Spans {
				s.peer = span{Attributes: rs.Resource.Attributes}.attribute("service.instance.id")
				spans = append(spans, s)
			}
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	s := newSite(t, 3, 100)
	var atOrigin sync.Map
	s.Fetched = func(r *http.Request) { atOrigin.Store(r.URL.Path, r.Header.Get("Traceparent")) }
	run := func(name string, more ...string) *process {
		return spawn(t, append([]string{"run", "--name", name, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0",
			"--origin", s.url, "--store", filepath.Join(t.TempDir(), name), "--otlp-endpoint", collector.URL}, more...)...)
	}
	a := run("a")
	b := run("b", "--join", a.gossip)
	ask := func(p *process, trace string) {
		t.Helper()
		r, _ := http.NewRequest("GET", "http://"+p.listen+object(1), nil)
		r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
		answer, err := client.Do(r)
		if err != nil || answer.StatusCode != 200 {
			t.Fatal(answer, err)
		}
		answer.Body.Close()
	}
	const first, second = "11111111111111111111111111111111", "22222222222222222222222222222222"
	ask(a, first)
	eventually(t, time.Minute, "b knows what a holds", b.knows("a", 1))
	ask(b, second)

	// of finds a peer's span of a trace by its name.
	of := func(peer, trace, name string) (found span, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range spans {
			if s.peer == peer && s.TraceID == trace && s.Name == name {
				return s, true
			}
		}
		return found, false
	}
	var request, fetch, asking, question, answered span
	eventually(t, time.Minute, "the collector has all spans", func() bool {
		var ok [5]bool
		request, ok[0] = of("a", first, "GET")
		fetch, ok[1] = of("a", first, "fetch from origin")
		asking, ok[2] = of("b", second, "GET")
		question, ok[3] = of("b", second, "ask sibling")
		answered, ok[4] = of("a", second, "GET")
		return ok == [5]bool{true, true, true, true, true}
	})
	if request.ParentSpanID != "00f067aa0ba902b7" || fetch.ParentSpanID != request.SpanID || request.attribute("summarycache.outcome") != "origin-fetch" {
		t.Errorf("a's own trace: %+v\n%+v", request, fetch)
	}
	if got, _ := atOrigin.Load(object(1)); got != "00-"+first+"-"+fetch.SpanID+"-01" {
		t.Errorf("the origin got a request with %v, want %s", got, fetch.SpanID)
	}
	if asking.ParentSpanID != "00f067aa0ba902b7" || question.ParentSpanID != asking.SpanID || answered.ParentSpanID != question.SpanID ||
		asking.attribute("summarycache.sibling") != "a" || !strings.HasSuffix(answered.attribute("url.full"), object(1)) {
		t.Errorf("b's trace through a: %+v\n%+v\n%+v", asking, question, answered)
	}
}
