package gossip

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// record is how a peer did as a sibling. Lookups read only the atomics.
type record struct {
	score     atomic.Uint32 // odds that asking it succeeds, in 1/scoreUnit
	asideTill atomic.Int64  // Unix nanoseconds until which it is no candidate; 0 if it is one

	mu               sync.Mutex
	hits, falseHits  int64
	failures         int64
	good, bad        float64 // recent hits and misses of any kind, fading
	inRow            int     // failures without an answer between them
	suspendedUntil   time.Time
	quarantinedUntil time.Time
	quarantines      int
	window           window
}

// window is what the quarantine judges by.
type window struct {
	lookups   int64 // the node's count when the window began
	hits      int
	falseHits int
}

const (
	scoreUnit = 16

	// The prior: a peer of which nothing is known answers four times of five.
	priorGood, priorBad = 4, 1
	fade                = 0.98 // of old outcomes' weight at each new one

	firstSuspension = 500 * time.Millisecond
	lastSuspension  = 30 * time.Second

	// A peer is quarantined when so many false hits have been seen, more than
	// hits, and several times as many as its digest's error rate explains.
	quarantineLeast  = 32
	quarantineExcess = 4
	firstQuarantine  = time.Minute
	lastQuarantine   = 30 * time.Minute
)

func (r *record) init() { r.rate() }

// rate recomputes the score. It is called with r.mu held, or before r is shared.
func (r *record) rate() {
	p := (r.good + priorGood) / (r.good + r.bad + priorGood + priorBad)
	r.score.Store(uint32(math.Round(p * scoreUnit)))
}

// available reports whether the peer may be a candidate.
func (r *record) available(now time.Time) bool {
	t := r.asideTill.Load()
	return t == 0 || now.UnixNano() >= t
}

func (r *record) hit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits++
	r.window.hits++
	r.answered()
	r.good, r.bad = r.good*fade+1, r.bad*fade
	r.rate()
}

// falseHit counts one, and reports whether the peer is quarantined for it.
func (r *record) falseHit(now time.Time, lookups int64, falsePositives float64) (until time.Time, quarantined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.falseHits++
	r.window.falseHits++
	r.answered()
	r.good, r.bad = r.good*fade, r.bad*fade+1
	r.rate()
	explained := falsePositives * float64(lookups-r.window.lookups)
	w := r.window
	if w.falseHits < quarantineLeast || w.falseHits <= w.hits || float64(w.falseHits) <= quarantineExcess*explained {
		if w.hits+w.falseHits >= 1024 {
			r.window = window{lookups: lookups}
		}
		return time.Time{}, false
	}
	r.quarantinedUntil = now.Add(min(firstQuarantine<<min(r.quarantines, 10), lastQuarantine))
	r.quarantines++
	r.window = window{lookups: lookups}
	r.setAside()
	return r.quarantinedUntil, true
}

// failed counts a question without an answer.
func (r *record) failed(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	r.suspendedUntil = now.Add(min(firstSuspension<<min(r.inRow, 10), lastSuspension))
	r.inRow++
	r.good, r.bad = r.good*fade, r.bad*fade+1
	r.rate()
	r.setAside()
}

// answered ends a suspension. It is called with r.mu held.
func (r *record) answered() {
	if r.inRow > 0 {
		r.inRow = 0
		r.suspendedUntil = time.Time{}
		r.setAside()
	}
}

// restarted forgets what a former life of the peer did, except for its honesty.
func (r *record) restarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inRow = 0
	r.suspendedUntil = time.Time{}
	r.good, r.bad = 0, 0
	r.rate()
	r.setAside()
}

func (r *record) setAside() {
	t := r.suspendedUntil
	if r.quarantinedUntil.After(t) {
		t = r.quarantinedUntil
	}
	if t.IsZero() {
		r.asideTill.Store(0)
		return
	}
	r.asideTill.Store(t.UnixNano())
}

func (r *record) describe(m *Member, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.Hits, m.FalseHits, m.Failures = r.hits, r.falseHits, r.failures
	m.Suspended = now.Before(r.suspendedUntil)
	m.Quarantined = now.Before(r.quarantinedUntil)
}
