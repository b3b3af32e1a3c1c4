package sibling

import (
	"math"
	"time"
)

// A record is what a [Health] knows about one sibling, or about an origin.
type record struct {
	life   uint64    // Candidate.Incarnation that the rest applies to
	zone   string    // Candidate.Zone
	trip   average   // seconds to the header of an answer, a hit or a false hit
	pace   average   // seconds for each byte of the body
	spread histogram // of round trips
	last   time.Time // when it last answered, or failed to answer in time

	hits, falseHits, failures int64   // in all its lives
	bytes                     int64   // of its bodies, in all its lives
	good, bad                 float64 // requests answered with a usable object, and others; older ones have less weight

	lateInRow        int // requests not answered in time, or answered first by another, since it last answered
	failedInRow      int // failures since it last answered
	suspendedUntil   time.Time
	silentUntil      time.Time // until then it is not asked as an owner
	quarantinedUntil time.Time
	quarantines      int // for wrong answers

	debt            float64 // false hits less what hits and time have made up for; negative = its hits pay for more
	trust           float64 // debt that was allowed when it was last a candidate
	claims          float64 // recent ones of its digest, less what the error rate of that explains
	explained       int64   // Health.lookups when these two were last reduced by what the error rate explains
	mistrusted      int     // requests since its last hit for which it had no credit
	mistrustedUntil time.Time
}

const (
	fade        = 0.98 // by which the weight of old outcomes is multiplied at each new one
	priorWeight = 5    // of the digest's error rate, in requests
	// priorYes is the assumed share of lookups for which a sibling has the object. With the
	// error rate of the digest, it gives the probability that a yes of the digest is true.
	priorYes = 1.0 / 16
	halfTrue = 10 * time.Minute // age of a digest at which its yes is true half as often

	tripHalfLife = 30 * time.Second // in which a round trip drifts halfway to the average of its zone
	leastTrip    = time.Millisecond // shorter round trips count as this
	leastBody    = 16 << 10         // bytes; shorter bodies do not show the throughput
	tooOften     = 3                // times late in a row that count as a failure

	firstSuspension = 500 * time.Millisecond
	lastSuspension  = 30 * time.Second

	firstAccused = time.Minute // quarantine for a wrong answer
	lastAccused  = 30 * time.Minute
)

// answered adds the round trip of an answer.
func (r *record) answered(d time.Duration, now time.Time) {
	r.trip.add(d.Seconds())
	r.spread.add(d)
	r.last = now
	r.restore()
}

// restore ends a suspension.
func (r *record) restore() {
	r.lateInRow, r.failedInRow, r.suspendedUntil, r.silentUntil = 0, 0, time.Time{}, time.Time{}
}

// unanswered notes that there was no answer for that long, and returns how many times in a row
// that has happened.
func (r *record) unanswered(d time.Duration, now time.Time) (row int) {
	if d.Seconds() > r.trip.value {
		r.trip.add(d.Seconds())
	}
	r.spread.add(d)
	r.last = now
	r.lateInRow++
	return r.lateInRow
}

// count notes whether a request brought a usable object.
func (r *record) count(good bool) {
	r.good, r.bad = r.good*fade, r.bad*fade
	if good {
		r.good++
	} else {
		r.bad++
	}
}

// hit counts an object that the digest advertised, usable or not.
func (r *record) hit(useful bool) {
	r.hits++
	r.count(useful)
	r.restore()
}

// falseHit counts a false hit.
func (r *record) falseHit() {
	r.falseHits++
	r.count(false)
	r.restore()
}

func (r *record) quarantine(now time.Time) {
	r.quarantinedUntil = now.Add(min(firstAccused<<min(r.quarantines, 10), lastAccused))
	r.quarantines++
}

// failed counts a request without an answer, and suspends the sibling.
func (r *record) failed(now time.Time) {
	r.failures++
	r.count(false)
	r.suspendedUntil = now.Add(min(firstSuspension<<min(r.failedInRow, 10), lastSuspension))
	r.failedInRow++
}

// available reports whether the sibling may be asked in that life. A new life ends a suspension
// and resets the odds, but does not end a quarantine.
func (r *record) available(life uint64, now time.Time) bool {
	if life != r.life {
		if r.life != 0 {
			r.good, r.bad = 0, 0
			r.restore()
		}
		r.life = life
	}
	return r.free(now)
}

// free reports whether the sibling is neither suspended nor in quarantine.
func (r *record) free(now time.Time) bool {
	return !now.Before(r.suspendedUntil) && !now.Before(r.quarantinedUntil)
}

// odds returns the probability that the sibling has an object that its digest advertises. age is
// the time since the digest was last confirmed.
func (r *record) odds(falsePositives float64, age time.Duration) float64 {
	prior := promised(falsePositives) / (1 + age.Seconds()/halfTrue.Seconds())
	return (r.good + priorWeight*prior) / (r.good + r.bad + priorWeight)
}

// promised returns the probability that a claim of a digest with that error rate is true.
func promised(falsePositives float64) float64 { return 1 / (1 + falsePositives/priorYes) }

// roundTrip returns the expected time to an answer. It is the recent average, which drifts to that
// of others, its zone's or all siblings', while there are no answers; 0 if neither is known.
func (r *record) roundTrip(others average, now time.Time) time.Duration {
	v := others.value
	if r.trip.known {
		v += (r.trip.value - v) * math.Exp2(-now.Sub(r.last).Seconds()/tripHalfLife.Seconds())
	}
	return time.Duration(v * float64(time.Second))
}
