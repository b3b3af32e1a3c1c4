package digest

import (
	"encoding/binary"
	"fmt"
)

// A Kind says what a message is.
type Kind uint8

const (
	KindFilter Kind = 1 // everything
	KindDelta  Kind = 2 // changes, coded with the base as context
	KindPieces Kind = 3 // everything, in pieces that can be read apart
	lastKind        = KindPieces
)

var kindNames = [...]string{"", "filter", "delta", "filter in pieces"}

func (k Kind) String() string {
	if k < KindFilter || k > lastKind {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// A Header is what can be read of a message without the filters it refers to.
type Header struct {
	Kind     Kind
	Geometry Geometry // of a filter; Seed is zero unless the Limits have it
	Version  Version  // of the filter, or of the delta's target
	Keys     uint64   // of the filter or target, as the publisher states
	Ones     uint64   // set positions of a filter
	Base     Version  // of a delta

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
	dst = append(dst, magic...)
	dst = append(dst, formatVersion, byte(h.Kind), 0) // without extension
	if h.Kind != KindDelta {
		dst = append(dst, doubleHashing, byte(h.Geometry.Hashes), byte(h.Geometry.Profile))
		dst = binary.LittleEndian.AppendUint32(dst, h.Geometry.seedTag())
		dst = binary.AppendUvarint(dst, h.Geometry.Bits)
	}
	dst = binary.AppendUvarint(dst, h.Version.Epoch)
	dst = binary.AppendUvarint(dst, h.Version.Sequence)
	dst = binary.LittleEndian.AppendUint64(dst, h.Version.State)
	dst = binary.AppendUvarint(dst, h.Keys)
	if h.Kind != KindDelta {
		return binary.AppendUvarint(dst, h.Ones)
	}
	dst = binary.AppendUvarint(dst, h.Version.Sequence-h.Base.Sequence)
	return binary.LittleEndian.AppendUint64(dst, h.Base.State)
}

func (r *reader) header(lim Limits) (h Header) {
	at := r.off
	h.Kind = Kind(r.u8("kind"))
	r.annotate("%v", h.Kind)
	switch {
	case r.err != nil:
	case h.Kind == 0:
		r.corrupt("kind", at, "0")
	case h.Kind > lastKind:
		r.fail("kind", at, fmt.Errorf("%w: kind %d", ErrVersion, h.Kind))
	}
	if n := r.u8("extension length"); n > 0 {
		r.take("extension", int(n)) // fields of later programs, which can be ignored
	}
	if h.Kind != KindDelta {
		h.Geometry = r.geometry(lim)
	}
	h.Version.Epoch = r.bounded("epoch", 1, 1<<63)
	h.Version.Sequence = r.bounded("sequence", 0, 1<<63)
	h.stateAt = r.off
	h.Version.State = r.u64("state")
	h.Keys = r.bounded("keys", 0, 1<<63)
	if h.Kind != KindDelta {
		h.countAt = r.off
		h.Ones = r.bounded("count", 0, h.Geometry.Bits)
	} else {
		h.baseAt = r.off
		h.Base.Epoch = h.Version.Epoch
		h.Base.Sequence = h.Version.Sequence - r.bounded("sequence step", 0, h.Version.Sequence)
		h.Base.State = r.u64("base state")
	}
	if r.err != nil {
		return Header{}
	}
	return h
}

func (r *reader) geometry(lim Limits) (g Geometry) {
	at := r.off
	if scheme := r.u8("scheme"); scheme == 0 {
		r.corrupt("scheme", at, "0")
	} else if scheme != doubleHashing {
		r.fail("scheme", at, fmt.Errorf("%w: scheme %d", ErrVersion, scheme))
	}
	at = r.off
	if g.Hashes = int(r.u8("hashes")); g.Hashes < 1 || g.Hashes > maxHashes {
		r.corrupt("hashes", at, "%d is not in [1, %d]", g.Hashes, maxHashes)
	}
	at = r.off
	g.Profile = Profile(r.u8("profile"))
	r.annotate("%v", g.Profile)
	if lim.Profile != AnyProfile && g.Profile != lim.Profile {
		r.fail("profile", at, fmt.Errorf("%w: its identities are %v, ours are %v", ErrSeed, g.Profile, lim.Profile))
	}
	at = r.off
	if g.tag = r.u32("seed tag"); lim.Seed != 0 && g.tag != seedTag(lim.Seed) {
		r.fail("seed tag", at, fmt.Errorf("%w: tag %08x, ours is %08x", ErrSeed, g.tag, seedTag(lim.Seed)))
	}
	at = r.off
	if g.Bits = r.bounded("bits", 1, 1<<63); g.Bits > lim.Bits || g.Bits > maxBits {
		r.fail("bits", at, fmt.Errorf("%w: %d, %d allowed", ErrTooLarge, g.Bits, min(lim.Bits, maxBits)))
	}
	if lim.Seed != 0 {
		g.Seed, g.tag = lim.Seed, 0
	}
	return g
}
