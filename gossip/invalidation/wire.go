package invalidation

import (
	"cmp"
	"encoding/binary"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// First bytes of the datagrams.
const (
	PushByte    = 0xe1
	receiptByte = 0xe2
)

const (
	maxDatagram = 1152    // bytes
	maxFrame    = 1 << 20 // bytes of the payload of a stream
)

// A push is a datagram from the origin of a log: how far the log goes, and some of its entries.
type push struct {
	Log
	high    uint64 // the newest entry
	first   uint64 // the first of entries; without any, the one that would be next
	entries []Target
}

func (p push) append(dst []byte) []byte {
	dst = p.Log.append(append(dst, PushByte))
	dst = binary.AppendUvarint(dst, p.high)
	dst = binary.AppendUvarint(dst, p.first)
	for _, e := range p.entries {
		dst = e.append(dst)
	}
	return dst
}

func decodePush(b []byte) (push, error) {
	r := newReader("push", b)
	r.lead(PushByte)
	p := push{Log: r.log(), high: r.Uvarint("newest"), first: r.Uvarint("first")}
	if p.high == 0 || p.first == 0 || p.first-1 > p.high {
		r.Fail("first")
	}
	for r.Err == nil && r.Off < len(b) {
		p.entries = append(p.entries, r.entry())
	}
	if uint64(len(p.entries)) > p.high-p.first+1 {
		r.Fail("entries")
	}
	return p, r.End()
}

// A receipt is a datagram to the origin of a log: how far the sender has applied the log.
type receipt struct {
	from    uint64 // the sender's ID
	life    uint64 // of the log
	applied uint64
}

func (p receipt) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, receiptByte), p.from)
	dst = binary.LittleEndian.AppendUint64(dst, p.life)
	return binary.AppendUvarint(dst, p.applied)
}

func decodeReceipt(b []byte) (receipt, error) {
	r := newReader("receipt", b)
	r.lead(receiptByte)
	p := receipt{from: r.Uint64("sender"), life: r.NonZero("life"), applied: r.Uvarint("applied")}
	return p, r.End()
}

// appendRecall appends the payload of a recall: the newest entry of each log that the sender
// knows, in order of logs.
func appendRecall(dst []byte, known []ID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(known)))
	for _, k := range known {
		dst = binary.AppendUvarint(k.Log.append(dst), k.Sequence)
	}
	return dst
}

func decodeRecall(b []byte) ([]ID, error) {
	r := newReader("recall", b)
	n := r.Count("number", 17)
	known := make([]ID, 0, n)
	for range n {
		k := ID{Log: r.log(), Sequence: r.Uvarint("known")}
		if k.Sequence == 0 || len(known) > 0 && known[len(known)-1].Log.compare(k.Log) >= 0 {
			r.Fail("order")
		}
		known = append(known, k)
	}
	return known, r.End()
}

// A part is what the answer to a recall contains of one log.
type part struct {
	Log
	floor   uint64 // entries up to this one are forgotten
	age     uint64 // seconds since the newest of those arrived; 0 if floor is
	first   uint64 // the first of entries; without any, the one that would be next
	entries []Target
}

// An answer to a recall has the parts of logs that the other side lacks.
type answer struct {
	more  bool // another recall will bring more
	parts []part
}

func (m answer) append(dst []byte) []byte {
	more := byte(0)
	if m.more {
		more = 1
	}
	dst = binary.AppendUvarint(append(dst, more), uint64(len(m.parts)))
	for _, p := range m.parts {
		dst = binary.AppendUvarint(p.Log.append(dst), p.floor)
		dst = binary.AppendUvarint(dst, p.age)
		dst = binary.AppendUvarint(dst, p.first)
		dst = binary.AppendUvarint(dst, uint64(len(p.entries)))
		for _, e := range p.entries {
			dst = e.append(dst)
		}
	}
	return dst
}

func decodeAnswer(b []byte) (answer, error) {
	r := newReader("logs", b)
	more := r.Byte("more")
	if more > 1 {
		r.Fail("more")
	}
	n := r.Count("number", 20)
	m := answer{more: more == 1, parts: make([]part, 0, n)}
	for range n {
		p := part{Log: r.log(), floor: r.Uvarint("forgotten"), age: r.Uvarint("age"), first: r.Uvarint("first")}
		if p.first <= p.floor || p.first+maxFrame < p.first { // no payload has maxFrame entries
			r.Fail("first")
		}
		if p.floor == 0 && p.age != 0 {
			r.Fail("age")
		}
		k := r.Count("entries", 2)
		p.entries = make([]Target, 0, k)
		for range k {
			p.entries = append(p.entries, r.entry())
		}
		if k == 0 && p.floor == 0 {
			r.Fail("entries")
		}
		m.parts = append(m.parts, p)
	}
	return m, r.End()
}

func (l Log) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, l.Origin)
	return binary.LittleEndian.AppendUint64(dst, l.Life)
}

func (l Log) compare(m Log) int {
	return cmp.Or(cmp.Compare(l.Origin, m.Origin), cmp.Compare(l.Life, m.Life))
}

// maxEncoded returns an upper bound of the encoded length in bytes.
func (t Target) maxEncoded() int { return 1 + 3 + len(t.Name) }

func (t Target) append(dst []byte) []byte {
	return append(binary.AppendUvarint(append(dst, t.lead()), uint64(len(t.Name))), t.Name...)
}

// A reader also reads the fields that only messages of this package have.
type reader struct{ wire.Reader }

func newReader(message string, b []byte) *reader {
	return &reader{wire.Reader{Message: message, B: b}}
}

func (r *reader) lead(want byte) {
	if len(r.B) > maxDatagram {
		r.Fail("length")
	}
	if r.Byte("kind") != want {
		r.Fail("kind")
	}
}

func (r *reader) log() Log { return Log{r.Uint64("origin"), r.NonZero("life")} }

func (r *reader) entry() (e Target) {
	lead := r.Byte("kind")
	e.Kind, e.Soft = Kind(lead&^softBit), lead&softBit != 0
	n := r.Uvarint("name")
	if n > MaxName || e.Kind == 0 || e.Kind == Everything && n > 0 || e.Kind == Tag && n == 0 {
		r.Fail("name")
	}
	e.Name = string(r.Take("name", n))
	return e
}
