package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
)

// An address has as many requests at once as the rate says, and then one for each part of the time.
func TestRates(t *testing.T) {
	var l rates
	rule := &rules.Rule{Name: "1", Rate: &rules.Rate{Requests: 4, Per: time.Second}}
	now := time.Now()
	take := func(want time.Duration, client string) {
		t.Helper()
		if wait := l.take(rule, client, now); wait != want {
			t.Errorf("%s waits %v, want %v", client, wait, want)
		}
	}
	for range 4 {
		take(0, "192.0.2.1")
	}
	take(time.Second/4, "192.0.2.1")
	take(0, "192.0.2.2")
	for i := range 4 {
		take(0, fmt.Sprint("2001:db8::", i)) // one network
	}
	take(time.Second/4, "2001:db8::9")
	take(0, "2001:db8:0:1::")
	now = now.Add(100 * time.Millisecond)
	take(150*time.Millisecond, "192.0.2.1")
	now = now.Add(400 * time.Millisecond)
	take(0, "192.0.2.1")
	take(0, "192.0.2.1")
	take(time.Second/4, "192.0.2.1")
	now = now.Add(time.Hour)
	for range 4 {
		take(0, "192.0.2.1")
	}
	take(time.Second/4, "192.0.2.1")
	other := &rules.Rule{Name: "2", Rate: rule.Rate}
	if wait := l.take(other, "192.0.2.1", now); wait != 0 {
		t.Errorf("another rule: %v", wait)
	}
}

// A flood of addresses takes no more memory, and leaves no address without its requests.
func TestRatesOfManyAddresses(t *testing.T) {
	var l rates
	rule := &rules.Rule{Name: "1", Rate: &rules.Rate{Requests: 1, Per: time.Hour}}
	now := time.Now()
	for i := range 4 * rateSets * rateWays {
		if wait := l.take(rule, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), now); wait != 0 {
			t.Fatalf("address %d waits %v for its first request", i, wait)
		}
		now = now.Add(time.Millisecond)
	}
	last := 4*rateSets*rateWays - 1
	if wait := l.take(rule, fmt.Sprintf("10.%d.%d.%d", last>>16, last>>8&255, last&255), now); wait <= 0 {
		t.Error("the latest address was forgotten")
	}
}
