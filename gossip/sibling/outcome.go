package sibling

import (
	"math"
	"time"
)

// A result is how a message to a sibling, or to an origin, ended.
type result uint8

const (
	hit       result = iota + 1 // a usable answer
	shared                      // the same, of a sibling that was fetching the object
	falseHit                    // the sibling has no fresh copy (504)
	unusable                    // the sibling has the object, but not as needed: stale by this clock
	tooOld                      // the same, but the client wants it fresher than caches must keep it
	lacked                      // a false hit, when it is known that its digest was wrong
	answered                    // an answer that says nothing about a digest
	notYet                      // the peer does not keep all digests yet
	timedOut                    // no answer within the deadline
	excused                     // the same, since this process runs late, or most siblings do not answer
	overtaken                   // another source, asked later, answered first
	silent                      // no answer to a question; a busy process misses such short deadlines
	failed                      // no connection, or an invalid answer, or a body that broke off
	accused                     // an answer that was proven to be wrong
	misled                      // a keeper named a peer that lacks the object, and another keeper does not name it
	withheld                    // a keeper named nobody, and a peer that another one named had the object
	canceled                    // nobody needed the answer any more, which says nothing about the sibling
)

// A kind is what a message asked for.
type kind uint8

const (
	listed   kind = iota // an object that is said to be there
	unlisted             // one that nobody says is there
	awaited              // one that the sibling is fetching: how long that takes depends on the origin
	question             // which peer has an object, or fetches it
	other                // something else, or at an origin
)

// An outcome is what one message to a peer has shown. It is all that a [Health] learns of it.
type outcome struct {
	peer   string
	kind   kind
	result result
	took   time.Duration // without that by which this process runs late
	// Of a lookup request that got no answer in time:
	late     bool          // this process runs so late that this shows nothing
	deadline time.Duration // of such requests now
}

// An effect is what a result changes in the record of a peer.
type effect struct {
	heard, unheard           bool    // the peer answered, which ends suspension and silence; or did not in time
	hits, falseHits, failure int64   // added to these
	odds                     float64 // +1 and -1: one more of what it is said to have was there, or was not
	credit                   float64 // +1 and -1: a hit that pays for false hits, or a false hit
}

var effects = [...]effect{
	hit:       {heard: true, hits: 1, odds: 1, credit: 1},
	shared:    {hits: 1},
	falseHit:  {heard: true, falseHits: 1, odds: -1, credit: -1},
	unusable:  {heard: true, hits: 1, odds: -1, credit: -1}, // its digest was right, but it cost as much
	tooOld:    {heard: true, hits: 1, odds: -1},
	lacked:    {falseHits: 1, odds: -1, credit: -1},
	answered:  {heard: true},
	notYet:    {heard: true},
	timedOut:  {unheard: true, failure: 1, odds: -1},
	excused:   {unheard: true},
	overtaken: {unheard: true},
	silent:    {unheard: true},
	failed:    {failure: 1, odds: -1},
	accused:   {},
	misled:    {},
	withheld:  {},
	canceled:  {},
}

// record takes an outcome into the record of its peer. It returns the result that counts: see meaning. wrong is true if
// the peer is now quarantined for so long that its digest must be wrong, or its word is not believed for a while.
func (h *Health) record(o outcome) (counts result, wrong bool) {
	h.mu.Lock()
	r, now := h.of(o.peer), time.Now()
	o.result = meaning(r, o)
	e := &effects[o.result]
	switch {
	case e.heard && o.kind == question:
		r.asks.add(o.took.Seconds())
		r.askedAt = now
	case e.heard:
		r.trip.add(o.took.Seconds())
		r.off.add(math.Abs(o.took.Seconds() - r.trip.value))
		r.answers++
		h.all.add(o.took.Seconds())
		h.inZone(r, func(z *zone) { z.trips.add(o.took.Seconds()) })
	}
	switch {
	case e.heard:
		r.last = now
		r.restore()
	case e.unheard && !o.late:
		r.unanswered(o, now)
	}
	if o.kind <= unlisted && (e.heard || o.result == timedOut && r.silence.Row <= tooOften) {
		h.recent.add(o.peer, o.took, e.unheard, now) // one that never answers does not show that all are slow
	}
	if o.result == timedOut && (o.late || h.recent.mostAreLost(now)) {
		o.result, e = excused, &effects[excused]
	}
	r.hits, r.falseHits, r.failures = r.hits+e.hits, r.falseHits+e.falseHits, r.failures+e.failure
	if e.odds != 0 {
		r.good, r.bad = fade*r.good+max(0, e.odds), fade*r.bad+max(0, -e.odds)
	}
	switch {
	case e.failure > 0:
		r.suspended.Fail(now, firstSuspension, lastSuspension)
	case o.result == accused:
		r.accused.Fail(now, firstAccused, lastAccused)
	case o.result == notYet:
		r.silence.Until = now.Add(firstSuspension)
	case o.result == misled || o.result == withheld:
		wrong = h.lies(r, o.result == withheld, now)
	case e.credit > 0:
		h.earn(r)
	case e.credit < 0:
		wrong = h.pay(r, now)
	}
	doubt := h.doubt
	h.mu.Unlock()
	if (e.failure > 0 || o.result == silent) && doubt != nil {
		doubt(o.peer)
	}
	return o.result, wrong
}

// meaning returns what a result shows: a sibling that promised nothing breaks no promise; one that is silent for half
// of the deadline, or is overtaken again and again, is no better than one that misses the deadline.
func meaning(r *record, o outcome) result {
	switch {
	case o.kind == awaited && o.result == hit:
		return shared
	case o.kind == awaited && o.result != failed:
		return canceled
	case o.kind == unlisted && (o.result == falseHit || o.result == unusable || o.result == tooOld):
		return answered
	case o.result == overtaken && (!o.late && r.silence.Row+1 >= tooOften || o.took >= o.deadline/2):
		return timedOut
	}
	return o.result
}
