package backoff

import (
	"math"
	"testing"
	"time"
)

// The wait doubles from the first to the last, however many failures there were, and ends.
func TestBackoff(t *testing.T) {
	now := time.Unix(1000, 0)
	var b Backoff
	if !b.Over(now) {
		t.Error("what did not fail is left alone")
	}
	for i := range 1000 {
		b.Fail(now, time.Hour, 24*time.Hour)
		want := time.Duration(min(math.Exp2(float64(i)), 24)) * time.Hour
		if got := b.Until.Sub(now); got != want || b.Row != i+1 || b.Over(now.Add(want-1)) || !b.Over(now.Add(want)) {
			t.Fatalf("after %d failures: %+v, a wait of %v; want %v", i+1, b, got, want)
		}
	}
	if b = (Backoff{}); b.Wait(time.Second, time.Minute) != time.Second {
		t.Error("a new row does not begin with the first wait")
	}
}
