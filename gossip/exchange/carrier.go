package exchange

import (
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// MaxDatagram is the length in bytes of the longest datagram, a [Step]. With
// what encryption adds it fits the least packet that every IPv6 network carries
// whole.
const MaxDatagram = 1152

// A Carrier is a change that came as a [Step]. Of the head that it leads to only origin
// and version are known; mark is that of the whole.
type Carrier struct {
	Head      Head
	Change    []byte
	step      uint64
	signature []byte // of the head, by the origin; empty if it does not sign
	packed    bool
	mark      uint32
	keys      uint64 // what the change adds to the number of keys
}

// carrying is the datagram that brings a change with its advert, for those who hold base.
type carrying struct {
	base   Version
	data   []byte // nil if there is none
	change int    // how much of data is the change, with its signature
}

// carryingOf makes the datagram that tells of f, which follows before by the delta d;
// none if the change is too long for one.
func (e *Engine) carryingOf(before Head, f *digest.Filter, d *digest.Delta) carrying {
	// Encoding is left to those who fetch it, if it is for nothing here.
	if d.Len() == 0 || d.Len() > 2*MaxDatagram || d.Target() != f.Version() || e.cfg.Publish.Carry < 0 {
		return carrying{}
	}
	change, err := d.AppendPacked(nil, f)
	packed := err == nil
	if bare, e := d.AppendBare(nil, f); e == nil && (!packed || len(bare) <= len(change)) {
		change, err, packed = bare, nil, false
	}
	if err != nil || len(change) > e.cfg.Publish.For(len(e.live)).Carry {
		return carrying{} // a delta that is not one of this filter, or not for a datagram
	}
	behind := append(sign(e.cfg.Key, e.self), change...)
	data := Step{
		Origin: e.id.tag(), From: uint8(before.Version.Sequence), Step: e.self.Version.Sequence - before.Version.Sequence,
		Keys: int64(e.self.Keys - before.Keys), Mark: e.self.mark(), Packed: packed, Behind: behind,
	}.AppendTo(nil)
	if len(data) > MaxDatagram {
		return carrying{}
	}
	return carrying{before.Version, data, len(behind)}
}

// carryTo sends p the change.
func (e *Engine) carryTo(p *peer) {
	e.out.take(e.carrying.change)
	e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{p.name, e.carrying.data, e.carrying.change})
}

// carry keeps a carrier until the fetch under way, if any, is done.
func (e *Engine) carry(now time.Time, p *peer, c *Carrier) {
	if p.behind() && p.announced.Version == c.Head.Version && !now.Before(p.carryFrom) {
		p.carried, p.carriedAt = c, now
		e.enqueue(p)
	}
}

// carriedFits reports whether what was carried starts from what is held.
func (p *peer) carriedFits() bool {
	c := p.carried
	if c == nil || !p.holds() || p.announced.Version != c.Head.Version {
		return false
	}
	v := c.Head.Version
	return v.Incarnation == p.held.Version.Incarnation && v.Epoch == p.held.Version.Epoch &&
		v.Sequence == p.held.Version.Sequence+c.step
}

// unpack starts to decode what was carried: a fetch whose answer is there already.
func (e *Engine) unpack(p *peer) {
	get := Get{Origin: p.id, Have: p.held.Version, State: p.held.State, Limit: uint64(e.cfg.DigestBytes)}
	e.start(&flight{origin: p, source: p, incarnation: p.incarnation, get: get, carried: true},
		Fetch{Base: p.filter, Key: p.key, Carried: p.carried})
	p.carried = nil
}

// DecodeCarried decodes and checks the answer that f brings with it, as
// [DecodeAnswer] does one that was fetched.
func DecodeCarried(f Fetch, lim digest.Limits) Result {
	c := f.Carried
	r := Result{Kind: FrameDelta, Head: c.Head, Signature: c.signature, Bytes: len(c.Change)}
	r.Head.Keys = f.Base.Keys() + c.keys
	if c.packed {
		r.Delta, r.Filter, r.Err = digest.DecodePackedStep(c.Change, f.Base, r.Head.Version.Sequence, r.Head.Keys)
	} else {
		r.Delta, r.Filter, r.Err = digest.DecodeBareStep(c.Change, f.Base, r.Head.Version.Sequence, r.Head.Keys, lim)
	}
	if r.Err == nil {
		r.Head.State = r.Delta.Target().State
		if r.Head.mark() != c.mark {
			r.Err = fmt.Errorf("%w: it does not lead to what was announced", digest.ErrCorrupt)
		}
	}
	if r.Err == nil {
		r.Err = verify(f.Key, r.Head, c.signature)
	}
	if r.Err == nil && r.Filter == nil {
		r.Filter, r.Err = r.Delta.Apply(f.Base)
	}
	if r.Err != nil {
		r.Filter = nil // if there is one, it is not what was announced
		r.Err = fmt.Errorf("exchange: carrier: %w", r.Err)
	}
	return r
}

// unpacked installs what was carried, or sees to it that it is fetched instead.
func (e *Engine) unpacked(now time.Time, f *flight, r Result) {
	p := f.origin
	switch {
	case r.Err != nil:
		e.reject(f, r)
		p.carryFrom = now.Add(badCarrierWait)
	case p.state == Wrong || f.get.Have != p.held.Version:
		// Meanwhile what is held was found to be wrong, or dropped.
	default:
		e.stats.CarriedIn++
		e.stats.DeltasIn++
		e.install(now, f, r)
	}
}

// badCarrierWait is how long an origin's carriers are ignored, and what they bring
// fetched from it, after one that was wrong: it need not have come from there.
const badCarrierWait = time.Second
