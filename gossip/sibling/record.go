package sibling

import (
	"math"
	"time"
)

// A record is what a [Health] knows of one sibling, or of an origin.
type record struct {
	life   uint64    // Candidate.Incarnation of which the rest is known
	trip   average   // seconds to an answer's header, be it a hit or a false hit
	pace   average   // seconds for each byte from then on
	spread histogram // of round trips
	last   time.Time // when it answered, or failed to in time, last

	hits, falseHits, failures int64   // in all its lives
	good, bad                 float64 // questions answered with an object of use, and the others; fading

	lateInRow        int // questions that another answered first, or nobody in time, since it last answered
	failedInRow      int // failures since it last answered
	suspendedUntil   time.Time
	quarantinedUntil time.Time
	quarantines      int
	window           window
}

// A window has the counts by which false hits are judged.
type window struct {
	lookups         int64 // of the Health when the window began
	hits, falseHits int
}

const (
	fade        = 0.98 // of old outcomes' weight at each new one
	priorWeight = 5    // questions that a digest's own error rate counts for
	// priorYes is the odds, to one, that a digest's yes for an object that the
	// sibling could hold is for one that it does.
	priorYes = 1.0 / 16
	halfTrue = 10 * time.Minute // a digest that has not been confirmed for so long is right half as often

	forget    = 30 * time.Second // in which a round trip's distance from the others' average halves
	leastTrip = time.Millisecond // round trips below are all the same
	leastBody = 16 << 10         // shorter bodies don't show their source's pace
	tooOften  = 3                // times late in a row that count as a failure

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
	r.trip.add(d.Seconds())
	r.spread.add(d)
	r.last = now
	r.restore()
}

// restore ends a suspension.
func (r *record) restore() { r.lateInRow, r.failedInRow, r.suspendedUntil = 0, 0, time.Time{} }

// unanswered notes that there was no answer for so long, and returns how often in a row
// that was so.
func (r *record) unanswered(d time.Duration, now time.Time) (row int) {
	if d.Seconds() > r.trip.value {
		r.trip.add(d.Seconds())
	}
	r.spread.add(d)
	r.last = now
	r.lateInRow++
	return r.lateInRow
}

// count notes whether a question brought an object of use.
func (r *record) count(good bool) {
	r.good, r.bad = r.good*fade, r.bad*fade
	if good {
		r.good++
	} else {
		r.bad++
	}
}

// hit counts an object that the digest listed, whether or not it was of use.
func (r *record) hit(useful bool) {
	r.hits++
	r.window.hits++
	r.count(useful)
	r.restore()
}

// falseHit counts one of a digest with that error rate, after so many lookups. It
// reports whether the sibling is quarantined for it.
func (r *record) falseHit(lookups int64, falsePositives float64, now time.Time) (quarantined bool) {
	r.falseHits++
	r.window.falseHits++
	r.count(false)
	r.restore()
	w := r.window
	explained := falsePositives * float64(lookups-w.lookups)
	if quarantined = w.falseHits >= quarantineLeast && w.falseHits > w.hits && float64(w.falseHits) > quarantineExcess*explained; quarantined {
		r.quarantine(now)
	}
	if quarantined || w.hits+w.falseHits >= windowFull {
		r.window = window{lookups: lookups}
	}
	return quarantined
}

func (r *record) quarantine(now time.Time) {
	r.quarantinedUntil = now.Add(min(firstQuarantine<<min(r.quarantines, 10), lastQuarantine))
	r.quarantines++
}

// failed counts a question without an answer, and suspends the sibling.
func (r *record) failed(now time.Time) {
	r.failures++
	r.count(false)
	r.suspendedUntil = now.Add(min(firstSuspension<<min(r.failedInRow, 10), lastSuspension))
	r.failedInRow++
}

// available reports whether the sibling may be asked in that life. A new life ends a
// suspension, and the odds of the former; its honesty is remembered.
func (r *record) available(life uint64, now time.Time) bool {
	if life != r.life {
		if r.life != 0 {
			r.good, r.bad = 0, 0
			r.restore()
		}
		r.life = life
	}
	return !now.Before(r.suspendedUntil) && !now.Before(r.quarantinedUntil)
}

// odds is the probability that the sibling has what its digest lists. The digest has
// that error rate, and was last confirmed so long ago.
func (r *record) odds(falsePositives float64, age time.Duration) float64 {
	prior := 1 / (1 + falsePositives/priorYes) / (1 + age.Seconds()/halfTrue.Seconds())
	return (r.good + priorWeight*prior) / (r.good + r.bad + priorWeight)
}

// roundTrip is what a question is expected to take: what it took lately, and the longer
// ago that was, the more what others take. It is 0 if nothing is known.
func (r *record) roundTrip(others average, now time.Time) time.Duration {
	v := others.value
	if r.trip.known {
		v += (r.trip.value - v) * math.Exp2(-now.Sub(r.last).Seconds()/forget.Seconds())
	}
	return time.Duration(v * float64(time.Second))
}
