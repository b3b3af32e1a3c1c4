// Package backoff has the one way in which a peer that failed is left alone for a while.
package backoff

import "time"

// A Backoff says for how long something is left alone: for a first wait after one failure, and twice as long after each
// further one in a row, up to a last wait. The zero value is something that did not fail. It is not safe for concurrent
// use.
type Backoff struct {
	Row   int       // failures in a row
	Until time.Time // the end of the wait
}

// Fail notes a failure, and begins the wait after it.
func (b *Backoff) Fail(now time.Time, first, last time.Duration) {
	b.Until = now.Add(b.Wait(first, last))
	b.Row++
}

// Wait returns how long the wait after the next failure is.
func (b *Backoff) Wait(first, last time.Duration) time.Duration {
	const most = 20 // an hour, doubled more often, might be more than a Duration holds
	return min(first<<min(b.Row, most), last)
}

// Over reports whether there is nothing to wait for.
func (b *Backoff) Over(now time.Time) bool { return !now.Before(b.Until) }
