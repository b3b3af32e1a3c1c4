package exchange

import (
	"encoding/binary"

	"github.com/summarycache/summarycache/digest"
)

// A Tag stands for a peer in short datagrams: the lower three bytes of
// its ID. Two members may have the same one; to those who know both it means nobody.
type Tag uint32

const (
	tagBytes = 3
	tagMask  = 1<<(8*tagBytes) - 1
)

func (id ID) tag() Tag { return Tag(id & tagMask) }

// sum is a hash of a head. Its lower half is the head's mark.
func (h Head) sum() uint64 {
	var b [MaxAdvert]byte
	return uint64(digest.KeyOf(0, h.append(b[:0])))
}

func (h Head) mark() uint32 { return uint32(h.sum()) }

// A Step is an advert that brings the change with it, for those who hold the version
// that it starts from: of what they know from that, it says no more than it takes to
// notice that they do not.
type Step struct {
	Origin Tag
	From   uint8  // the lowest byte of the sequence of the version that it starts from
	Step   uint64 // the sequence's growth; at least 1
	Keys   int64  // the growth of the number of keys
	Mark   uint32 // of the head that results
	Packed bool   // the change is a packed delta
	Behind []byte // the origin's signature of that head, 64 bytes, if it signs; then the change
}

// AppendTo appends the datagram to dst.
func (s Step) AppendTo(dst []byte) []byte {
	kind := Stepping
	if s.Packed {
		kind = Packed
	}
	dst = appendTag(append(dst, kind.first()), s.Origin)
	dst = binary.AppendUvarint(append(dst, s.From), s.Step)
	dst = binary.AppendVarint(dst, s.Keys)
	dst = binary.LittleEndian.AppendUint32(dst, s.Mark)
	return append(dst, s.Behind...)
}

// DecodeStep reads a datagram. b is not retained.
func DecodeStep(b []byte) (Step, error) {
	r := newReader("step", b)
	if len(b) > MaxDatagram {
		r.FailAt(MaxDatagram, "length", ErrMalformed)
		return Step{}, r.Err
	}
	s := Step{Packed: r.kind(Stepping, Packed) == Packed, Origin: r.tag(), From: r.Byte("from"), Step: r.Uvarint("step")}
	if s.Step == 0 {
		r.Fail("step")
	}
	u := r.Uvarint("keys")
	s.Keys = int64(u>>1) ^ -int64(u&1)
	s.Mark = r.Uint32("mark")
	s.Behind = append([]byte(nil), r.Rest()...)
	if len(s.Behind) == 0 {
		r.Fail("change")
	}
	if r.Err != nil {
		return Step{}, r.Err
	}
	return s, nil
}

// A Note is a datagram of a few bytes.
type Note struct {
	Kind AdvertKind
	From Tag    // who sends it
	Mark uint32 // of the origin's head
}

// AppendTo appends the datagram to dst.
func (n Note) AppendTo(dst []byte) []byte {
	dst = appendTag(append(dst, n.Kind.first()), n.From)
	return binary.LittleEndian.AppendUint32(dst, n.Mark)
}

// DecodeNote reads a datagram. b is not retained.
func DecodeNote(b []byte) (Note, error) {
	r := newReader("note", b)
	n := Note{r.kind(Reminder, Receipt), r.tag(), r.Uint32("mark")}
	if err := r.End(); err != nil {
		return Note{}, err
	}
	return n, nil
}

func appendTag(dst []byte, t Tag) []byte { return append(dst, byte(t), byte(t>>8), byte(t>>16)) }

func (r *reader) tag() Tag { return Tag(r.Uint24("origin")) }
