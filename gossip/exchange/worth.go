package exchange

import (
	"math"
	"time"
)

// Wait returns how long a first change should wait for more. changes is their rate per second, and
// asks is how many requests a second each sibling has for a changed object while it is new. A
// datagram has a fixed cost, and a change is useful only to a sibling that misses its object.
//
// With a rate C of changes and a wait W, C/(1+CW) publications a second cost H bytes
// each, for each sibling. A change waits (W + CW²/2)/(1+CW) on average; meanwhile
// each sibling misses it h times a second, at V bytes. The sum of both costs is least
// at (1+CW)² = 2HC/(Vh) − 1 if changes come faster than Vh/H, and otherwise without a wait.
// The number of siblings does not matter: it multiplies both.
//
// Wait does not apply Publishing.Interval.
func (p Publishing) Wait(changes, asks float64) time.Duration {
	cost, gain := noticeCost*changes, missCost*asks
	if cost <= gain {
		return 0
	}
	if gain <= 0 || changes <= 0 {
		return math.MaxInt64
	}
	seconds := (math.Sqrt(2*cost/gain-1) - 1) / changes
	return time.Duration(min(seconds, maxWait) * float64(time.Second))
}

const (
	// noticeCost is the cost in bytes of a datagram with a single change, without the bits of the
	// change: the headers of IP and UDP, a short head, and the frame of a delta.
	noticeCost = 28 + 12 + 8
	// missCost is the value in bytes of a hit at a sibling on an object that it has just stored: an
	// eighth of a mean object.
	missCost = 4096
	maxWait  = 3600.0 // seconds
)

// A pace is a recent rate, as a count and the seconds in which it was counted.
type pace struct{ count, span float64 }

// paceMemory is the time in which past counts decay to 1/e.
const paceMemory = 30.0 // seconds

func (p *pace) add(count, seconds float64) {
	keep := math.Exp(-seconds / paceMemory)
	p.count = p.count*keep + count
	p.span = p.span*keep + seconds
}

// with returns the rate, including a count since the last add.
func (p pace) with(count, seconds float64) float64 {
	p.add(count, seconds)
	if p.span <= 0 {
		return 0
	}
	return p.count / p.span
}

// SetAsks sets how often this peer recently looked up objects that a sibling had just stored:
// lookups a second per change of a sibling's digest. The engine assumes the same of its siblings.
// The first value is 0.05. [Demand] measures it.
func (e *Engine) SetAsks(perChange float64) { e.asks = perChange }

// SetPublishing replaces Config.Publish.
func (e *Engine) SetPublishing(p Publishing) { e.cfg.Publish = p }

// Publishing returns what determines when a changed digest becomes a new version, among the peers that live now.
func (e *Engine) Publishing() Publishing { return e.cfg.Publish.For(len(e.live)) }

// priorAsks is a rate per change at which waits are short.
const priorAsks = 0.05

// nextPublication returns the expected time until the next publication has reached all peers.
func (e *Engine) nextPublication(now time.Time) time.Duration {
	policy := e.Publishing()
	rate := e.changes.with(0, now.Sub(e.publishedAt).Seconds())
	first := maxWait
	if rate > 0 {
		first = min(1/rate, maxWait)
	}
	return time.Duration(first*float64(time.Second)) + max(e.wait(now, 0), policy.MinInterval) + policy.round(len(e.live))
}

// wait returns how long the present changes may wait, counted from the first.
func (e *Engine) wait(now time.Time, changed int) time.Duration {
	policy := e.Publishing()
	rate := e.changes.with(float64(changed), now.Sub(e.publishedAt).Seconds())
	return min(policy.Wait(rate, e.asks), policy.Interval)
}
