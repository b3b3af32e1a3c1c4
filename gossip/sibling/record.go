package sibling

import (
	"math"
	"sync"
	"time"
)

// A record is what is known of one sibling, or of an origin. It is safe for
// concurrent use.
type record struct {
	mu     sync.Mutex
	life   uint64    // Candidate.Incarnation of which the rest is known
	trip   average   // seconds to an answer's header, be it a hit or a false hit
	pace   average   // seconds for each byte from then on
	spread histogram // of round trips
	last   time.Time // when it answered, or was waited for in vain, last

	hits, falseHits, failures int64   // of all lives
	good, bad                 float64 // questions answered with an object of use, and the others; fading

	outrun           int // questions that it left unanswered in time or that another answered first, since it last answered
	inRow            int // failures since it last answered
	suspendedUntil   time.Time
	quarantinedUntil time.Time
	quarantines      int
	window           window
}

// window is what the quarantine judges by.
type window struct {
	lookups         int64 // of the Health when the window began
	hits, falseHits int
}

const (
	fade        = 0.98 // of old outcomes' weight at each new one
	priorWeight = 5    // questions that what a digest says of itself counts for
	// priorYes is the odds, to one, that a digest's yes for an object that the
	// sibling could hold is for one that it does.
	priorYes = 1.0 / 16
	halfTrue = 10 * time.Minute // a digest that has not been confirmed for so long is right half as often

	forget    = 30 * time.Second // half of what a round trip was above or below the others' counts no longer after that
	leastTrip = time.Millisecond // round trips below are all the same
	leastBody = 16 << 10         // bodies below tell nothing of their source's pace
	tooOften  = 3                // times outrun in a row that count as a failure

	firstSuspension = 500 * time.Millisecond
	lastSuspension  = 30 * time.Second

	// A sibling is quarantined when so many false hits have been seen, more than
	// hits, and several times as many as its digest's error rate explains.
	quarantineLeast  = 32
	quarantineExcess = 4
	firstQuarantine  = time.Minute
	lastQuarantine   = 30 * time.Minute
	windowFull       = 1024 // hits and false hits with which a window ends
)

// answered notes the round trip of an answer.
func (r *record) answered(d time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trip.add(d)
	r.spread.add(d)
	r.last = now
	r.restore()
}

// restore ends a suspension. r.mu is held.
func (r *record) restore() { r.outrun, r.inRow, r.suspendedUntil = 0, 0, time.Time{} }

// unanswered notes that there was no answer for so long, and returns how often that
// was so in a row: after some times something must be wrong.
func (r *record) unanswered(d time.Duration, now time.Time) (row int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.Seconds() > r.trip.value {
		r.trip.add(d)
	}
	r.spread.add(d)
	r.last = now
	r.outrun++
	return r.outrun
}

// gave notes that n bytes took so long.
func (r *record) gave(n int64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pace.observe(took.Seconds() / float64(n))
}

// count notes whether a question brought what is of use. r.mu is held.
func (r *record) count(good bool) {
	r.good, r.bad = r.good*fade, r.bad*fade
	if good {
		r.good++
	} else {
		r.bad++
	}
}

// hit counts an object that the digest listed, be it of use or not.
func (r *record) hit(useful bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits++
	r.window.hits++
	r.count(useful)
	r.restore()
}

// falseHit counts one, in the so-manieth lookup, of a digest that errs so often. It
// reports whether the sibling is quarantined for it.
func (r *record) falseHit(lookups int64, falsePositives float64, now time.Time) (quarantined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.falseHits++
	r.window.falseHits++
	r.count(false)
	r.restore()
	w := r.window
	explained := falsePositives * float64(lookups-w.lookups)
	if w.falseHits < quarantineLeast || w.falseHits <= w.hits || float64(w.falseHits) <= quarantineExcess*explained {
		if w.hits+w.falseHits >= windowFull {
			r.window = window{lookups: lookups}
		}
		return false
	}
	r.quarantineLocked(now)
	r.window = window{lookups: lookups}
	return true
}

func (r *record) quarantine(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quarantineLocked(now)
}

func (r *record) quarantineLocked(now time.Time) {
	r.quarantinedUntil = now.Add(min(firstQuarantine<<min(r.quarantines, 10), lastQuarantine))
	r.quarantines++
}

// failed counts a question without an answer, and suspends the sibling.
func (r *record) failed(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	r.count(false)
	r.suspendedUntil = now.Add(min(firstSuspension<<min(r.inRow, 10), lastSuspension))
	r.inRow++
}

// available reports whether the sibling may be asked in that life. A new life ends a
// suspension, and the odds of the former; its honesty is remembered.
func (r *record) available(life uint64, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if life != r.life {
		if r.life != 0 {
			r.good, r.bad = 0, 0
			r.restore()
		}
		r.life = life
	}
	return !now.Before(r.suspendedUntil) && !now.Before(r.quarantinedUntil)
}

// odds is the probability that the sibling has what its digest says, of which it
// is known how often it errs and since when it was not confirmed.
func (r *record) odds(falsePositives float64, age time.Duration) float64 {
	prior := 1 / (1 + falsePositives/priorYes) / (1 + age.Seconds()/halfTrue.Seconds())
	r.mu.Lock()
	defer r.mu.Unlock()
	return (r.good + priorWeight*prior) / (r.good + r.bad + priorWeight)
}

// roundTrip is what one takes: as lately, and the longer ago that was, the more
// as the others'. It is 0 if nothing is known.
func (r *record) roundTrip(others average, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := others.value
	if r.trip.known {
		v += (r.trip.value - v) * math.Exp2(-now.Sub(r.last).Seconds()/forget.Seconds())
	}
	return time.Duration(v * float64(time.Second))
}

// source returns what the source took lately to a header and for each byte after it, and
// when it answered last.
func (r *record) source() (trip, pace average, last time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trip, r.pace, r.last
}

// late returns after how long an answer is later than all but one in twenty.
func (r *record) late() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spread.quantile(0.95)
}
