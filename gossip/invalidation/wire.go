package invalidation

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
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

// ErrMalformed is wrapped by the errors of decoders.
var ErrMalformed = errors.New("malformed")

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
	r := reader{message: "push", b: b}
	r.lead(PushByte)
	p := Push{Log: r.log(), High: r.uvarint("newest"), First: r.uvarint("first")}
	if p.High == 0 || p.First == 0 || p.First-1 > p.High {
		r.fail("first")
	}
	for r.err == nil && r.off < len(b) {
		p.Entries = append(p.Entries, r.entry())
	}
	if uint64(len(p.Entries)) > p.High-p.First+1 {
		r.fail("entries")
	}
	return p, r.end()
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
	r := reader{message: "receipt", b: b}
	r.lead(ReceiptByte)
	p := Receipt{From: r.uint64("sender"), Life: r.life(), Applied: r.uvarint("applied")}
	return p, r.end()
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
	r := reader{message: "recall", b: b}
	n := r.count("number", 17)
	known := make([]Known, 0, n)
	for range n {
		k := Known{Log: r.log(), Sequence: r.uvarint("known")}
		if k.Sequence == 0 || len(known) > 0 && known[len(known)-1].Log.compare(k.Log) >= 0 {
			r.fail("order")
		}
		known = append(known, k)
	}
	return known, r.end()
}

// A Part is what a member tells of a log.
type Part struct {
	Log
	Floor uint64 // so many are forgotten
	// Age is for how many seconds the newest of those has been known; 0 if Floor is.
	Age     uint64
	First   uint64 // the first of Entries, or what would be next
	Entries []Invalidation
}

// Logs answers a recall: of logs that the asker lacks a part of, that part.
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
	r := reader{message: "logs", b: b}
	more := r.byte("more")
	if more > 1 {
		r.fail("more")
	}
	m := Logs{More: more == 1}
	n := r.count("number", 20)
	m.Parts = make([]Part, 0, n)
	for range n {
		p := Part{Log: r.log(), Floor: r.uvarint("forgotten"), Age: r.uvarint("age"), First: r.uvarint("first")}
		if p.First <= p.Floor || p.First+maxEntries < p.First {
			r.fail("first")
		}
		if p.Floor == 0 && p.Age != 0 {
			r.fail("age")
		}
		k := r.count("entries", 3)
		p.Entries = make([]Invalidation, 0, k)
		for range k {
			p.Entries = append(p.Entries, r.entry())
		}
		if k == 0 && p.Floor == 0 {
			r.fail("entries")
		}
		m.Parts = append(m.Parts, p)
	}
	return m, r.end()
}

// maxEntries is more than a payload can have.
const maxEntries = MaxFrame

// signContext keeps signatures from being taken for anything else.
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

// genuine reports whether an entry is of whoever has the key; without one it is.
func (e Invalidation) genuine(id ID, key ed25519.PublicKey) bool {
	return len(key) != ed25519.PublicKeySize || ed25519.Verify(key, e.Target.signed(id), e.Signature)
}

func (l Log) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, l.Origin)
	return binary.LittleEndian.AppendUint64(dst, l.Life)
}

func (l Log) compare(m Log) int {
	switch {
	case l == m:
		return 0
	case l.Origin < m.Origin || l.Origin == m.Origin && l.Life < m.Life:
		return -1
	}
	return 1
}

func (e Invalidation) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, e.lead()), uint64(len(e.Name)))
	dst = append(append(dst, e.Name...), byte(len(e.Signature)))
	return append(dst, e.Signature...)
}

// A reader takes fields off the front of a message. The first field that is wrong
// sticks: everything read after it is zero.
type reader struct {
	message string
	b       []byte
	off     int
	err     error
}

func (r *reader) fail(field string) {
	if r.err == nil {
		r.err = fmt.Errorf("invalidation: %s: %s at byte %d: %w", r.message, field, r.off, ErrMalformed)
	}
}

func (r *reader) take(field string, n uint64) []byte {
	if r.err != nil || uint64(len(r.b)-r.off) < n {
		r.fail(field)
		return nil
	}
	b := r.b[r.off : r.off+int(n)]
	r.off += int(n)
	return b
}

func (r *reader) byte(field string) byte {
	if b := r.take(field, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) lead(want byte) {
	if len(r.b) > MaxDatagram {
		r.fail("length")
	}
	if r.byte("kind") != want {
		r.fail("kind")
	}
}

func (r *reader) uint64(field string) uint64 {
	if b := r.take(field, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uvarint(field string) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.off:])
	if n <= 0 || n > 1 && r.b[r.off+n-1] == 0 {
		r.fail(field)
		return 0
	}
	r.off += n
	return v
}

// count reads how many of at least so many bytes each follow.
func (r *reader) count(field string, each int) int {
	n := r.uvarint(field)
	if n > uint64(len(r.b)-r.off)/uint64(each) {
		r.fail(field)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) life() uint64 {
	life := r.uint64("life")
	if life == 0 {
		r.fail("life")
	}
	return life
}

func (r *reader) log() Log { return Log{r.uint64("origin"), r.life()} }

func (r *reader) entry() (e Invalidation) {
	lead := r.byte("kind")
	e.Kind, e.Soft = Kind(lead&^softBit), lead&softBit != 0
	n := r.uvarint("name")
	if n > MaxName || e.Kind == 0 || e.Kind == Everything && n > 0 || e.Kind == Tag && n == 0 {
		r.fail("name")
	}
	e.Name = string(r.take("name", n))
	switch n := r.byte("signature"); n {
	case 0:
	case ed25519.SignatureSize:
		e.Signature = append([]byte(nil), r.take("signature", uint64(n))...)
	default:
		r.fail("signature")
	}
	return e
}

func (r *reader) end() error {
	if r.err == nil && r.off != len(r.b) {
		r.fail("trailing bytes")
	}
	return r.err
}
