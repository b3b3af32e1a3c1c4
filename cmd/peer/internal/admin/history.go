package admin

import (
	"slices"
	"sync"
	"time"
)

// HistoryStep is the time between two samples of a [History] in the last hour. Of the 23 hours
// before, one sample in thirty is kept.
const (
	HistoryStep = 20 * time.Second
	dayStep     = 30 * HistoryStep
	historySize = int(time.Hour/HistoryStep) + 1
	daySize     = int(23 * time.Hour / dayStep)
)

// A Sample has the counters at one moment. All of them only grow.
type Sample struct {
	At time.Time `json:"at"`

	Figures

	// Body bytes.
	FromSiblings uint64 `json:"from_siblings"`
	ToSiblings   uint64 `json:"to_siblings"`

	// Bytes of messages about digests, sent and received.
	Adverts   int64 `json:"adverts"`
	Deltas    int64 `json:"deltas"`
	Snapshots int64 `json:"snapshots"`
	Vectors   int64 `json:"vectors"`

	Inserts   uint64 `json:"inserts"` // objects stored
	Evictions uint64 `json:"evictions"`

	// As in proxy.Counts.
	Latency       []uint64 `json:"latency"`
	OriginLatency []uint64 `json:"origin_latency"`
}

// SampleOf returns the sample for a status.
func SampleOf(s Status) Sample {
	t, e := s.Traffic, s.Exchange
	return Sample{
		At: s.Now, Figures: figuresOf(t), FromSiblings: t.BytesFromSiblings, ToSiblings: t.BytesToSiblings,
		Adverts: e.Sent.Adverts + e.Received.Adverts, Deltas: e.Sent.Deltas + e.Received.Deltas,
		Snapshots: e.Sent.Snapshots + e.Received.Snapshots, Vectors: e.Sent.Vectors + e.Received.Vectors, Inserts: s.Store.Inserts,
		Evictions: s.Store.Evictions, Latency: t.Latency, OriginLatency: t.OriginLatency,
	}
}

// A History keeps the samples of the last hour, and some of the day before it. It is safe for
// concurrent use; the zero History is empty.
type History struct {
	mu      sync.Mutex
	day     []Sample // older than an hour, oldest first
	samples []Sample // of the last hour, oldest first
}

// Add appends a sample and drops those that are too old.
func (h *History) Add(s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == historySize {
		if n := len(h.day); n == 0 || h.samples[0].At.Sub(h.day[n-1].At) >= dayStep {
			h.day = push(h.day, h.samples[0], daySize)
		}
	}
	h.samples = push(h.samples, s, historySize)
}

// push appends s, and drops the first sample if there would be more than size.
func push(samples []Sample, s Sample, size int) []Sample {
	if len(samples) == size {
		samples = slices.Delete(samples, 0, 1)
	}
	return append(samples, s)
}

// Samples returns a copy of the samples, oldest first.
func (h *History) Samples() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.day, h.samples)
}
