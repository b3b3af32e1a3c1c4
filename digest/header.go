package digest

import (
	"encoding/binary"
	"fmt"
)

// A Kind says what a message is.
type Kind uint8

const (
	KindFilter     Kind = 1 // everything
	KindDelta      Kind = 2 // changes, coded with the base as context
	KindPlainDelta Kind = 3 // changes, readable without the base
	KindCounting   Kind = 4 // everything, with the counts
	KindPieces     Kind = 5 // everything, in pieces that can be read apart
	lastKind            = KindPieces
)

var kindNames = [...]string{"", "filter", "delta", "plain delta", "counting filter", "filter in pieces"}

func (k Kind) String() string {
	if k < KindFilter || k > lastKind {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

func (k Kind) delta() bool { return k == KindDelta || k == KindPlainDelta }

// A Header is what can be read of a message without the filters it refers to.
type Header struct {
	Kind     Kind
	Geometry Geometry // Seed is zero unless the Limits have it
	Version  Version  // of the filter, or of the delta's target
	Keys     uint64   // of the filter or target, as the publisher states
	Ones     uint64   // set positions of the filter or target
	Base     Version  // of a delta
	BaseOnes uint64   // set positions of a delta's base

	stateAt, baseAt, countAt int // their offsets in the message
}

// Peek reads a message's header. It verifies the checksum, and that the header is
// possible and within the limits, but not what follows.
func Peek(b []byte, lim Limits) (Header, error) {
	r := start(b, lim.withDefaults())
	h := r.header(lim.withDefaults())
	return h, r.err
}

func appendHeader(dst []byte, h Header) []byte {
	if h.Kind == KindPieces {
		dst = append(dst, piecesMagic...)
	} else {
		dst = append(dst, magic...)
	}
	dst = append(dst, formatVersion, byte(h.Kind), byte(h.Geometry.scheme()), byte(h.Geometry.Hashes), 0)
	dst = binary.LittleEndian.AppendUint32(dst, h.Geometry.SeedTag())
	dst = binary.AppendUvarint(dst, h.Geometry.Bits)
	dst = binary.AppendUvarint(dst, h.Version.Epoch)
	dst = binary.AppendUvarint(dst, h.Version.Sequence)
	dst = binary.LittleEndian.AppendUint64(dst, h.Version.State)
	dst = binary.AppendUvarint(dst, h.Keys)
	dst = binary.AppendUvarint(dst, h.Ones)
	if h.Kind.delta() {
		dst = binary.AppendUvarint(dst, h.Version.Sequence-h.Base.Sequence)
		dst = binary.LittleEndian.AppendUint64(dst, h.Base.State)
		dst = binary.AppendUvarint(dst, h.BaseOnes)
	}
	return dst
}

func (r *reader) header(lim Limits) (h Header) {
	at := r.off
	h.Kind = Kind(r.u8("kind"))
	r.annotate("%v", h.Kind)
	if r.err == nil && (h.Kind < KindFilter || h.Kind > lastKind || r.inPieces != (h.Kind == KindPieces)) {
		r.corrupt("kind", at, "%d", h.Kind)
	}
	h.Geometry = r.geometry(lim)
	m := h.Geometry.Bits
	h.Version.Epoch = r.bounded("epoch", 1, 1<<63)
	h.Version.Sequence = r.bounded("sequence", 0, 1<<63)
	h.stateAt = r.off
	h.Version.State = r.u64("state")
	h.Keys = r.bounded("keys", 0, 1<<63)
	h.countAt = r.off
	h.Ones = r.bounded("count", 0, m)
	if r.err == nil && h.Kind.delta() {
		h.baseAt = r.off
		h.Base.Epoch = h.Version.Epoch
		h.Base.Sequence = h.Version.Sequence - r.bounded("sequence step", 0, h.Version.Sequence)
		h.Base.State = r.u64("base state")
		h.BaseOnes = r.bounded("base count", 0, m)
	}
	if r.err != nil {
		return Header{}
	}
	return h
}

func (r *reader) geometry(lim Limits) (g Geometry) {
	at := r.off
	g.Scheme = Scheme(r.u8("scheme"))
	r.annotate("%v", g.Scheme)
	g.Hashes = int(r.u8("hashes"))
	if reserved := r.u8("reserved"); r.err == nil && reserved != 0 {
		r.corrupt("reserved", at+2, "%d is not zero", reserved)
	}
	g.tag = r.u32("seed tag")
	bitsAt := r.off
	g.Bits = r.bounded("bits", 1, 1<<63)
	if r.err != nil {
		return Geometry{}
	}
	switch {
	case g.Scheme == 0 || g.Scheme > lastScheme:
		r.corrupt("scheme", at, "%d", uint8(g.Scheme))
	case g.Hashes < 1 || g.Hashes > MaxHashes:
		r.corrupt("hashes", at+1, "%d is not in [1, %d]", g.Hashes, MaxHashes)
	case g.Bits > lim.Bits || g.Bits > MaxBits:
		r.fail("bits", bitsAt, fmt.Errorf("%w: %d, %d allowed", ErrTooLarge, g.Bits, min(lim.Bits, MaxBits)))
	case g.Scheme.validate(g) != nil:
		r.corrupt("bits", bitsAt, "%d bits and %d hashes do not suit scheme %v", g.Bits, g.Hashes, g.Scheme)
	case lim.Seed != 0 && g.tag != seedTag(lim.Seed):
		r.fail("seed tag", at+3, fmt.Errorf("%w: tag %08x, ours is %08x", ErrSeed, g.tag, seedTag(lim.Seed)))
	}
	if lim.Seed != 0 {
		g.Seed, g.tag = lim.Seed, 0
	}
	return g
}
