package invalidation

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// First bytes of the datagrams.
const (
	PushByte    = 0xe1
	ReceiptByte = 0xe2
)

// MaxDatagram is the length in bytes of the longest datagram.
const MaxDatagram = 1152

// MaxFrame is the length in bytes of the longest payload of a stream.
const MaxFrame = 1 << 20

// A Push is a datagram from the origin of a log: how far that goes, and some of it.
type Push struct {
	Log
	High  uint64 // the newest entry
	First uint64 // the first of Entries, or what would be next
	// Entries follow each other, and may be none.
	Entries []Invalidation
}

// AppendTo appends the datagram to dst.
func (p Push) AppendTo(dst []byte) []byte {
	dst = p.Log.append(append(dst, PushByte))
	dst = binary.AppendUvarint(dst, p.High)
	dst = binary.AppendUvarint(dst, p.First)
	for _, e := range p.Entries {
		dst = e.append(dst)
	}
	return dst
}

// DecodePush reads a datagram. b is not retained.
func DecodePush(b []byte) (Push, error) {
	r := newReader("push", b)
	r.lead(PushByte)
	p := Push{Log: r.log(), High: r.Uvarint("newest"), First: r.Uvarint("first")}
	if p.High == 0 || p.First == 0 || p.First-1 > p.High {
		r.Fail("first")
	}
	for r.Err == nil && r.Off < len(b) {
		p.Entries = append(p.Entries, r.entry())
	}
	if uint64(len(p.Entries)) > p.High-p.First+1 {
		r.Fail("entries")
	}
	return p, r.End()
}

// A Receipt is a datagram to the origin of a log: so much of it has been applied.
type Receipt struct {
	From    uint64 // the sender's ID
	Life    uint64 // of the log
	Applied uint64
}

// AppendTo appends the datagram to dst.
func (p Receipt) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, ReceiptByte), p.From)
	dst = binary.LittleEndian.AppendUint64(dst, p.Life)
	return binary.AppendUvarint(dst, p.Applied)
}

// DecodeReceipt reads a datagram.
func DecodeReceipt(b []byte) (Receipt, error) {
	r := newReader("receipt", b)
	r.lead(ReceiptByte)
	p := Receipt{From: r.Uint64("sender"), Life: r.NonZero("life"), Applied: r.Uvarint("applied")}
	return p, r.End()
}

// A Known is how far a member has come with a log.
type Known struct {
	Log
	Sequence uint64
}

// AppendRecall appends the payload of a recall: what its sender has, in order of log.
func AppendRecall(dst []byte, known []Known) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(known)))
	for _, k := range known {
		dst = binary.AppendUvarint(k.Log.append(dst), k.Sequence)
	}
	return dst
}

// DecodeRecall reads the payload of a recall. b is not retained.
func DecodeRecall(b []byte) ([]Known, error) {
	r := newReader("recall", b)
	n := r.Count("number", 17)
	known := make([]Known, 0, n)
	for range n {
		k := Known{Log: r.log(), Sequence: r.Uvarint("known")}
		if k.Sequence == 0 || len(known) > 0 && known[len(known)-1].Log.compare(k.Log) >= 0 {
			r.Fail("order")
		}
		known = append(known, k)
	}
	return known, r.End()
}

// A Part is what an answer to a recall has of a log.
type Part struct {
	Log
	Floor uint64 // entries up to this one are forgotten
	// Age is for how many seconds the newest of these has been known; 0 if Floor is.
	Age     uint64
	First   uint64 // the first of Entries, or what would be next
	Entries []Invalidation
}

// Logs answers a recall: the parts of logs that the asker lacks.
type Logs struct {
	More  bool // there is more to recall
	Parts []Part
}

// AppendTo appends the payload to dst.
func (m Logs) AppendTo(dst []byte) []byte {
	more := byte(0)
	if m.More {
		more = 1
	}
	dst = binary.AppendUvarint(append(dst, more), uint64(len(m.Parts)))
	for _, p := range m.Parts {
		dst = binary.AppendUvarint(p.Log.append(dst), p.Floor)
		dst = binary.AppendUvarint(dst, p.Age)
		dst = binary.AppendUvarint(dst, p.First)
		dst = binary.AppendUvarint(dst, uint64(len(p.Entries)))
		for _, e := range p.Entries {
			dst = e.append(dst)
		}
	}
	return dst
}

// DecodeLogs reads the payload. b is not retained.
func DecodeLogs(b []byte) (Logs, error) {
	r := newReader("logs", b)
	more := r.Byte("more")
	if more > 1 {
		r.Fail("more")
	}
	m := Logs{More: more == 1}
	n := r.Count("number", 20)
	m.Parts = make([]Part, 0, n)
	for range n {
		p := Part{Log: r.log(), Floor: r.Uvarint("forgotten"), Age: r.Uvarint("age"), First: r.Uvarint("first")}
		if p.First <= p.Floor || p.First+maxEntries < p.First {
			r.Fail("first")
		}
		if p.Floor == 0 && p.Age != 0 {
			r.Fail("age")
		}
		k := r.Count("entries", 3)
		p.Entries = make([]Invalidation, 0, k)
		for range k {
			p.Entries = append(p.Entries, r.entry())
		}
		if k == 0 && p.Floor == 0 {
			r.Fail("entries")
		}
		m.Parts = append(m.Parts, p)
	}
	return m, r.End()
}

// maxEntries is more than a payload can have.
const maxEntries = MaxFrame

// signContext keeps a signature from being valid for anything else.
const signContext = "summarycache invalidation 1"

// signed is what is signed of an entry.
func (t Target) signed(id ID) []byte {
	b := id.Log.append([]byte(signContext))
	b = binary.LittleEndian.AppendUint64(b, id.Sequence)
	return append(append(b, t.lead()), t.Name...)
}

// sign makes the entry of that ID; without a key it is not signed.
func (t Target) sign(id ID, key ed25519.PrivateKey) Invalidation {
	e := Invalidation{Target: t}
	if len(key) == ed25519.PrivateKeySize {
		e.Signature = ed25519.Sign(key, t.signed(id))
	}
	return e
}

// genuine reports whether the owner of a key has signed an entry, or there is no key.
func (e Invalidation) genuine(id ID, key ed25519.PublicKey) bool {
	return len(key) != ed25519.PublicKeySize || ed25519.Verify(key, e.Target.signed(id), e.Signature)
}

func (l Log) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, l.Origin)
	return binary.LittleEndian.AppendUint64(dst, l.Life)
}

func (l Log) compare(m Log) int {
	return cmp.Or(cmp.Compare(l.Origin, m.Origin), cmp.Compare(l.Life, m.Life))
}

// bytes is how long an entry is, at most.
func (e Invalidation) bytes() int { return 1 + 3 + len(e.Name) + 1 + len(e.Signature) }

func (e Invalidation) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, e.lead()), uint64(len(e.Name)))
	dst = append(append(dst, e.Name...), byte(len(e.Signature)))
	return append(dst, e.Signature...)
}

// A reader also reads the fields that only messages of this package have.
type reader struct{ wire.Reader }

func newReader(message string, b []byte) *reader {
	return &reader{wire.Reader{Message: message, B: b}}
}

func (r *reader) lead(want byte) {
	if len(r.B) > MaxDatagram {
		r.Fail("length")
	}
	if r.Byte("kind") != want {
		r.Fail("kind")
	}
}

func (r *reader) log() Log { return Log{r.Uint64("origin"), r.NonZero("life")} }

func (r *reader) entry() (e Invalidation) {
	lead := r.Byte("kind")
	e.Kind, e.Soft = Kind(lead&^softBit), lead&softBit != 0
	n := r.Uvarint("name")
	if n > MaxName || e.Kind == 0 || e.Kind == Everything && n > 0 || e.Kind == Tag && n == 0 {
		r.Fail("name")
	}
	e.Name = string(r.Take("name", n))
	e.Signature = r.Signature()
	return e
}
