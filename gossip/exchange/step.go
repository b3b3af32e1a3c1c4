package exchange

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// MaxDatagram is the length in bytes of the longest datagram, a [Step]. With encryption and headers
// it fits a packet that every IPv6 network must carry whole.
const MaxDatagram = 1152

// A Step is an advert with the change, for peers that hold the version from which it starts. Of the
// head it has only the fields that such a peer does not know, and those by which any other peer
// notices that it holds another version.
type Step struct {
	Origin tag
	From   uint8  // the lowest byte of the sequence of the version that it starts from
	Step   uint64 // the growth of the sequence; at least 1
	Keys   int64  // the growth of the number of keys
	Mark   uint32 // of the resulting head
	Change []byte // a bare delta
}

// AppendTo appends the datagram to dst.
func (s Step) AppendTo(dst []byte) []byte {
	dst = stepping.appendTag(dst, s.Origin)
	dst = binary.AppendUvarint(append(dst, s.From), s.Step)
	dst = binary.AppendVarint(dst, s.Keys)
	dst = binary.LittleEndian.AppendUint32(dst, s.Mark)
	return append(dst, s.Change...)
}

// DecodeStep reads a datagram. b is not retained.
func DecodeStep(b []byte) (Step, error) {
	r := newReader("step", b)
	if len(b) > MaxDatagram {
		r.FailAt(MaxDatagram, "length", ErrMalformed)
		return Step{}, r.Err
	}
	s := Step{Origin: r.tagOf(r.kind(stepping, stepping|byID)), From: r.Byte("from"), Step: r.Uvarint("step")}
	if s.Step == 0 {
		r.Fail("step")
	}
	u := r.Uvarint("keys")
	s.Keys = int64(u>>1) ^ -int64(u&1)
	s.Mark = r.Uint32("mark")
	s.Change = append([]byte(nil), r.Rest()...)
	if len(s.Change) == 0 {
		r.Fail("change")
	}
	if r.Err != nil {
		return Step{}, r.Err
	}
	return s, nil
}

// target returns the version to which the step leads. It starts from the version nearest to
// held that has the lowest byte From.
func (s *Step) target(held Version) Version {
	held.Sequence += uint64(int64(int8(s.From-uint8(held.Sequence)))) + s.Step
	return held
}

// An ownStep is the datagram with this peer's latest change, for peers to which base was
// advertised.
type ownStep struct {
	base   Version
	data   []byte // nil if there is none
	change int    // bytes of data that are the change
}

// stepTo returns the step from the version before to f, of which d is the delta. There is none if
// the change is too long for a datagram.
func (e *Engine) stepTo(before Head, f *digest.Filter, d *digest.Delta) ownStep {
	// A delta that is certainly too long is not encoded.
	if d.Len() == 0 || d.Len() > 2*MaxDatagram || d.Target() != f.Version() {
		return ownStep{}
	}
	change, err := d.AppendBare(nil, f)
	if err != nil {
		return ownStep{} // a delta that is not one of this filter, or not for a datagram
	}
	data := Step{
		Origin: e.ownTag(), From: uint8(before.Version.Sequence), Step: e.self.Version.Sequence - before.Version.Sequence,
		Keys: int64(e.self.Keys - before.Keys), Mark: e.self.mark(), Change: change,
	}.AppendTo(nil)
	if len(data) > MaxDatagram {
		return ownStep{}
	}
	return ownStep{before.Version, data, len(change)}
}

// handleStep keeps a step that starts from the version held until it can be decoded: after the
// fetch under way.
func (e *Engine) handleStep(now time.Time, s *Step) {
	p := e.tagged(s.Origin)
	if p == nil {
		return
	}
	held := p.held.Version
	if p.state == nothing || held.Incarnation != p.incarnation {
		e.ask(now, p)
		return
	}
	target := s.target(held)
	if target.Compare(held) <= 0 {
		if target == held && p.held.mark() != s.Mark || now.Sub(p.installedAt) >= lateAdvert {
			e.contest(now, p)
		}
		return
	}
	e.handleClaim(now, p, Head{Origin: p.id, Version: target}, p)
	if p.behind() && p.announced.Version == target && !now.Before(p.stepsFrom) {
		p.step, p.stepAt = s, now
		e.enqueue(p)
	}
}

// stepFits reports whether p.step leads from the version held to the announced one.
func (p *peer) stepFits() bool {
	held := p.held.Version
	return p.step != nil && p.holds() && p.step.From == uint8(held.Sequence) && p.step.target(held) == p.announced.Version
}

// startStep starts to decode p.step: a fetch whose answer is there already.
func (e *Engine) startStep(p *peer) {
	get := Get{Origin: p.id, Have: p.held.Version, State: p.held.State, Limit: uint64(e.cfg.DigestBytes)}
	e.start(&flight{origin: p, source: p, get: get, step: true},
		Fetch{Base: p.filter, Step: p.step})
	p.step = nil
}

// DecodeChange decodes and checks the change in f.Step, as [DecodeAnswer] does an answer that
// was fetched.
func DecodeChange(f Fetch, lim digest.Limits) Result {
	s, change := f.Step, f.Step.Change
	r := Result{Kind: FrameDelta, Head: Head{Origin: f.Get.Origin, Version: s.target(f.Get.Have), Keys: f.Base.Keys() + uint64(s.Keys)}}
	r.Bytes = len(change)
	r.Delta, r.Filter, r.Err = digest.DecodeBare(change, f.Base, r.Head.Version.Sequence, r.Head.Keys, lim)
	if r.Err == nil {
		r.Head.State = r.Delta.Target().State
		if r.Head.mark() != s.Mark {
			r.Err = fmt.Errorf("%w: it does not lead to the announced head", digest.ErrCorrupt)
		}
	}
	if r.Err == nil && r.Filter == nil {
		r.Filter, r.Err = r.Delta.Apply(f.Base)
	}
	if r.Err != nil {
		r.Filter = nil // if there is one, it is not the announced one
		r.Err = fmt.Errorf("exchange: step: %w", r.Err)
	}
	return r
}

// stepDone installs the result of a step, or leaves the version to be fetched.
func (e *Engine) stepDone(now time.Time, f *flight, r Result) {
	p := f.origin
	switch {
	case r.Err != nil:
		e.reject(f, r)
		p.stepsFrom = now.Add(badStepWait)
	case p.state == wrong || f.get.Have != p.held.Version:
		// The replica has been found wrong, or dropped, since.
	default:
		e.stats.CarriedReceived++
		e.stats.DeltasReceived++
		e.install(now, f, r)
	}
}

// badStepWait is how long an origin's steps are ignored, and its versions fetched instead, after a
// wrong step. Another peer may have forged it.
const badStepWait = time.Second
