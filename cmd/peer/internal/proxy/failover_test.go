package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bodiesOf is a transport whose answers are by host: a status, or 0 for an error. It counts the bodies that are open.
type bodiesOf struct {
	mu     sync.Mutex // guards status and asked
	status map[string]int
	asked  []string
	open   atomic.Int64
}

func (b *bodiesOf) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.asked = append(b.asked, r.URL.Host)
	status := b.status[r.URL.Host]
	b.mu.Unlock()
	if status == 0 {
		return nil, errors.New("no answer")
	}
	b.open.Add(1)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Request: r,
		Body: &openBody{Reader: strings.NewReader("body"), close: func() { b.open.Add(-1) }}}, nil
}

type openBody struct {
	io.Reader
	close func()
}

func (o *openBody) Close() error { o.close(); return nil }

// twoOrigins returns a site of the origins a and b.
func twoOrigins(b *bodiesOf, balance bool) *upstream {
	s := Site{Hosts: []string{"site.test"}, Balance: balance, Check: "/health"}
	for _, host := range []string{"a", "b"} {
		s.Origins = append(s.Origins, &url.URL{Scheme: "http", Host: host})
	}
	return newUpstream(s, &origins{RoundTripper: b, failings: &failings{log: slog.New(slog.DiscardHandler)}})
}

// TestFailoverLeavesNothing: whichever origin answers, and however, no body stays open but the one that is returned, and no request
// counts as under way when that is closed. An origin that gives no answer rests; one that answers with an error does not.
func TestFailoverLeavesNothing(t *testing.T) {
	const n = 100
	for name, tc := range map[string]struct {
		a, b   int // statuses
		method string
		status int    // that is returned; 0 = an error
		asked  string // for one request
		rests  bool   // the first
	}{
		"the first answers":               {200, 200, "GET", 200, "a", false},
		"the second answers":              {503, 200, "GET", 200, "a b", false},
		"both answer with an error":       {503, 502, "GET", 502, "a b", false},
		"what is not sent again":          {503, 200, "POST", 503, "a", false},
		"only the second answers":         {0, 200, "GET", 200, "a b", true},
		"the second, with an error":       {0, 503, "GET", 503, "a b", true},
		"none answers":                    {0, 0, "GET", 0, "a b", true},
		"the second does not answer":      {503, 0, "GET", 0, "a b", false},
		"no answer to what is sent once":  {0, 200, "POST", 0, "a", true},
		"one that switches the protocol":  {101, 200, "GET", 200, "a b", true},
		"both switch, without being told": {101, 101, "GET", 0, "a b", true},
	} {
		for _, balance := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := &bodiesOf{status: map[string]int{"a": tc.a, "b": tc.b}}
				u := twoOrigins(b, balance)
				for range n {
					u.turn.Store(1) // it is the turn of the first
					b.asked = nil
					r, err := http.NewRequestWithContext(t.Context(), tc.method, "http://site.test/x", nil)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := u.roundTrip(r, "http", "", func(resp *http.Response) bool { return resp.StatusCode >= 500 })
					got := 0
					if err == nil {
						got = resp.StatusCode
						if open := b.open.Load(); open != 1 {
							t.Fatalf("%s: %d bodies are open beside an answer, want its own", name, open)
						}
						resp.Body.Close()
						resp.Body.Close()
						b.open.Add(1) // of the second Close
					}
					if asked := strings.Join(b.asked, " "); got != tc.status || asked != tc.asked {
						t.Fatalf("%s: roundTrip() = %d by %s, want %d by %s", name, got, asked, tc.status, tc.asked)
					}
					if u.backends[0].rests(time.Now()) != tc.rests {
						t.Fatalf("%s: the first rests: %v, want %v", name, !tc.rests, tc.rests)
					}
					time.Sleep(restLongest + 1) // the longest pause
					if u.backends[0].rests(time.Now()) {
						t.Fatalf("%s: it rests for longer than %v", name, restLongest)
					}
				}
				if open := b.open.Load(); open != 0 {
					t.Errorf("%s: %d bodies are open at the end", name, open)
				}
				for _, o := range u.backends {
					if under := o.underWay.Load(); under != 0 {
						t.Errorf("%s: %d requests to %s are under way at the end", name, under, o.url.Host)
					}
				}
			})
		}
	}
}

// TestFailoverThatIsTheClients: for what is the client's fault no other origin is asked, and none rests.
func TestFailoverThatIsTheClients(t *testing.T) {
	b := &bodiesOf{status: map[string]int{"a": 0, "b": 200}}
	u := twoOrigins(b, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://site.test/x", nil)
	if _, err := u.roundTrip(r, "http", "", func(*http.Response) bool { return true }); err == nil || len(b.asked) != 1 || u.backends[0].rests(time.Now()) {
		t.Errorf("roundTrip() of a client that left = %v, asked %v, the first rests: %v", err, b.asked, u.backends[0].rests(time.Now()))
	}
}

// TestAnAnswerEndsTheRest: an origin that answers is tried first again, and its next pause is the shortest.
func TestAnAnswerEndsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bodiesOf{status: map[string]int{"a": 200}}
		o := twoOrigins(b, false).backends[0]
		for range 5 {
			o.fail()
		}
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://a/", nil)
		resp, err := o.roundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if o.rests(time.Now()) {
			t.Error("it rests after an answer")
		}
		if o.fail(); o.rests(time.Now().Add(restShortest)) {
			t.Errorf("the pause after an answer and a failure is more than %v", restShortest)
		}
	})
}

// fail notes that the origin has not answered.
func (b *backend) fail() { b.transport.failed(b.url.Host, errors.New("no answer")) }

// TestHealthChecks: checks leave no body open, and say when an origin fails and when it works again, once. An origin
// that passes is not at rest any more.
func TestHealthChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		b := &bodiesOf{status: map[string]int{"a": 200, "b": 200}}
		u := twoOrigins(b, false)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { u.watch(ctx, "peer", slog.New(slog.NewTextHandler(&logged, nil))); close(ended) }()
		for _, step := range []struct {
			status int
			rests  bool
			lines  int // of the log, so far
		}{{200, false, 0}, {399, false, 0}, {400, true, 1}, {0, true, 1}, {199, true, 1}, {204, false, 2}, {503, true, 3}} {
			b.mu.Lock()
			b.status["a"] = step.status
			b.mu.Unlock()
			if step.status == 204 {
				for range 10 { // requests of clients, so that it rests for longer than the next checks take
					u.backends[0].fail()
				}
			}
			time.Sleep(3 * checkEvery)
			synctest.Wait()
			if got := u.backends[0].rests(time.Now()); got != step.rests || u.backends[1].rests(time.Now()) {
				t.Errorf("after status %d: at rest %v, want %v", step.status, got, step.rests)
			}
			if got := strings.Count(logged.String(), "\n"); got != step.lines {
				t.Errorf("after status %d: %d lines in the log, want %d", step.status, got, step.lines)
			}
		}
		cancel()
		<-ended
		if open := b.open.Load(); open != 0 {
			t.Errorf("%d bodies are open", open)
		}
	})
}
