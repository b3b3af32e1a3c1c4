package sibling

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// Candidates are asked in the order of round trip over odds, and in the Locator's order if these
// are similar.
func TestRank(t *testing.T) {
	type past struct {
		trip      time.Duration
		good, bad int
	}
	for name, tt := range map[string]struct {
		past  map[string]past
		known []Candidate
		want  string
	}{
		"nothing known":         {nil, []Candidate{{Peer: "b"}, {Peer: "a"}}, "b a"},
		"nearer":                {map[string]past{"a": {2 * time.Millisecond, 9, 0}, "b": {20 * time.Millisecond, 9, 0}}, []Candidate{{Peer: "b"}, {Peer: "a"}}, "a b"},
		"both near":             {map[string]past{"a": {100 * time.Microsecond, 9, 0}, "b": {900 * time.Microsecond, 9, 0}}, []Candidate{{Peer: "b"}, {Peer: "a"}}, "b a"},
		"near, often wrong":     {map[string]past{"a": {2 * time.Millisecond, 1, 60}, "b": {5 * time.Millisecond, 60, 0}}, []Candidate{{Peer: "a"}, {Peer: "b"}}, "b a"},
		"far, always right":     {map[string]past{"a": {2 * time.Millisecond, 60, 20}, "b": {50 * time.Millisecond, 60, 0}}, []Candidate{{Peer: "b"}, {Peer: "a"}}, "a b"},
		"an old digest":         {nil, []Candidate{{Peer: "a", Age: time.Hour}, {Peer: "b", Age: time.Second}}, "b a"},
		"a bad digest":          {nil, []Candidate{{Peer: "a", FalsePositiveRate: 0.09}, {Peer: "b", FalsePositiveRate: 0.001}}, "b a"},
		"an unknown is average": {map[string]past{"a": {10 * time.Millisecond, 9, 0}, "c": {400 * time.Millisecond, 9, 0}}, []Candidate{{Peer: "c"}, {Peer: "b"}, {Peer: "a"}}, "a b c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := New(Config{Name: "me", Locator: &world{known: tt.known}})
			if err != nil {
				t.Fatal(err)
			}
			c.most = 9
			for peer, p := range tt.past {
				for i := range p.good + p.bad {
					c.cfg.Health.answered(peer, p.trip, time.Now())
					c.cfg.Health.mu.Lock()
					c.cfg.Health.of(peer).count(i < p.good)
					c.cfg.Health.mu.Unlock()
				}
			}
			got := ""
			for _, s := range c.Plan(LookupRequest{Identities: []string{"x"}}) {
				got += " " + s.Peer
			}
			if got != " "+tt.want {
				t.Errorf("%s: asked%s, want %s: %+v", name, got, tt.want, c.Plan(LookupRequest{Identities: []string{"x"}}))
			}
		})
	}
}

// A sibling that was slow once is tried again.
func TestSlowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		r.answered(400*time.Millisecond, time.Now())
		others := average{0.002, true}
		for _, want := range []time.Duration{400 * time.Millisecond, 201 * time.Millisecond, 101500 * time.Microsecond} {
			if got := r.roundTrip(others, time.Now()); math.Abs(float64(got-want)) > float64(time.Microsecond) {
				t.Errorf("roundTrip = %v, want %v", got, want)
			}
			time.Sleep(30 * time.Second)
		}
	})
}

// The quantile is accurate to a quarter of an octave, and follows changes.
func TestHistogram(t *testing.T) {
	var h histogram
	if _, ok := h.quantile(0.95); ok {
		t.Error("a quantile of nothing")
	}
	for i := range 200 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 100, 0.95: 190, 1: 200} {
		got, _ := h.quantile(q)
		if ms := got.Seconds() * 1000; ms < want || ms > want*math.Exp2(0.25)*1.01 {
			t.Errorf("quantile(%v) = %v, want %v ms or up to a quarter octave more", q, got, want)
		}
	}
	for range 2000 {
		h.add(time.Millisecond)
	}
	if got, _ := h.quantile(0.95); got > 1200*time.Microsecond {
		t.Errorf("quantile(0.95) = %v of what lately took 1 ms", got)
	}
	h.add(0)
	h.add(time.Hour)
}
