package exchange

import (
	"math"
	"time"
)

// Wait returns how long a first change is to wait for more of them, where each datagram
// costs what it costs whatever is in it, and a change is of use only to a sibling that
// misses its object: changes come at so many a second, and each is asked for by so many
// requests a second of any one sibling while it is new.
//
// With a rate C of changes and a wait W, C/(1+CW) publications a second cost H bytes
// each, to each sibling; and a change waits (W + CW²/2)/(1+CW) on average, in which it is
// asked for in vain by h of each sibling a second, at V bytes. The sum of both is least
// where (1+CW)² = 2HC/(Vh) − 1, if changes come faster than Vh/H, and else with no wait.
// The number of siblings does not matter: it multiplies both.
//
// It is no bound that is kept: see Publishing.Interval.
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
	// noticeCost is what a change that travels alone costs beside its own bits, in
	// bytes: the headers of IP and UDP, a short head, and how a delta is framed.
	noticeCost = 28 + 12 + 8
	// missCost is what it is worth, in bytes, that a miss finds what a sibling has
	// just got: an eighth of a mean object.
	missCost = 4096
	maxWait  = 3600.0 // seconds
)

// A pace is how fast something happens lately.
type pace struct{ count, span float64 }

// paceMemory is the time in which what was seen loses most of its weight.
const paceMemory = 30.0 // seconds

func (p *pace) add(count, seconds float64) {
	keep := math.Exp(-seconds / paceMemory)
	p.count = p.count*keep + count
	p.span = p.span*keep + seconds
}

// with returns the rate, given what has happened since.
func (p pace) with(count, seconds float64) float64 {
	p.add(count, seconds)
	if p.span <= 0 {
		return 0
	}
	return p.count / p.span
}

// SetAsks says how often this peer lately asked for what a sibling had just got: lookups
// a second, for each change of a sibling's, that could have been answered by that. It
// takes its siblings to do as it does. Until it is told an engine takes it to be
// [PriorAsks].
func (e *Engine) SetAsks(perChange float64) { e.asks = perChange }

// PriorAsks is a rate of asks for each change that makes waits short.
const PriorAsks = 0.05

// nextPublication is how long the next publication will take to come and to spread.
func (e *Engine) nextPublication(now time.Time) time.Duration {
	policy := e.cfg.Publish.For(len(e.live))
	rate := e.changes.with(0, now.Sub(e.publishedAt).Seconds())
	first := maxWait
	if rate > 0 {
		first = min(1/rate, maxWait)
	}
	return time.Duration(first*float64(time.Second)) + max(e.wait(now, 0), policy.MinInterval) + policy.round(len(e.live))
}

// wait is how long the changes that are there may wait from the first of them on.
func (e *Engine) wait(now time.Time, changed int) time.Duration {
	policy := e.cfg.Publish.For(len(e.live))
	rate := e.changes.with(float64(changed), now.Sub(e.publishedAt).Seconds())
	return min(policy.Wait(rate, e.asks), policy.Interval)
}
