package exchange

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A Partial is the first bytes of a snapshot, whose stream broke. Equal digests
// are equal bytes, so that the rest of it can come from anybody who holds that
// version. It is immutable.
type Partial struct {
	Head      Head
	Signature []byte // of Head, by the origin; empty if it does not sign
	Body      []byte // the first bytes
}

const (
	// leastPartial is how many bytes of a body must have come to be worth keeping.
	leastPartial = 16 << 10
	// partialAge is how long they are kept: so long somebody may have that version.
	partialAge = time.Minute
)

func (p *Partial) resume() Resume {
	return Resume{Version: p.Head.Version, State: p.Head.State, Offset: uint64(len(p.Body))}
}

// DecodeBroken reads what arrived of the payload of a frame of type t, the answer to
// f, before its stream broke. The Result has ErrBroken, and what can be resumed if
// there is something. payload is not retained.
func DecodeBroken(f Fetch, t FrameType, payload []byte) Result {
	r := Result{Kind: t, Bytes: len(payload), Err: ErrBroken}
	in := newReader(t.String(), payload)
	head := in.head()
	if in.Err != nil || head.Origin != f.Get.Origin {
		return r
	}
	part := Result{Head: head}
	var body []byte
	switch t {
	case FrameSnapshot:
		part.Signature = in.Signature()
		body = append(body, in.Rest()...)
	case FrameRest:
		body = in.continued(f, &part)
	}
	if in.Err == nil && len(body) > 0 && verify(f.Key, head, part.Signature) == nil {
		r.Partial = &Partial{Head: head, Signature: part.Signature, Body: body}
	}
	return r
}

// continued reads what follows the head of a rest, and returns the body from its
// beginning.
func (r *reader) continued(f Fetch, result *Result) []byte {
	offset := r.Uvarint("offset")
	p := f.Partial
	if p == nil || result.Head != p.Head {
		r.Fail("head")
		return nil
	}
	if offset != uint64(len(p.Body)) {
		r.Fail("offset")
	}
	rest := r.Rest()
	if r.Err != nil {
		return nil
	}
	result.Signature, result.Resumed = p.Signature, len(p.Body)
	return append(append(make([]byte, 0, len(p.Body)+len(rest)), p.Body...), rest...)
}

// keepPartial keeps what came before a stream broke, and reports whether that was
// progress: then the rest is asked for at once. After an answer that was wrong, what
// it was a part of may be wrong too.
func (e *Engine) keepPartial(now time.Time, f *flight, r Result) bool {
	p := f.origin
	if r.Partial == nil {
		if r.Kind != 0 && f.get.Resume.Offset > 0 && !errors.Is(r.Err, ErrBroken) {
			p.partial = nil
		}
		return false
	}
	have := uint64(0)
	if p.partial != nil && p.partial.Head == r.Partial.Head {
		have = uint64(len(p.partial.Body))
	}
	more := uint64(len(r.Partial.Body))
	if p.state == Wrong || more < have+e.leastPartial || r.Partial.Head.Version.Compare(p.held.Version) <= 0 ||
		!e.partialRoom(now, p, len(r.Partial.Body)) {
		return false
	}
	p.partial, p.partialAt = r.Partial, now
	return true
}

// partialRoom reports whether a partial of p may take so many bytes: all together at
// most as many as one digest. The oldest others go first.
func (e *Engine) partialRoom(now time.Time, p *peer, bytes int) bool {
	if bytes > e.cfg.DigestBytes {
		return false
	}
	for {
		sum, oldest := bytes, (*peer)(nil)
		for _, q := range e.order {
			if q.partial == nil || q == p {
				continue
			}
			if now.Sub(q.partialAt) > partialAge {
				q.partial = nil
				continue
			}
			sum += len(q.partial.Body)
			if oldest == nil || q.partialAt.Before(oldest.partialAt) {
				oldest = q
			}
		}
		if sum <= e.cfg.DigestBytes || oldest == nil {
			return true
		}
		oldest.partial = nil
	}
}

// resumable returns what there is of a snapshot of p that is still worth
// completing.
func (e *Engine) resumable(now time.Time, p *peer) *Partial {
	part := p.partial
	if part == nil {
		return nil
	}
	v := part.Head.Version
	if p.state == Wrong || now.Sub(p.partialAt) > partialAge || v.Incarnation != p.incarnation || v.Compare(p.held.Version) <= 0 {
		p.partial = nil
		return nil
	}
	return part
}

// Resolve finds out whether an answer can be the rest of a snapshot of which the
// other side has the first bytes: that needs its version to be held, or in the log.
// It takes time in proportion to the digest, may run while the engine goes on, and
// need not be called before [Answer.AppendTo].
func (a Answer) Resolve() Answer {
	r := a.resume
	a.resume = Resume{}
	if a.kind != FrameSnapshot || r.Offset == 0 || r.Version.Incarnation != a.head.Version.Incarnation {
		return a
	}
	if a.have != (digest.Version{}) && FrameType(a.AppendTo(nil)[0]) == FrameDelta {
		return a // from what it holds besides, that is less than a snapshot
	}
	rest := a
	if at := r.Version.Digest(r.State); a.filter.Version() != at {
		_, base, ok := a.history.Since(at)
		if !ok {
			return a
		}
		rest.filter, rest.past, rest.signed = base, true, nil
		rest.head = headOf(a.head.Origin, r.Version.Incarnation, base)
	}
	rest.kind, rest.resume, rest.have = FrameRest, r, digest.Version{}
	return rest
}

// Snapshot returns the answer whose bytes a rest is part of; ok is false if a is no rest.
func (a Answer) Snapshot() (snapshot Answer, ok bool) {
	if a.kind != FrameRest {
		return Answer{}, false
	}
	a.kind, a.resume = FrameSnapshot, Resume{}
	return a, true
}

// AppendRest appends the frame of a rest to dst, given the bytes of its [Answer.Snapshot].
// Should there be nothing beyond what was asked to be left out, it is unknown.
func (a Answer) AppendRest(dst, snapshot []byte) []byte {
	start := len(dst)
	in := newReader("", snapshot[FrameHeader:])
	if FrameType(snapshot[0]) == FrameSnapshot {
		in.head()
		in.Signature()
	}
	body := in.Rest()
	if FrameType(snapshot[0]) != FrameSnapshot || in.Err != nil || a.resume.Offset >= uint64(len(body)) {
		return EndFrame(BeginFrame(dst, FrameUnknown), start)
	}
	dst = a.head.append(BeginFrame(dst, FrameRest))
	dst = binary.AppendUvarint(dst, a.resume.Offset)
	return EndFrame(append(dst, body[a.resume.Offset:]...), start)
}
