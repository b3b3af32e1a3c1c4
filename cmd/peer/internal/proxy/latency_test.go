package proxy

import (
	"testing"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

func TestLatencies(t *testing.T) {
	for _, tt := range []struct {
		took  time.Duration
		class int
	}{
		{0, 0}, {124 * time.Microsecond, 0}, {125 * time.Microsecond, 1}, {249 * time.Microsecond, 1}, {250 * time.Microsecond, 2},
		{time.Millisecond, 4}, {time.Second, 13}, {4 * time.Minute, 21}, {time.Hour, 21},
	} {
		var c counters
		c.count(&Event{Result: engine.Result{Outcome: engine.LocalHit}, Duration: tt.took})
		c.count(&Event{Result: engine.Result{Outcome: engine.OriginFetch}, Duration: tt.took})
		c.count(&Event{Result: engine.Result{Outcome: engine.Bypass}, Duration: tt.took})
		c.count(&Event{Result: engine.Result{Outcome: engine.LocalHit}, Duration: tt.took, Sibling: true})
		if all, origin := c.latency.counts(), c.originLatency.counts(); all[tt.class] != 2 || origin[tt.class] != 1 {
			t.Errorf("%v: %v, %v, want 2 and 1 in class %d", tt.took, all, origin, tt.class)
		}
	}
}
