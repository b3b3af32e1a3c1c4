package exchange

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// A partialBody is the first bytes of a snapshot whose stream broke. Equal digests have equal bytes, so
// any peer that holds the version can serve the rest. A partialBody is immutable.
type partialBody struct {
	Head      Head
	Signature []byte // of Head, by the origin; empty if it does not sign
	Body      []byte // the first bytes
}

const (
	// leastPartial is the least number of new bytes of a body that is worth keeping.
	leastPartial = 16 << 10
	// partialAge is how long a part is kept. Some peer may have the version for that time.
	partialAge = time.Minute
)

// resume returns the fields of a get for the rest; the zero Resume if p is nil.
func (p *partialBody) resume() resumption {
	if p == nil {
		return resumption{}
	}
	return resumption{Version: p.Head.Version, State: p.Head.State, Offset: uint64(len(p.Body))}
}

// DecodeBroken reads the part of an answer that arrived before its stream broke: payload is the
// beginning of the payload of a frame of type t, the answer to f. The Result has ErrBroken, and a
// Partial if the answer can be resumed. payload is not retained.
func DecodeBroken(f Fetch, t FrameType, payload []byte) Result {
	r := Result{Kind: t, Bytes: len(payload), Err: ErrBroken}
	if t != FrameSnapshot && t != FrameRest {
		return r
	}
	in := newReader(t.String(), payload)
	part, body := in.body(f, t)
	if in.Err == nil && len(body) > 0 && part.Head.Origin == f.Get.Origin && verify(f.Key, part.Head, part.Signature) == nil {
		r.partial = &partialBody{Head: part.Head, Signature: part.Signature, Body: bytes.Clone(body)}
	}
	return r
}

// joined reads the fields of a rest after its head. It returns the whole body, joined from the part
// of f and the rest, and the signature that came with the part.
func (r *reader) joined(f Fetch, head Head) (signature, body []byte) {
	offset := r.Uvarint("offset")
	p := f.partial
	switch {
	case p == nil || head != p.Head:
		r.Fail("head")
	case offset != uint64(len(p.Body)):
		r.Fail("offset")
	}
	rest := r.Rest()
	if r.Err != nil {
		return nil, nil
	}
	return p.Signature, slices.Concat(p.Body, rest)
}

// keepPartial keeps the part of a snapshot that arrived before a stream broke, and reports whether
// that was progress. If an answer was wrong, the part that it completed may be wrong too, and is
// dropped.
func (e *Engine) keepPartial(now time.Time, f *flight, r Result) bool {
	p := f.origin
	if r.partial == nil {
		if r.Kind != 0 && f.get.Resume.Offset > 0 && !errors.Is(r.Err, ErrBroken) {
			p.partial = nil
		}
		return false
	}
	have := 0
	if p.partial != nil && p.partial.Head == r.partial.Head {
		have = len(p.partial.Body)
	}
	v, bytes := r.partial.Head.Version, len(r.partial.Body)
	if p.state == wrong || v.Incarnation != p.incarnation || v.Compare(p.held.Version) <= 0 ||
		bytes < have+e.leastPartial || bytes > e.cfg.DigestBytes {
		return false
	}
	p.partial, p.partialAt = r.partial, now
	e.boundPartials()
	return true
}

// boundPartials drops the oldest partials until all together have at most the bytes of one digest.
func (e *Engine) boundPartials() {
	for {
		sum, oldest := 0, (*peer)(nil)
		for _, p := range e.order {
			if p.partial != nil {
				sum += len(p.partial.Body)
				if oldest == nil || p.partialAt.Before(oldest.partialAt) {
					oldest = p
				}
			}
		}
		if sum <= e.cfg.DigestBytes {
			return
		}
		oldest.partial = nil
	}
}

// appendRest appends the rest of the snapshot that the client has begun to receive. ok is false if
// that version is neither a's nor in the history. If there is no rest, the frame is unknown.
func (a Answer) appendRest(dst []byte) (frame []byte, ok bool) {
	r, head, f := a.resume, a.head, a.filter
	if r.Offset == 0 || r.Version.Incarnation != head.Version.Incarnation {
		return dst, false
	}
	if at := r.Version.Digest(r.State); f.Version() != at {
		if _, f, ok = a.history.Since(at); !ok {
			return dst, false
		}
		head = headOf(head.Origin, head.Version.Incarnation, f)
	}
	body := f.AppendTo(nil)
	if len(body) > a.limit || r.Offset >= uint64(len(body)) {
		return appendFrame(dst, FrameUnknown), true
	}
	return appendRest(dst, head, r.Offset, body[r.Offset:]), true
}

func appendRest(dst []byte, head Head, offset uint64, rest []byte) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(head.append(BeginFrame(dst, FrameRest)), offset)
	return EndFrame(append(dst, rest...), start)
}
