package feed

import (
	"errors"
	"sync/atomic"

	"github.com/summarycache/summarycache/digest"
)

// mostStale is how many messages in a row may be older than what is held. A bus repeats
// and delays some; so many, and nothing newer among them, come of a publisher that has
// begun again with a smaller epoch, or of a forged version.
const mostStale = 8

// A Replica is a copy of what one publisher's cache holds. It takes the memory of one
// filter, and of one more while it decodes a snapshot. Replica.Filter is safe for
// concurrent use; all else is for one goroutine at a time.
type Replica struct {
	limits   digest.Limits
	held     atomic.Pointer[digest.Filter]
	behind   bool // a later version was heard of
	doubtful bool // what is held may be another than the publisher's
	stale    int  // older messages in a row
}

// NewReplica returns a replica that holds nothing yet. lim bounds each message.
func NewReplica(lim digest.Limits) *Replica { return &Replica{limits: lim} }

// Filter returns what is held, or nil before the first snapshot.
func (r *Replica) Filter() *digest.Filter { return r.held.Load() }

// Needs returns what to ask the publisher for, if anything: for
// [Publisher.Since] of the version returned, which is zero if a snapshot is needed. It
// says so until the answer has been handled; how often to ask is the caller's choice.
func (r *Replica) Needs() (since digest.Version, any bool) {
	f := r.held.Load()
	switch {
	case f == nil || r.doubtful:
		return digest.Version{}, true
	case r.behind:
		return f.Version(), true
	}
	return digest.Version{}, false
}

// Handle takes in a message. changed says whether Filter is another now; then d is what
// has changed, or nil if all of it may have. Messages of versions that were held already
// change nothing, nor do those that something before is missing of: Needs says more. An
// error is of a message that is damaged, too large or of another seed, as
// [digest.DecodeFilter] and [digest.DecodeDelta] say, and leaves what is held. b is not kept.
func (r *Replica) Handle(b []byte) (d *digest.Delta, changed bool, err error) {
	h, err := digest.Peek(b, r.limits)
	if err != nil {
		return nil, false, err
	}
	held := r.held.Load()
	if held != nil && h.Version == held.Version() {
		r.confirm(h)
		return nil, false, nil
	}
	if !delta(h) {
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
			// The publisher may have begun again with the same numbers.
			r.doubtful = r.doubtful || !errors.Is(err, digest.ErrTooLarge)
			return nil, false, err
		}
		r.install(f)
		return d, true, nil
	}
	return nil, false, nil
}

// confirm takes in a message that leads to what is held.
func (r *Replica) confirm(h digest.Header) {
	r.stale = 0
	if h.Base == h.Version || !delta(h) { // it is current, and no repetition of a change
		r.behind, r.doubtful = false, false
	}
}

// older takes in a message of version v, which is not newer than what is held.
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

func delta(h digest.Header) bool {
	return h.Kind == digest.KindDelta || h.Kind == digest.KindPlainDelta
}

func newer(a, b digest.Version) bool {
	return a.Epoch > b.Epoch || a.Epoch == b.Epoch && a.Sequence > b.Sequence
}
