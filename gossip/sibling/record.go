package sibling

import (
	"math"
	"sync"
	"time"
)

// A record is how one sibling did lately. It is safe for concurrent use.
type record struct {
	mu        sync.Mutex
	good, bad float64   // questions answered with an object of use, and the others; fading
	trip      average   // to an answer's header, be it a hit or a false hit
	last      time.Time // when it answered last
	spread    histogram // of the same round trips
	outrun    int       // questions that another answered first, since it last answered
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
	enough    = 8                // observations that a quantile needs
	tooOften  = 3                // times outrun in a row that count as a failure
)

// An average is an exponentially weighted moving one.
type average struct {
	value float64
	known bool
}

const averageGain = 1.0 / 8 // as TCP smooths round trips (RFC 6298)

func (a *average) add(d time.Duration) { a.observe(d.Seconds()) }

func (a *average) observe(v float64) {
	if !a.known {
		a.value, a.known = v, true
		return
	}
	a.value += averageGain * (v - a.value)
}

// A histogram counts durations in quarters of an octave, the older ones less.
type histogram struct {
	counts [64]uint16
	total  int
}

const (
	histogramFrom = 50 * time.Microsecond
	histogramFull = 256 // observations at which all counts are halved
)

func (h *histogram) add(d time.Duration) {
	i := 0
	if d > histogramFrom {
		i = min(int(4*math.Log2(float64(d)/float64(histogramFrom))), len(h.counts)-1)
	}
	h.counts[i]++
	if h.total++; h.total < histogramFull {
		return
	}
	h.total = 0
	for i := range h.counts {
		h.counts[i] /= 2
		h.total += int(h.counts[i])
	}
}

// quantile returns the end of the quarter octave below which a share q lies.
func (h *histogram) quantile(q float64) (time.Duration, bool) {
	if h.total < enough {
		return 0, false
	}
	rest := q * float64(h.total)
	for i, n := range h.counts {
		if rest -= float64(n); rest <= 0 {
			return time.Duration(float64(histogramFrom) * math.Exp2(float64(i+1)/4)), true
		}
	}
	return time.Duration(math.MaxInt64), true
}

// answered notes the round trip of an answer.
func (r *record) answered(d time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trip.add(d)
	r.spread.add(d)
	r.last, r.outrun = now, 0
}

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

// count notes whether an answer was of use, if there was one.
func (r *record) count(good bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.good, r.bad = r.good*fade, r.bad*fade
	if good {
		r.good++
	} else {
		r.bad++
	}
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

// answeredSince reports whether the sibling answered since then.
func (r *record) answeredSince(then time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.After(then)
}

// late returns after how long an answer is later than all but one in twenty.
func (r *record) late() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spread.quantile(0.95)
}

// records are those of all siblings asked.
type records struct {
	mu     sync.Mutex
	byPeer map[string]*record
	all    average
}

const maxRecords = 4096 // clusters are smaller, but their members come and go

func (s *records) of(peer string) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.byPeer[peer]; r != nil {
		return r
	}
	if s.byPeer == nil {
		s.byPeer = make(map[string]*record)
	}
	for other := range s.byPeer {
		if len(s.byPeer) < maxRecords {
			break
		}
		delete(s.byPeer, other)
	}
	r := &record{}
	s.byPeer[peer] = r
	return r
}

func (s *records) answered(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.add(d)
}

func (s *records) average() average {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
