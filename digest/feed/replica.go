package feed

import (
	"errors"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// mostStale is how many messages in a row may be older than the replica's version. A bus
// repeats and delays some messages. So many of them mean that the publisher has started again
// with a smaller epoch, or that a version was forged.
const mostStale = 8

// A Replica is a copy of one publisher's digest. It takes the memory of one filter, and
// of a second one while it decodes a snapshot. Replica.Filter is safe for concurrent use;
// the other methods are for one goroutine at a time.
type Replica struct {
	limits   digest.Limits
	held     atomic.Pointer[digest.Filter]
	behind   bool // there is a later version
	doubtful bool // the replica may differ from what the publisher has
	stale    int  // older messages in a row
}

// NewReplica returns a replica without a filter. lim bounds each message.
func NewReplica(lim digest.Limits) *Replica { return &Replica{limits: lim} }

func (r *Replica) made() *Replica {
	if r == nil {
		panic("feed: this Replica is nil: make one with NewReplica")
	}
	return r
}

// Filter returns the current filter, or nil before the first snapshot.
func (r *Replica) Filter() *digest.Filter { return r.made().held.Load() }

// Needs reports whether the caller should request [Publisher.Since] from the publisher, and
// since which version: the zero Version if a snapshot is needed. It returns the same until the
// answer has been handled; the caller decides how often to repeat the request.
func (r *Replica) Needs() (since digest.Version, any bool) {
	f := r.made().held.Load()
	switch {
	case f == nil || r.doubtful:
		return digest.Version{}, true
	case r.behind:
		return f.Version(), true
	}
	return digest.Version{}, false
}

// Handle processes a message. changed reports whether Filter has changed; then d is the change,
// or nil after a snapshot. Messages of the current or an earlier version change nothing, and
// neither do deltas from another base: see Needs. An error means that the message is damaged,
// too large or of another seed, as for [digest.DecodeFilter] and [digest.DecodeDelta]; Filter
// is unchanged. b is not kept.
func (r *Replica) Handle(b []byte) (d *digest.Delta, changed bool, err error) {
	h, err := digest.Peek(b, r.made().limits)
	if err != nil {
		return nil, false, err
	}
	held := r.held.Load()
	if held != nil && h.Version == held.Version() {
		r.confirm(h)
		return nil, false, nil
	}
	if h.Kind != digest.KindDelta {
		if held != nil && !r.doubtful && !newer(h.Version, held.Version()) {
			r.older(h.Version, held.Version())
			return nil, false, nil
		}
		f, err := digest.DecodeFilter(b, r.limits)
		if err != nil {
			return nil, false, err
		}
		r.install(f)
		return nil, true, nil
	}
	switch {
	case held == nil:
	case !newer(h.Version, held.Version()):
		r.older(h.Version, held.Version())
	case h.Base != held.Version():
		r.behind, r.stale = true, 0
	default:
		d, err := digest.DecodeDelta(b, held, r.limits)
		var f *digest.Filter
		if err == nil {
			f, err = d.Apply(held)
		}
		if err != nil {
			// The publisher may have started again with the same numbers.
			r.doubtful = r.doubtful || !errors.Is(err, digest.ErrTooLarge)
			return nil, false, err
		}
		r.install(f)
		return d, true, nil
	}
	return nil, false, nil
}

// confirm handles a message that leads to the current version.
func (r *Replica) confirm(h digest.Header) {
	r.stale = 0
	if h.Base == h.Version || h.Kind != digest.KindDelta { // it states the publisher's current version, and does not repeat a change
		r.behind, r.doubtful = false, false
	}
}

// older handles a message of version v, which is not newer than the current one.
func (r *Replica) older(v, held digest.Version) {
	r.stale++
	if r.stale >= mostStale || v.Epoch == held.Epoch && v.Sequence == held.Sequence {
		r.doubtful = true
	}
}

func (r *Replica) install(f *digest.Filter) {
	r.held.Store(f)
	r.behind, r.doubtful, r.stale = false, false, 0
}

func newer(a, b digest.Version) bool {
	return a.Epoch > b.Epoch || a.Epoch == b.Epoch && a.Sequence > b.Sequence
}
