package sibling

import (
	"net/http"
	"testing"
	"time"
)

// TestYield: what a peer learns from one event, and when an owner is asked by it.
func TestYield(t *testing.T) {
	const before = 0.25
	for name, tt := range map[string]struct {
		event func(c *coalescer)
		want  float64 // notes that others want the object, less notes that they do not
	}{
		"an owner names nobody":         {func(c *coalescer) { c.yield.asked(0, false) }, -1},
		"an owner names a peer":         {func(c *coalescer) { c.yield.asked(0, true) }, 1},
		"a request joins":               {func(c *coalescer) { c.Joined() }, 1},
		"somebody was sent":             {func(c *coalescer) { c.Served(http.Header{"Prefer": {"wait=2"}}) }, 1},
		"somebody found it in a digest": {func(c *coalescer) { c.Served(http.Header{}) }, 0},
	} {
		c := &coalescer{yield: yield{share: before}}
		tt.event(c)
		up, down := yieldGain*(1-before), yieldGain*before
		want := map[float64]float64{0: before, 1: before + up, -1: before - down}[tt.want]
		if c.yield.share != want {
			t.Errorf("%s: the share is %.4f, want %.4f", name, c.yield.share, want)
		}
	}
}

// TestYieldPays: an owner is asked if the share times what a fetch takes is more than the way to the owner; if the share is
// large; while little is known; and now and then in any case.
func TestYieldPays(t *testing.T) {
	trip := average{0.010, true}
	for name, tt := range map[string]struct {
		y     *yield
		fetch time.Duration
		want  bool
	}{
		"a long fetch":            {&yield{share: 0.2, trip: trip}, 60 * time.Millisecond, true},
		"a short fetch":           {&yield{share: 0.2, trip: trip}, 40 * time.Millisecond, false},
		"a short fetch, a herd":   {&yield{share: 0.4, trip: trip}, time.Millisecond, true},
		"a quick owner":           {&yield{share: 0.2, trip: average{0, true}}, 4 * time.Millisecond, false},
		"an unknown fetch":        {&yield{share: 0.06, trip: trip}, 0, true},
		"an unknown owner":        {&yield{share: 0.06}, time.Millisecond, true},
		"neither known, nobody":   {&yield{share: 0.04}, 0, false},
		"the last of many to ask": {&yield{share: 0, trip: trip, spare: yieldProbe - 1}, time.Millisecond, true},
	} {
		if got := tt.y.pays(tt.fetch, time.Now()); got != tt.want {
			t.Errorf("%s: pays = %v", name, got)
		}
	}
}
