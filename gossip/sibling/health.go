package sibling

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Health is what a cache knows of others, by name: the one record that says who may be
// asked, in which order and for how long. Everything that talks to them reports into
// it; see the package's documentation for what follows from what. The zero value knows
// nobody. It is safe for concurrent use and must not be copied.
//
// It remembers 4,096 names at most. Beyond them each new name takes the place of
// one of those not heard of for longest: the one among eight picked at random. Looking
// a name up does not add it.
type Health struct {
	lookups atomic.Int64 // of digests

	mu     sync.Mutex
	byName map[string]*record
	all    average // of all round trips
	size   average // of bodies, in bytes
}

const (
	maxRecords = 4096 // clusters are smaller, but their members come and go
	evictAmong = 8
)

// A Record is what a Health knows of one sibling.
type Record struct {
	Hits      int64 // questions that it answered with the object, of use or not
	FalseHits int64 // questions for objects that it did not have
	Failures  int64 // questions that it did not answer
	// RoundTrip is what a question is expected to take to the answer's header: as
	// lately, and the longer ago that was, the more as the others'; 0 = it never answered.
	RoundTrip time.Duration
	// Throughput of bodies lately, in bytes a second; 0 = unknown.
	Throughput  float64
	Suspended   bool // it failed, and is not asked for a while
	Quarantined bool // far more false hits than its digest promises; likewise
}

// Of returns what is known of a sibling; zero values if nothing is.
func (h *Health) Of(name string) Record {
	r, now := h.known(name), time.Now()
	trip := r.roundTrip(h.average(), now)
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Record{Hits: r.hits, FalseHits: r.falseHits, Failures: r.failures,
		Suspended: now.Before(r.suspendedUntil), Quarantined: now.Before(r.quarantinedUntil)}
	if r.trip.known {
		out.RoundTrip = trip
	}
	if r.pace.value > 0 {
		out.Throughput = 1 / r.pace.value
	}
	return out
}

// Asked notes how a message went that is no question for an object. Without an error it
// ends a suspension. [context.DeadlineExceeded] after so long is a failure from the
// third time in a row on, and any other error is one at once: the sibling is suspended.
func (h *Health) Asked(name string, took time.Duration, err error) {
	r, now := h.of(name), time.Now()
	switch {
	case err == nil:
		r.mu.Lock()
		r.restore()
		r.mu.Unlock()
	case !errors.Is(err, context.DeadlineExceeded) || r.unanswered(took, now) >= tooOften:
		r.failed(now)
	}
}

// note records what became of a question to a candidate, and reports whether the
// candidate is quarantined for it.
func (h *Health) note(c Candidate, o Outcome) (quarantined bool) {
	r := h.of(c.Peer)
	switch o {
	case Hit, Unusable: // the digest was right
		r.hit(o == Hit)
	case FalseHit:
		return r.falseHit(h.lookups.Load(), c.FalsePositiveRate, time.Now())
	case Refused, TimedOut, Failed:
		r.failed(time.Now())
	}
	return false
}

// answered notes the round trip of an answer.
func (h *Health) answered(name string, d time.Duration, now time.Time) {
	h.of(name).answered(d, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.add(d)
}

// known returns the record of a name, which must not be written: an empty one if there is
// none.
func (h *Health) known(name string) *record {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.byName[name]; r != nil {
		return r
	}
	return &record{}
}

// of returns the record of a name, and begins one if there is none.
func (h *Health) of(name string) *record {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byName[name]
	if r == nil {
		if h.byName == nil {
			h.byName = make(map[string]*record)
		}
		if len(h.byName) >= maxRecords {
			h.evict()
		}
		r = &record{}
		h.byName[name] = r
	}
	return r
}

// evict makes room for a name. h.mu is held.
func (h *Health) evict() {
	var oldest string
	var since time.Time
	seen := 0
	for name, r := range h.byName { // in random order
		if _, _, last := r.source(); seen == 0 || last.Before(since) {
			oldest, since = name, last
		}
		if seen++; seen == evictAmong {
			break
		}
	}
	delete(h.byName, oldest)
}

func (h *Health) average() average {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

// gave notes how long a body of n bytes took.
func (h *Health) gave(name string, n int64, took time.Duration) {
	h.mu.Lock()
	h.size.observe(float64(n))
	h.mu.Unlock()
	if n >= leastBody {
		h.of(name).gave(n, took)
	}
}

// A timed body notes the pace at which it came, when it is closed.
type timed struct {
	io.ReadCloser
	from *Health
	name string
	n    int64
	took time.Duration
}

func (t *timed) Read(p []byte) (int, error) {
	start := time.Now()
	n, err := t.ReadCloser.Read(p)
	t.took += time.Since(start)
	t.n += int64(n)
	return n, err
}

func (t *timed) Close() error {
	if t.n > 0 {
		t.from.gave(t.name, t.n, t.took)
		t.n = 0
	}
	return t.ReadCloser.Close()
}
