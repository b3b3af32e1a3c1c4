package digest

import (
	"slices"
	"sync"
)

// A History has a current filter and the last deltas that led to it, as many as fit a budget.
// With it a publisher, or a replica that passes digests on, tells what has changed since some
// version. Safe for concurrent use.
type History struct {
	mu      sync.Mutex
	max     int
	bytes   int
	current *Filter
	log     []*Delta // each one's target is the next one's base; the last leads to current
}

// NewHistory returns an empty history whose deltas may take up to maxBytes of
// memory, the current filter not counted. Zero keeps none.
func NewHistory(maxBytes int) *History { return &History{max: max(0, maxBytes)} }

// made returns h, unless it is nil. The zero History keeps no deltas.
func (h *History) made() *History {
	if h == nil {
		panic("digest: a nil History: use NewHistory")
	}
	return h
}

// Advance makes f current. If f follows the filter that was current until now in
// the same epoch and geometry, the change is kept; otherwise the log starts anew.
// An older version of the same epoch is ignored.
func (h *History) Advance(f *Filter) {
	f.made()
	h.made().mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && h.current.version == f.version {
		return
	}
	if h.current == nil || h.current.version.Epoch != f.version.Epoch {
		h.reset(f)
		return
	}
	d, err := Diff(h.current, f)
	switch {
	case err == nil:
		h.push(f, d)
	case h.current.version.Sequence <= f.version.Sequence:
		h.reset(f)
	}
}

// AdvanceDelta is [History.Advance] for a caller that has the delta already, and
// saves the comparison of the two filters.
func (h *History) AdvanceDelta(f *Filter, d *Delta) {
	f.made()
	h.made().mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && h.current.version == f.version {
		return
	}
	if h.current == nil || d == nil || d.base != h.current.version || d.target != f.version {
		h.reset(f)
		return
	}
	h.push(f, d)
}

func (h *History) reset(f *Filter) {
	h.current, h.log, h.bytes = f, nil, 0
}

func (h *History) push(f *Filter, d *Delta) {
	h.current = f
	h.log = append(h.log, d)
	h.bytes += d.bytes()
	drop := 0
	for h.bytes > h.max && drop < len(h.log) {
		h.bytes -= h.log[drop].bytes()
		h.log[drop] = nil
		drop++
	}
	h.log = h.log[drop:]
}

// Current returns the current filter, or nil before the first Advance.
func (h *History) Current() *Filter {
	h.made().mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// Since returns one delta from version v to the current filter, and the filter of
// version v, which [Delta.AppendTo] takes as base. ok is false if v is not in the log:
// then send the current filter as a snapshot. If v is the current version, the delta is
// empty.
func (h *History) Since(v Version) (d *Delta, base *Filter, ok bool) {
	current, chain := h.chain(v)
	switch {
	case current == nil:
		return nil, nil, false
	case len(chain) == 0:
		return current.delta(), current, true
	}
	d = composeAll(chain)
	return d, d.invert().flip(current), true
}

// chain returns the current filter and the deltas that lead to it from v, or nil.
func (h *History) chain(v Version) (*Filter, []*Delta) {
	h.made().mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && h.current.version == v {
		return h.current, nil
	}
	for i, first := range h.log {
		if first.base == v {
			return h.current, slices.Clone(h.log[i:])
		}
	}
	return nil, nil
}

// composeAll combines a chain into one delta. It merges pairwise, so each of n deltas is copied
// log n times.
func composeAll(chain []*Delta) *Delta {
	if len(chain) == 1 {
		return chain[0]
	}
	left, right := composeAll(chain[:len(chain)/2]), composeAll(chain[len(chain)/2:])
	d, err := left.compose(right)
	if err != nil {
		panic(err) // the log has nothing but chains
	}
	return d
}

// invert returns the delta from target to base. Its sequence decreases, so it is for flip only:
// other methods would refuse it.
func (d *Delta) invert() *Delta {
	back := *d
	back.base, back.target = d.target, d.base
	back.baseOnes, back.ones = d.ones, d.baseOnes
	back.keys, back.baseKeys = d.baseKeys, d.keys
	return &back
}
