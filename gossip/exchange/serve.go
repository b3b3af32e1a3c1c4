package exchange

import (
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Answer is the answer to a get. [Answer.AppendTo] encodes it, and may run concurrently with the
// engine.
type Answer struct {
	kind    FrameType
	head    Head
	wait    time.Duration
	limit   int
	history *digest.History
	filter  *digest.Filter
	have    digest.Version // the base for a delta; the zero Version if none can be sent
}

// AnswerKey is equal for answers with equal bytes, so that a simulation encodes them once. Answers that are not worth
// keeping have the zero key.
type AnswerKey struct {
	Origin      ID
	Incarnation uint64
	Have        digest.Version
	Current     digest.Version
}

// HandleGet answers a get from the peer called name.
func (e *Engine) HandleGet(name string, g Get) Answer {
	a, ok := e.snapshot(g.Origin)
	if !ok {
		if g.Origin == e.id {
			return Answer{kind: FrameSame, head: e.self}
		}
		return Answer{kind: FrameUnknown}
	}
	h := a.head
	a.limit = min(a.limit, int(min(g.Limit, uint64(e.cfg.DigestBytes))))
	if !g.Whole && !g.Have.IsZero() {
		c := g.Have.Compare(h.Version)
		// A version of a former life is a base as well if its digest was continued.
		formerly := g.Have.Incarnation < h.Version.Incarnation && g.Have.Epoch == h.Version.Epoch
		switch {
		case formerly && g.Origin == e.id && g.Have.Sequence == h.Version.Sequence && g.State == h.State, c > 0, c == 0 && (g.State == h.State || g.Origin != e.id):
			a.kind = FrameSame
		case c < 0 && (formerly || g.Have.Incarnation == h.Version.Incarnation) && g.Have.Epoch == h.Version.Epoch:
			a.have = g.Have.Digest(g.State)
		}
	}
	if a.kind == FrameSame && g.Origin == e.id {
		if p := e.named(name); p != nil {
			p.reacted = e.self.Version // after other answers a receipt will confirm it
		}
	}
	return a
}

// Busy returns the answer of a peer that has too many requests at once.
func (e *Engine) Busy(wait time.Duration) Answer {
	return Answer{kind: FrameBusy, wait: wait}
}

// Served counts an answer that was sent, given the type of its frame.
func (e *Engine) Served(t FrameType) {
	switch t {
	case FrameDelta:
		e.stats.DeltasSent++
	case FrameSnapshot:
		e.stats.SnapshotsSent++
	}
}

// snapshot returns an answer with the snapshot of an origin's digest, if it may be served.
func (e *Engine) snapshot(id ID) (Answer, bool) {
	a := Answer{kind: FrameSnapshot, limit: e.cfg.DigestBytes}
	if id == e.id {
		a.head, a.history, a.filter = e.self, e.history, e.history.Current()
		return a, a.filter != nil
	}
	p := e.peers[id]
	if p == nil || !p.holds() {
		return Answer{}, false
	}
	a.head, a.history, a.filter = p.held, p.history, p.filter
	return a, true
}

// Key returns the answer's key.
func (a Answer) Key() AnswerKey {
	if a.kind != FrameSnapshot {
		return AnswerKey{}
	}
	return AnswerKey{a.head.Origin, a.head.Version.Incarnation, a.have, a.filter.Version()}
}

// AppendTo appends the frame to dst, in time proportional to the digest for a snapshot and to the
// change for a delta. Several goroutines may call it at once.
func (a Answer) AppendTo(dst []byte) []byte {
	start := len(dst)
	switch a.kind {
	case FrameSame:
		return EndFrame(a.head.append(BeginFrame(dst, FrameSame)), start)
	case FrameBusy:
		return appendBusy(dst, a.wait)
	case FrameUnknown:
		return appendFrame(dst, FrameUnknown)
	}
	dst = a.appendBody(dst)
	if len(dst)-start-FrameHeader > a.limit {
		return appendFrame(dst[:start], FrameUnknown)
	}
	return dst
}

// appendBody appends the delta or the snapshot, whichever is smaller.
func (a Answer) appendBody(dst []byte) []byte {
	start := len(dst)
	a, d, base, ok := a.delta()
	if ok {
		coded, err := d.AppendTo(a.head.append(BeginFrame(dst, FrameDelta)), base)
		if ok = err == nil; ok {
			dst = EndFrame(coded, start)
		}
		// A delta of few flips is always smaller than the snapshot; one of many may not be.
		if ok && uint64(d.Len()) <= a.filter.Ones()/2 {
			return dst
		}
	}
	end := len(dst)
	dst = EndFrame(a.filter.AppendTo(a.head.append(BeginFrame(dst, FrameSnapshot))), end)
	if ok && len(dst)-end >= end-start {
		return dst[:end]
	}
	return append(dst[:start], dst[end:]...)
}

// delta returns the delta from the client's version to the current one, its base, and the answer
// for the current version: that may be newer than a. ok is false if the history does not have the
// client's version.
func (a Answer) delta() (current Answer, d *digest.Delta, base *digest.Filter, ok bool) {
	if a.have == (digest.Version{}) {
		return a, nil, nil, false
	}
	if d, base, ok = a.history.Since(a.have); !ok {
		return a, nil, nil, false
	}
	if d.Target() != a.filter.Version() {
		f := a.history.Current()
		if d.Target() != f.Version() {
			return a, nil, nil, false
		}
		a.filter, a.head = f, headOf(a.head.Origin, a.head.Version.Incarnation, f)
	}
	return a, d, base, true
}
