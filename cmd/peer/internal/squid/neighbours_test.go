package squid

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"
	"github.com/summarycache/summarycache/gossip/memnet"

	"github.com/summarycache/summarycache/gossip/sibling"
)

const squidAddr = "10.0.0.9:3128"

// A mimic answers as Squid 5.7 does, in virtual time.
type mimic struct {
	mu       sync.Mutex
	body     []byte
	written  time.Time // of the digest
	period   time.Duration
	terse    bool // a 304 has no Last-Modified
	fails    int  // status instead of the digest; 0 = none
	asked    []time.Time
	answered []int
}

func (m *mimic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.asked = append(m.asked, now)
	status := http.StatusOK
	switch {
	case r.URL.Path != format.Path || r.URL.IsAbs() || r.Host != squidAddr:
		status = http.StatusBadRequest
	case m.fails != 0:
		status = m.fails
	}
	if m.period > 0 {
		for now.Sub(m.written) >= m.period {
			m.written = m.written.Add(m.period)
		}
	}
	h := w.Header()
	h.Set("Via", "1.1 m (squid/5.7)")
	if status == http.StatusOK {
		h.Set("Last-Modified", m.written.UTC().Format(http.TimeFormat))
		if m.period > 0 {
			h.Set("Expires", m.written.Add(m.period).UTC().Format(http.TimeFormat))
		}
		if h.Get("Last-Modified") == r.Header.Get("If-Modified-Since") {
			status = http.StatusNotModified
			if m.terse {
				h.Del("Last-Modified")
			}
		}
	}
	m.answered = append(m.answered, status)
	w.WriteHeader(status)
	switch status {
	case http.StatusOK:
		w.Write(m.body)
	case http.StatusNotFound:
		fmt.Fprint(w, "This cache is currently building its digest.\n")
	}
}

func (m *mimic) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// offsets returns when the digest was requested, in seconds after the first request.
func (m *mimic) offsets() (list []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.asked {
		list = append(list, int(at.Sub(m.asked[0]).Seconds()))
	}
	return list
}

// beside runs a test with one Squid, played by the mimic.
func beside(t *testing.T, c Config, m *mimic, play func(*mimic, *Neighbours)) {
	t.Helper()
	body, err := os.ReadFile("../../../../digest/squid/testdata/squid57.digest")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		m.written = time.Now()
		if m.body == nil {
			m.body = body
		}
		l, err := network.Host("10.0.0.9").Listen(squidAddr)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: m}
		go server.Serve(l)
		host := network.Host("10.0.0.1")
		c.Dial = dialer(host)
		if c.Logger == nil {
			c.Logger = textLogger(io.Discard)
		}
		n := New(c)
		n.Use([]string{squidAddr})
		play(m, n)
		n.Close()
		server.Close()
		pause(time.Minute)
	})
}

func pause(d time.Duration) { <-time.After(d) }

func question(url string, more ...string) *sibling.LookupRequest {
	return &sibling.LookupRequest{Header: http.Header{"Accept-Encoding": {"gzip"}}, Identities: append(more, "GET "+url)}
}

func cached(i int) string { return fmt.Sprintf("http://127.0.0.1:9000/obj/%d", i) }

func TestDigestIsFetchedWhenItExpires(t *testing.T) {
	beside(t, Config{}, &mimic{period: time.Minute}, func(m *mimic, n *Neighbours) {
		pause(4*time.Minute + 30*time.Second)
		if got := fmt.Sprint(m.offsets()); got != "[0 61 121 181 241]" {
			t.Errorf("requests after %v seconds, want one a second after each digest expired", got)
		}
		s := n.Status(nil)[0]
		if !s.Alive || !s.Current || s.Keys < 2000 || s.Keys > 2100 || s.Name != "squid@"+squidAddr {
			t.Errorf("status %+v", s)
		}
		for i := 1; i <= 2000; i++ {
			if got := n.CandidatesFor(nil, question(cached(i))); len(got) != 1 || got[0].Service != squidAddr {
				t.Fatalf("candidates for %s: %+v", cached(i), got)
			}
		}
	})
}

// The digest of a Squid that does not rewrite it, or does not say when it will, is not transferred
// again.
func TestUnchangedDigestIsNotSentAgain(t *testing.T) {
	beside(t, Config{MinInterval: 30 * time.Second}, &mimic{}, func(m *mimic, n *Neighbours) {
		pause(2*time.Minute + 10*time.Second)
		if got := fmt.Sprint(m.answered, m.offsets()); got != "[200 304 304 304 304] [0 30 60 90 120]" {
			t.Errorf("answered %s", got)
		}
		if len(n.CandidatesFor(nil, question(cached(7)))) != 1 {
			t.Error("the digest was lost by a 304")
		}
	})
}

// A 304 need not repeat when the digest was written.
func TestTerseConfirmation(t *testing.T) {
	beside(t, Config{MinInterval: 30 * time.Second}, &mimic{terse: true}, func(m *mimic, n *Neighbours) {
		pause(2*time.Minute + 10*time.Second)
		m.mu.Lock()
		defer m.mu.Unlock()
		if got := fmt.Sprint(m.answered); got != "[200 304 304 304 304]" {
			t.Errorf("answered %s", got)
		}
	})
}

func TestFailuresBackOff(t *testing.T) {
	beside(t, Config{}, &mimic{fails: http.StatusNotFound}, func(m *mimic, n *Neighbours) {
		pause(3 * time.Minute)
		if s := n.Status(nil)[0]; s.Alive || s.Since.IsZero() || n.CandidatesFor(nil, question(cached(7))) != nil {
			t.Errorf("a Squid without a digest: %+v", s)
		}
		// 10, 20, 40 and 80 s, and up to a tenth more
		if got := m.offsets(); len(got) != 5 || got[4] < 150 || got[4] > 166 {
			t.Errorf("requests after %v seconds", got)
		}
		m.set(func() { m.fails = 0 })
		pause(3 * time.Minute)
		if s := n.Status(nil)[0]; !s.Alive {
			t.Errorf("after it recovered: %+v", s)
		}
	})
}

// An invalid digest does not replace a good one. A digest that is not confirmed for an hour is
// dropped.
func TestBadDigestDoesNotReplaceAGoodOne(t *testing.T) {
	beside(t, Config{}, &mimic{period: time.Minute}, func(m *mimic, n *Neighbours) {
		pause(10 * time.Second)
		m.set(func() { m.body = m.body[:500] })
		pause(10 * time.Minute)
		if s := n.Status(nil)[0]; !s.Alive || s.Current || len(n.CandidatesFor(nil, question(cached(7)))) != 1 {
			t.Errorf("after ten minutes of nonsense: %+v", s)
		}
		pause(70 * time.Minute)
		if s := n.Status(nil)[0]; s.Alive || n.CandidatesFor(nil, question(cached(7))) != nil {
			t.Errorf("after an hour of nonsense: %+v", s)
		}
	})
}

func TestWhatIsNotAsked(t *testing.T) {
	b, err := format.NewBuilder(100, 100)
	if err != nil {
		t.Fatal(err)
	}
	const url, mark = "http://example.com/v", `accept-encoding="gzip"`
	b.Add(format.KeyOf(format.Get, url, ""))
	b.Add(format.KeyOf(format.Get, url, mark))
	d, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	if _, err := d.WriteTo(&body); err != nil {
		t.Fatal(err)
	}
	beside(t, Config{}, &mimic{body: body.Bytes()}, func(_ *mimic, n *Neighbours) {
		pause(time.Second)
		other := question(url, "GET "+url+"\nAccept-Encoding:br")
		other.Header.Set("Accept-Encoding", "br")
		through := question(url)
		through.Header["Via"] = []string{"1.0 x, 1.1 m (squid/5.7)", "1.1 us"}
		byOther := question(url)
		byOther.Header["Via"] = []string{"1.1 n (squid/5.7), 1.1 us"}
		for name, c := range map[string]struct {
			q    *sibling.LookupRequest
			want int
		}{
			"the URL":                      {question(url), 1},
			"the variant that it has":      {question(url, "GET "+url+"\nAccept-Encoding:gzip"), 1},
			"another variant":              {other, 0},
			"one that varies by two":       {question(url, "GET "+url+"\nAccept:\nAccept-Encoding:br"), 1},
			"another URL":                  {question("http://example.com/w"), 0},
			"a request that came from it":  {through, 0},
			"a request from another Squid": {byOther, 1},
			"no identity":                  {&sibling.LookupRequest{}, 0},
		} {
			if got := n.CandidatesFor(nil, c.q); len(got) != c.want {
				t.Errorf("%s: %d candidates, want %d", name, len(got), c.want)
			}
		}
	})
}

// What a Squid says is about a lookup: without any it says nothing, whatever its digest matches.
func TestSaysNothingUnasked(t *testing.T) {
	b, err := format.NewBuilder(100, 100)
	if err != nil {
		t.Fatal(err)
	}
	b.Add(format.Key{})
	b.Add(format.KeyOf(format.Get, cached(1), ""))
	d, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	if _, err := d.WriteTo(&body); err != nil {
		t.Fatal(err)
	}
	beside(t, Config{}, &mimic{body: body.Bytes()}, func(_ *mimic, n *Neighbours) {
		pause(time.Second)
		for name, tt := range map[string]struct {
			q    *sibling.LookupRequest
			want bool
		}{"no lookup": {nil, false}, "a lookup without an identity": {&sibling.LookupRequest{}, false}, "a lookup": {question(cached(1)), true}} {
			if got := n.Status(tt.q); len(got) != 1 || !got[0].Alive || got[0].Says != tt.want {
				t.Errorf("%s: Status() = %+v, want Says: %v", name, got, tt.want)
			}
		}
	})
}

// A digest is megabytes long. The line about it has its size.
func TestLineOfADigest(t *testing.T) {
	var log strings.Builder
	beside(t, Config{Logger: textLogger(&log)}, &mimic{}, func(*mimic, *Neighbours) { pause(time.Second) })
	if !strings.Contains(log.String(), " objects=") || strings.Contains(log.String(), "mask") || len(log.String()) > 300 {
		t.Errorf("log: %.1000s", log.String())
	}
}

func TestImportantWordsOfErrors(t *testing.T) {
	var log strings.Builder
	beside(t, Config{Logger: textLogger(&log)}, &mimic{fails: http.StatusForbidden}, func(*mimic, *Neighbours) {
		pause(time.Second)
	})
	if !strings.Contains(log.String(), "it answers 403: see digest_generation and http_access") {
		t.Errorf("log: %s", log.String())
	}
}
