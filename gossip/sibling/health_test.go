package sibling

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// plan returns the siblings that a client would ask for an object.
func (w *world) plan() (names []string) {
	for _, s := range w.client.Inside().Plan(LookupRequest{Identities: []string{"x"}}) {
		names = append(names, s.Peer)
	}
	return names
}

// A sibling that fails is suspended, for longer each time, until it answers or begins a new life.
func TestSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		p := w.sibling(nil)
		h := w.client.cfg.Health
		away := func() time.Duration {
			start := time.Now()
			for len(w.plan()) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			return time.Since(start)
		}
		for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
			w.learn(1) // refused
			if s := h.Of(p); !s.Suspended || s.Failures != int64(i)+1 {
				t.Errorf("after failure %d: %+v", i+1, s)
			}
			if took := away(); took != want {
				t.Errorf("after failure %d it was away for %v, want %v", i+1, took, want)
			}
		}
		for range 10 {
			h.record(outcome{peer: w.known[0].Peer, result: failed})
		}
		if took := away(); took != lastSuspension {
			t.Errorf("after many failures it was away for %v, want %v", took, lastSuspension)
		}
		h.record(outcome{peer: w.known[0].Peer, result: hit})
		w.learn(1)
		if took := away(); took != firstSuspension {
			t.Errorf("a hit did not end the doubling: away for %v", took)
		}
		w.known[0].Incarnation = 1
		if w.learn(1); len(w.plan()) != 0 {
			t.Error("a life becoming known ended a suspension")
		}
		w.known[0].Incarnation = 2
		if len(w.plan()) != 1 || h.Of(p).Suspended || h.Of(p).Failures == 0 {
			t.Errorf("in a new life: asks %v, %+v", w.plan(), h.Of(p))
		}
	})
}

// Messages other than lookup requests count: an error suspends at once, silence never, and an answer ends
// a suspension.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Health
		for i, tt := range []struct {
			err       error
			suspended bool
		}{
			{context.DeadlineExceeded, false}, {context.DeadlineExceeded, false}, {nil, false},
			{context.DeadlineExceeded, false}, {context.DeadlineExceeded, false}, {context.DeadlineExceeded, false},
			{errors.New("refused"), true}, {nil, false},
		} {
			h.record(outcome{peer: "p", kind: question, result: answerOf(tt.err), took: 50 * time.Millisecond})
			if got := h.Of("p"); got.Suspended != tt.suspended {
				t.Errorf("message %d, %v: %+v", i, tt.err, got)
			}
		}
	})
}

// A cache outside the cluster is ranked with the members, and has the same kind of record.
func TestOthersAreRankedWithMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		w.sibling(lacks)
		c, err := New(Config{Name: "me", Locator: beside{w, Candidate{Peer: "squid", Service: "10.0.0.9:80"}}})
		if err != nil {
			t.Fatal(err)
		}
		w.client = c
		for squid, want := range map[time.Duration]string{time.Second: "[p1 squid]", time.Millisecond: "[squid p1]"} {
			c.cfg.Health = &Health{}
			c.cfg.Health.record(outcome{peer: "p1", result: answered, took: 10 * time.Millisecond})
			c.cfg.Health.record(outcome{peer: "squid", result: answered, took: squid})
			if got := fmt.Sprint(w.plan()); got != want {
				t.Errorf("a Squid at %v: asks %v, want %v", squid, got, want)
			}
		}
		c.cfg.Health.record(outcome{peer: "squid", result: timedOut})
		if got := fmt.Sprint(w.plan()); got != "[p1]" {
			t.Errorf("a Squid that failed: asks %v", got)
		}
	})
}

// beside is a world with a cache outside the cluster.
type beside struct {
	*world
	other Candidate
}

func (b beside) CandidatesFor(dst []Candidate, _ *LookupRequest) []Candidate {
	return append(dst, b.other)
}

// The number of records is bounded, looking up a name adds none, and names that come and go replace
// each other rather than those in use.
func TestHealthIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Health
		for i := range maxRecords {
			h.Of(fmt.Sprint("looked up ", i))
			h.mu.Lock()
			h.of(fmt.Sprint("stranger ", i))
			h.mu.Unlock()
		}
		const members = 100
		for i := range members {
			h.record(outcome{peer: fmt.Sprint("member ", i), result: answered, took: time.Millisecond})
		}
		for i := range 4 * maxRecords {
			h.mu.Lock()
			h.of(fmt.Sprint("another ", i))
			h.mu.Unlock()
		}
		left := 0
		for i := range members {
			if h.Of(fmt.Sprint("member ", i)).RoundTrip > 0 {
				left++
			}
		}
		if len(h.byName) != maxRecords || left != members {
			t.Errorf("%d records, %d of %d members among them", len(h.byName), left, members)
		}
	})
}
