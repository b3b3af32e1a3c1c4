package exchange

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Carrying is the kind of a datagram that is an advert with the change itself
// behind it: a [Carrier].
const Carrying AdvertKind = 3

// MaxDatagram is the length in bytes of the longest datagram, a [Carrier]. With
// what memberlist and encryption add it fits the least packet that every IPv6
// network carries whole.
const MaxDatagram = 1152

// Carrier is an advert that brings the change from an earlier version with it.
type Carrier struct {
	Head      Head
	Step      uint64 // Head's sequence less that of the version it starts from; at least 1
	Signature []byte // of Head, by the origin; empty if it does not sign
	Change    []byte // a bare delta: digest/FORMAT.md, section 4

	// short: it came as a [Step]. Of Head there is only the version; mark is that of
	// the whole, and keys what the change adds to the number of keys. packed is how the
	// change is written.
	short, packed bool
	mark          uint32
	keys          uint64
}

// AppendTo appends the datagram to dst.
func (c Carrier) AppendTo(dst []byte) []byte {
	dst = Advert{Carrying, c.Head}.AppendTo(dst)
	dst = binary.AppendUvarint(dst, c.Step)
	dst = appendString8(dst, string(c.Signature))
	return append(dst, c.Change...)
}

// DecodeCarrier reads a datagram. b is not retained.
func DecodeCarrier(b []byte) (Carrier, error) {
	r := reader{message: "carrier", b: b}
	if len(b) > MaxDatagram {
		r.off = MaxDatagram
		r.fail("length")
		return Carrier{}, r.err
	}
	if r.kind() != Carrying {
		r.off = 0
		r.fail("kind")
	}
	c := Carrier{Head: r.head()}
	c.Step = r.uvarint("step")
	if c.Step == 0 || c.Step > c.Head.Version.Sequence {
		r.fail("step")
	}
	c.Signature = r.signature()
	c.Change = append([]byte(nil), r.rest()...)
	if len(c.Change) == 0 {
		r.fail("change")
	}
	if r.err != nil {
		return Carrier{}, r.err
	}
	return c, nil
}

// kind reads the first byte of a datagram.
func (r *reader) kind() AdvertKind { return r.kindOf(LeastVersion) }

// kindOf reads the first byte of a datagram that came with a protocol version.
func (r *reader) kindOf(version uint8) AdvertKind {
	first := r.byte("kind")
	if r.err == nil && first>>4 != version {
		r.off = 0
		r.fail("version")
		r.err.(*FormatError).Err = ErrVersion
	}
	return AdvertKind(first & 0xf)
}

// carriers are the datagrams that bring a change with its advert, for those who hold
// base and speak that version of the protocol.
type carriers struct {
	base       Version
	whole      []byte // of version 1; nil if there are none
	step       []byte // of version 2; nil if there is none of that
	changeSize int    // how much of step is the change, signature included
}

// carriersOf makes the datagrams that tell of f, which follows before by the delta d;
// none if the change is too long for one.
func (e *Engine) carriersOf(before Head, f *digest.Filter, d *digest.Delta) (c carriers) {
	// Encoding is left to those who fetch it, if it is for nothing here.
	if d.Len() == 0 || d.Len() > 2*MaxDatagram || d.Target() != f.Version() || e.cfg.Publish.Carry < 0 {
		return c
	}
	change, err := d.AppendBare(nil, f)
	if err != nil || len(change) > e.cfg.Publish.For(len(e.live)).Carry {
		return c // a delta that is not one of this filter, or not for a datagram
	}
	step, signature := e.self.Version.Sequence-before.Version.Sequence, sign(e.cfg.Key, e.self)
	c.base = before.Version
	c.whole = Carrier{Head: e.self, Step: step, Signature: signature, Change: change}.AppendTo(nil)
	if len(c.whole) > MaxDatagram {
		return carriers{}
	}
	short := squeeze(change)
	packed, err := d.AppendPacked(nil, f)
	isPacked := err == nil && len(packed) < len(short)
	if isPacked {
		short = packed
	} else if !bytes.Equal(unsqueeze(short), change) {
		return c // of a filter with so few positions that it is coded otherwise
	}
	c.changeSize = len(signature) + len(short)
	c.step = Step{
		Origin: e.id.tag(), From: uint8(before.Version.Sequence), Step: step, Keys: int64(e.self.Keys - before.Keys),
		Mark: e.self.mark(), Packed: isPacked, Behind: append(signature, short...),
	}.AppendTo(nil)
	return c
}

// carryTo sends p the change.
func (e *Engine) carryTo(p *peer) {
	data, behind := e.carrying.step, e.carrying.changeSize
	if p.speaks < shortVersion || data == nil {
		data = e.carrying.whole
		behind = len(data) - len(e.self.append(nil)) - 1
	}
	e.out.take(behind)
	e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{p.name, data, behind})
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
		v.Sequence == p.held.Version.Sequence+c.Step
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
	r := Result{Kind: FrameDelta, Head: c.Head, Signature: c.Signature, Bytes: len(c.Change)}
	if c.short {
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
	} else {
		target := c.Head.Version.Digest(c.Head.State)
		r.Delta, r.Err = digest.DecodeBareDelta(c.Change, f.Base, target, c.Head.Keys, lim)
	}
	if r.Err == nil {
		r.Err = verify(f.Key, r.Head, c.Signature)
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
