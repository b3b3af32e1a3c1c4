package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/summarycache/summarycache/cmd/peer/internal/authority"
	"github.com/summarycache/summarycache/cmd/peer/internal/health"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// example is a status in which all printed counters differ.
func example() Status {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Status{
		Name: "peer-1", Version: "v1.2.3", Started: now.Add(-75 * time.Minute), Now: now, Ready: true, State: "serving",
		Origin:    "http://origin:8080",
		Addresses: Addresses{Listen: "127.0.0.1:1", Admin: "127.0.0.1:2", Gossip: "127.0.0.1:3", Service: "127.0.0.1:1"},
		Encrypted: true, CertificateUntil: now.Add(24 * time.Hour),
		Config: Attempt{Good: now},
		Health: Health{OK: true, Parts: []health.Part{{Name: "exchange"}}},
		Traffic: proxy.Counts{
			Requests: 12_345, LocalHits: 9_000, SiblingHits: 800, OriginFetches: 700, Collapsed: 6, ServedToSiblings: 50,
			NotServedToSiblings: 4, SiblingRequests: 810, SiblingsUseful: 790, FalseHits: 7, SiblingErrors: 3, OriginRequests: 701, OriginErrors: 2,
			NotStored: map[string]uint64{"no-store": 0, "private": 20, "no-lifetime": 300},
		},
		Digest:   Digest{Keys: 1234, Planned: 32768, FalsePositiveRate: 0.00042, Epoch: 17, Sequence: 5, MemoryBytes: 4096},
		Exchange: Exchange{Stats: exchange.Stats{AdvertsSent: 11, DeltasReceived: 12, Repairs: 1}, Sent: gossip.Traffic{Adverts: 600}, Received: gossip.Traffic{Deltas: 3000}},
		Memory:   Memory{Limit: 256 << 20, Budget: 152 << 20, Accounts: []budget.Usage{{Name: "connections", Held: 2 << 20, Peak: 3 << 20, Reserve: 57 << 20}, {Name: "requests", Held: 30 << 20, Peak: 40 << 20, Reserve: 9 << 20, Refused: 7}}},
		Siblings: Siblings{ZoneBytes: map[string]int64{"eu-1": 4096}},
		Members: []Member{
			{Name: "peer-2", State: "alive", Since: now.Add(-time.Hour), Service: "127.0.0.1:9", Current: true, Keys: 77, Record: Record{sibling.Record{Hits: 5, FalseHits: 1, Throughput: 3e6}, 0.002}},
			{Name: "peer-3", State: "dead", Since: now.Add(-90 * time.Second), Keys: 66, Age: 95, Record: Record{sibling.Record{Failures: 2}, 0}},
			{Name: "peer-4", State: "left", Since: now.Add(-80 * time.Second)},
		},
	}
}

// source is a peer with a given state.
type source struct{ status Status }

func (s source) Status() Status { return s.status }

func (s source) Health() Health { return s.status.Health }

func (s source) History() []Sample { return []Sample{SampleOf(s.status)} }

func (s source) Events() []Event {
	return []Event{{At: s.status.Now, Level: "WARN", Text: "alone"}}
}

func (s source) Cluster(context.Context) Cluster {
	return ClusterOf([]ClusterRow{RowOf(s.status), Silent("peer-3", "dead", "dead for 90 s")})
}

func (s source) Holders(_ context.Context, in WhyRequest) []Holder {
	return []Holder{{Peer: "peer-2", Stored: []engine.Stored{{Identity: "GET " + in.URL, ETag: `"1"`}}}, {Peer: "peer-3", Error: "dead for 90 s"}}
}

func (s source) Why(in WhyRequest) (Explanation, error) {
	if in.URL == "" {
		return Explanation{}, errors.New("no URL")
	}
	return Explanation{Method: in.Method, Explanation: engine.Explanation{URL: in.URL, Stored: []engine.Stored{}}, Text: strings.Join(in.Header["Accept"], "|"), Matches: []Match{}}, nil
}

func (s source) Digest(peer string) ([]byte, error) {
	if peer != "" {
		return nil, ErrNoDigest
	}
	return []byte("digest"), nil
}

func (s source) Purge(_ context.Context, o PurgeRequest) (PurgeReport, error) {
	return PurgeReport{Peers: []Purged{{Peer: "peer-1", Removed: new(3)}, {Peer: o.URL, Error: fmt.Sprint(o.Prefix, o.Everywhere)}}}, nil
}

func (s source) Misses(_ context.Context, q PastRequest) Misses {
	return Misses{Misses: []Miss{{At: s.status.Now, Peer: "peer-1", Method: "GET", URL: "http://a.test/" + q.URL + "|" + q.Site, Outcome: "origin-fetch", Reason: "uri-miss"}}, Silent: []Holder{}}
}

func (s source) Replace(context.Context, ReplaceRequest) (ReplaceReport, error) {
	return ReplaceReport{}, errors.New("peer.yaml:3: drain \"soon\" is not a time")
}

func (s source) Reload(in ReloadRequest) (ReloadReport, error) {
	if !in.DryRun {
		return ReloadReport{}, errors.New("peer.yaml:3: drain \"soon\" is not a time")
	}
	return ReloadReport{Changed: []Change{{"drain", "1s", "2s"}}}, nil
}

func serve(t *testing.T, s Status) (addr string, get func(path string) (int, string)) {
	t.Helper()
	d := NewDurations()
	var e proxy.Event
	e.Outcome, e.Duration = engine.LocalHit, 3*time.Millisecond
	d.Observe(e)
	server := httptest.NewServer(Handler(source{s}, d, func() Access {
		return Access{Profiles: true, Operators: authority.Operators{Tokens: []string{anyToken}}, Session: "a session"}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func(path string) (int, string) {
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	_, get := serve(t, example())
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\nversion v1.2.3, started 2026-01-02T01:49:05Z\n"} {
		if code, body := get(path); code != 200 || body != want {
			t.Errorf("GET %s = %d %q, want 200 %q", path, code, body, want)
		}
	}
	_, get = serve(t, Status{State: "draining", Health: Health{OK: true}})
	if code, body := get("/readyz"); code != 503 || body != "draining\n" {
		t.Errorf("GET /readyz = %d %q, want 503 draining", code, body)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("GET /healthz of a draining peer = %d, want 200", code)
	}
	if code, _ := get("/none"); code != 404 {
		t.Errorf("GET /none = %d, want 404", code)
	}
	if code, body := get("/debug/pprof/goroutine?debug=1"); code != 200 || !strings.Contains(body, "goroutine profile") {
		t.Errorf("GET /debug/pprof/goroutine = %d", code)
	}
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	s := example()
	s.Health = Health{OK: true, Parts: []health.Part{{Name: "exchange", Stalled: 3}}, Degraded: []Trouble{{Part: "store", Text: "the file system refused 3 objects in the last minute"}}}
	_, get := serve(t, s)
	if code, body := get("/healthz"); code != 200 || body != "degraded: store: the file system refused 3 objects in the last minute\n" {
		t.Errorf("GET /healthz of a degraded peer = %d %q", code, body)
	}
	if code, body := get("/readyz"); code != 200 || body != "ready\nversion v1.2.3, started 2026-01-02T01:49:05Z\ndegraded: store: the file system refused 3 objects in the last minute\n" {
		t.Errorf("GET /readyz of a degraded peer = %d %q", code, body)
	}
	s.Health.OK, s.Health.Missing = false, []string{"members"}
	s.Health.Parts[0] = health.Part{Name: "exchange", Stalled: 75, Hangs: true}
	_, get = serve(t, s)
	if code, body := get("/healthz"); code != 503 || !strings.HasPrefix(body, "exchange hangs: no progress for 1 min 15 s though there was work\n") {
		t.Errorf("GET /healthz of a peer that hangs = %d %q", code, body)
	}
	for path, wants := range map[string][]string{
		"/status":  {"exchange hangs: no progress for 1 min 15 s", "degraded: store: the file", "not current, no answer in time: members\n"},
		"/metrics": {`peer_part_hangs{part="exchange"} 1`, `peer_degraded{part="store"} 1`, `peer_degraded{part="origin"} 0`},
	} {
		_, text := get(path)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, text)
			}
		}
	}
}

func TestFetchReturnsWhatWasServed(t *testing.T) {
	want := example()
	addr, _ := serve(t, want)
	got, err := Client(addr).Status(context.Background())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Fetch = %+v, %v, want %+v", got, err, want)
	}
}

func TestFetchSaysWhatIsWrong(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(saidBy, "1")
		io.WriteString(w, `{"name":`)
	}))
	defer broken.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	for url, want := range map[string]string{
		other.URL:      "is not a peer's admin listener (404 Not Found for /status.json)",
		broken.URL:     "cannot be read",
		closed.URL:     "no peer answers at 127.0.0.1:",
		"http://a b:1": "no peer can be at",
	} {
		if _, err := Client(strings.TrimPrefix(url, "http://")).Status(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Fetch(%s) = %v, want %q", url, err, want)
		}
	}
}

func TestText(t *testing.T) {
	_, get := serve(t, example())
	_, text := get("/status")
	for _, want := range []string{
		"peer-1 is serving, up 1 h 15 min, reverse proxy for http://origin:8080 ",
		"gossip 127.0.0.1:3 (encrypted)",
		"to siblings 810 7 false hits, 3 failed",
		"digest 1,234 objects of 32,768 planned, 4.00 KiB, false positives 0.042 %, version 17.5",
		"others 3 peers, 1 alive, 1 digest current",
		"certificate until 2026-01-03 03:04:05 UTC",
		"peer-2 alive 1 h 127.0.0.1:9 77 current 5 1 0",
		"peer-3 dead 1 min - 66 1 min old 0 0 2",
		"peer-4 left 1 min - 0 none",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " ")+" ", want) {
			t.Errorf("the status lacks %q:\n%s", want, text)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 80 && !strings.Contains(line, "v1.2.3") && !strings.HasSuffix(line, "STARTED") {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}

// The members of an ordinary cluster fit 114 columns, whatever their names and versions.
func TestMembersTextWidth(t *testing.T) {
	s := example()
	s.Name, s.Digest.Keys, s.Addresses.Service = "summarycache-of-the-whole-site-1", 200_000, "10.0.0.10:3128"
	for i := range s.Members {
		m := &s.Members[i]
		m.Name, m.Service, m.Keys, m.Since = s.Name, s.Addresses.Service, 200_000, s.Now.Add(-30*time.Hour-time.Minute)
		m.Version, m.Started = "v0.0.0-20261129005313-7dabd5e17d22", m.Since
		m.Current, m.Age, m.Record.Hits, m.Record.Failures = false, 700, 12_345, 99
	}
	text := MembersText(s)
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(line) - 1; n > 114 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if want := "summar…-site-1 alive 30 h 10.0.0.10:3128 200,000 11 min old 12,345"; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// Zones and the bytes that came from each member are shown if there are zones.
func TestMembersTextZones(t *testing.T) {
	s := example()
	if text := MembersText(s); strings.Contains(text, "ZONE") {
		t.Errorf("without zones:\n%s", text)
	}
	s.Zone, s.Members[0].Zone, s.Members[0].Bytes = "eu-1", "eu-2", 3<<20
	lines := strings.Split(MembersText(s), "\n")[1:] // the heading has two lines
	for i, want := range []string{"ZONE +RECEIVED VERSION STARTED$", "eu-1 +- v1.2.3  2026-01-02 01:49:05$", "eu-2 +3.00 MiB - +-$", "- +0 B - +-$"} {
		if !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 999 * time.Millisecond: "999 ms", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s",
		47 * time.Hour: "47 h 0 min", 50 * time.Hour: "2 d 2 h",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) = %s, want %s", d, got, want)
		}
	}
}

// The names in the JSON are an interface: none may disappear.
func TestStatusNames(t *testing.T) {
	text, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"name", "version", "started", "now", "ready", "state", "origin", "addresses", "encrypted", "traffic", "store", "digest", "exchange", "members"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("status.json lacks %q", name)
		}
	}
}

func TestStatusSaysWhyAnswersAreNotStored(t *testing.T) {
	for want, counts := range map[string]map[string]uint64{
		"not stored 320 2.6 % no-lifetime 300, private 20, see --default-ttl collapsed": example().Traffic.NotStored,
		"not stored 7 0.1 % private 4, vary 3 collapsed":                                {"private": 4, "vary": 3, "no-lifetime": 0},
		"not stored 0 0.0 % collapsed":                                                  nil,
	} {
		s := example()
		s.Traffic.NotStored = counts
		if text := StatusText(s); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%v: StatusText = %s\nwithout %q", counts, text, want)
		}
	}
}
