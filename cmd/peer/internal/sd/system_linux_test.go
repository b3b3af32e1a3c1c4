package sd

import (
	"testing"
	"time"
)

// TestMonotonic: the manager compares the time of a reload with its own clock.
func TestMonotonic(t *testing.T) {
	before := monotonic()
	time.Sleep(time.Millisecond)
	if after := monotonic(); before <= 0 || after < before+time.Millisecond {
		t.Errorf("monotonic() = %v and, a millisecond later, %v", before, after)
	}
}
