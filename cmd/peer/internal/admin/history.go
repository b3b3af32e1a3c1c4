package admin

import (
	"sync"
	"time"
)

const (
	// HistoryStep is the time between two samples of a [History].
	HistoryStep = 20 * time.Second
	historySize = int(time.Hour/HistoryStep) + 1
)

// A Sample is what the counters were at a moment; all only grow.
type Sample struct {
	At time.Time `json:"at"`

	// Body bytes.
	ToClients    uint64 `json:"to_clients"`
	FromOrigins  uint64 `json:"from_origins"`
	FromSiblings uint64 `json:"from_siblings"`
	ToSiblings   uint64 `json:"to_siblings"`

	// Bytes of messages about digests, sent and received.
	Adverts   int64 `json:"adverts"`
	Deltas    int64 `json:"deltas"`
	Snapshots int64 `json:"snapshots"`
	Vectors   int64 `json:"vectors"`

	Inserts uint64 `json:"inserts"` // objects stored
}

// SampleOf is the sample that a status makes.
func SampleOf(s Status) Sample {
	t, e := s.Traffic, s.Exchange
	return Sample{
		At: s.Now, ToClients: t.BytesToClients, FromOrigins: t.BytesFromOrigins, FromSiblings: t.BytesFromSiblings, ToSiblings: t.BytesToSiblings,
		Adverts: e.AdvertBytesSent + e.AdvertBytesHeard, Deltas: e.DeltaBytesSent + e.DeltaBytesHeard,
		Snapshots: e.SnapshotBytesSent + e.SnapshotBytesHeard, Vectors: e.VectorBytesSent + e.VectorBytesHeard, Inserts: s.Store.Inserts,
	}
}

// A History keeps the samples of the last hour. It is safe for concurrent use;
// the zero History is empty.
type History struct {
	mu      sync.Mutex
	samples []Sample // oldest first
}

// Add appends a sample and drops those that are too old.
func (h *History) Add(s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == historySize {
		copy(h.samples, h.samples[1:])
		h.samples = h.samples[:historySize-1]
	}
	h.samples = append(h.samples, s)
}

// Samples returns a copy of the samples, oldest first.
func (h *History) Samples() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Sample{}, h.samples...)
}

// InsertRate returns how many objects a second were stored since the oldest
// sample; 0 without two samples.
func (h *History) InsertRate() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) < 2 {
		return 0
	}
	first, last := h.samples[0], h.samples[len(h.samples)-1]
	seconds := last.At.Sub(first.At).Seconds()
	if seconds <= 0 || last.Inserts < first.Inserts {
		return 0
	}
	return float64(last.Inserts-first.Inserts) / seconds
}
