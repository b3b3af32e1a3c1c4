package sibling

import (
	"math"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/backoff"
)

// A record is what a [Health] knows about one sibling, or about an origin.
type record struct {
	life    uint64    // Candidate.Incarnation that the rest applies to
	zone    string    // Candidate.Zone
	trip    average   // seconds to the header of an answer, a hit or a false hit
	off     average   // by which these differ from the average, in seconds
	answers int       // of which the two are
	asks    average   // seconds to the answer of a question
	askedAt time.Time // when it last answered one
	pace    average   // seconds for each byte of the body
	last    time.Time // when it last answered, or failed to answer in time

	hits, falseHits, failures int64   // in all its lives
	bytes                     int64   // of its bodies, in all its lives
	good, bad                 float64 // requests answered with a usable object, and others; older ones have less weight

	silence   backoff.Backoff // no answer in time, or another was first, since it last answered: see quiet
	suspended backoff.Backoff // since it failed, until it answers
	accused   backoff.Backoff // since it sent a wrong answer

	digest credit  // of what its digest claims
	claims float64 // recent ones, less what the error rate of the digest explains
	word   credit  // of its answers as a keeper
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

// restore ends a suspension and a silence.
func (r *record) restore() { r.suspended, r.silence = backoff.Backoff{}, backoff.Backoff{} }

// unanswered notes that there was no answer in time. A moment in which a busy peer answers no questions is one silence,
// however many met it.
func (r *record) unanswered(o outcome, now time.Time) {
	if o.kind == question && r.silence.Row > 0 && now.Add(-o.took).Before(r.last) {
		return
	}
	if o.kind != question && o.took.Seconds() > r.trip.value {
		r.trip.add(o.took.Seconds())
	}
	r.last = now
	r.silence.Fail(now, firstSuspension, lastSuspension)
}

// quiet reports whether a peer is to be asked no questions, since it did not answer several in a row.
func (r *record) quiet(now time.Time) bool { return r.silence.Row >= tooOften && !r.silence.Over(now) }

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

// free reports whether the sibling is neither suspended nor in quarantine for a wrong answer.
func (r *record) free(now time.Time) bool { return r.suspended.Over(now) && r.accused.Over(now) }

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

// An average is an exponentially weighted moving average.
type average struct {
	value float64
	known bool
}

const averageGain = 1.0 / 8 // as TCP smooths round trips (RFC 6298)

func (a *average) add(v float64) {
	if !a.known {
		a.value, a.known = v, true
		return
	}
	a.value += averageGain * (v - a.value)
}
