package sibling

import (
	"context"
	"io"
	"sync"
	"time"
)

// Health is what a cache knows about its siblings, by name. It decides which of them may be asked,
// in which order, and how long to wait. Everything that sends them requests reports to it; the
// package documentation has the rules. The zero value is ready. A Health is safe for
// concurrent use and must not be copied.
//
// It remembers at most 16,384 names. Then each new name replaces an old one: of eight
// picked at random, the one that answered longest ago. Looking up a name does not add it.
type Health struct {
	mu      sync.Mutex
	doubt   func(peer string) // see doubter; may be nil
	byName  map[string]*record
	all     average // round trips of all, in seconds
	zones   map[string]zone
	size    average // of bodies, in bytes
	lookups int64   // of identities in digests
	onTrust float64 // recent requests that no hits pay for; see credit.go
	asRare  float64 // the same to siblings that claim little
	recent  recent
}

const (
	maxRecords = 16384 // as many as there may be members
	evictAmong = 8
	maxZones   = 256
)

// A zone is what a Health knows about the siblings of a zone.
type zone struct {
	trips average // round trips, in seconds
	bytes int64   // of their bodies
}

// A Record is what a Health knows about one sibling.
type Record struct {
	Hits      int64 `json:"hits"`       // requests that it answered with the object, usable or not
	FalseHits int64 `json:"false_hits"` // requests for objects that it did not have
	Failures  int64 `json:"failures"`   // requests that it did not answer
	// RoundTrip is the expected time to the header of an answer. It is the recent average, which
	// drifts to the average of its zone, or of all siblings if that is unknown, while there are no answers; 0 = it
	// never answered.
	RoundTrip  time.Duration `json:"-"`
	Bytes      int64         `json:"body_bytes"`       // of bodies that it sent
	Throughput float64       `json:"bytes_per_second"` // of recent bodies, in bytes a second; 0 = unknown
	Suspended  bool          `json:"-"`                // not asked for a while because it failed
	// not asked for a while because it sent a wrong answer, or too little of what its digest claims is there
	Quarantined bool `json:"-"`
}

// Of returns what is known about a sibling; zero values if nothing is.
func (h *Health) Of(name string) Record {
	r, others := h.look(name)
	now := time.Now()
	out := Record{Hits: r.hits, FalseHits: r.falseHits, Failures: r.failures, Bytes: r.bytes,
		Suspended: !r.suspended.Over(now), Quarantined: !r.accused.Over(now) || r.digest.quarantined(now)}
	if r.trip.known {
		out.RoundTrip = r.roundTrip(others, now)
	}
	if r.pace.value > 0 {
		out.Throughput = 1 / r.pace.value
	}
	return out
}

// inZone notes something about the zone of a sibling, if it has one and there are not too many. h.mu is held.
func (h *Health) inZone(r *record, note func(*zone)) {
	z, known := h.zones[r.zone]
	if r.zone == "" || !known && len(h.zones) >= maxZones {
		return
	}
	if h.zones == nil {
		h.zones = make(map[string]zone)
	}
	note(&z)
	h.zones[r.zone] = z
}

// others returns the average round trip of the siblings of the same zone or, if it is unknown, of all.
// h.mu is held.
func (h *Health) others(r *record) average {
	if z := h.zones[r.zone]; z.trips.known {
		return z.trips
	}
	return h.all
}

// look returns a copy of the record of a name, the zero record if there is none, and the average
// round trip of the others of its zone.
func (h *Health) look(name string) (r record, others average) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.byName[name]; known != nil {
		r = *known
	}
	return r, h.others(&r)
}

// of returns the record of a name, and adds one if there is none. h.mu is held.
func (h *Health) of(name string) *record {
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

// evict removes one record. h.mu is held.
func (h *Health) evict() {
	var oldest string
	var since time.Time
	seen := 0
	for name, r := range h.byName { // in random order
		if seen == 0 || r.last.Before(since) {
			oldest, since = name, r.last
		}
		if seen++; seen == evictAmong {
			break
		}
	}
	delete(h.byName, oldest)
}

// A timed body records its throughput when it is closed, and releases the context of its request.
type timed struct {
	io.ReadCloser
	from   *Health
	name   string
	cancel context.CancelCauseFunc
	n      int64
	took   time.Duration

	arriving bool // at the sibling: that is the pace of the origin
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
		t.from.mu.Lock()
		t.from.size.add(float64(t.n))
		if t.n >= leastBody && !t.arriving {
			t.from.of(t.name).pace.add(t.took.Seconds() / float64(t.n))
		}
		r := t.from.of(t.name)
		r.bytes += t.n
		t.from.inZone(r, func(z *zone) { z.bytes += t.n })
		t.from.mu.Unlock()
		t.n = 0
	}
	defer t.cancel(nil)
	return t.ReadCloser.Close()
}
