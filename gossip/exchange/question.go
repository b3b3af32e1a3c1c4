package exchange

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// What a question and its reply have at most, so that a reply fits a packet of any network.
const (
	MaxKeys    = 16
	MaxHolders = 32
)

const (
	// question: a light peer asks a full one who has the objects of some keys.
	question advertKind = 8
	// reply: the answer to it.
	reply advertKind = 9
)

// A Question is the datagram by which a light peer asks a full one who has the objects of some keys.
type Question struct {
	Number uint32 // hard to guess
	Keys   []digest.Key
}

// A Reply is the datagram that answers a [Question].
type Reply struct {
	Number  uint32 // of the question
	NotYet  bool   // the sender does not have all digests
	Holders []Holder
}

// Questions counts the questions that a light peer asks full ones: which peers have an object.
type Questions struct {
	Asked      int64 `json:"asked"`      // questions sent
	Unanswered int64 `json:"unanswered"` // of those, not answered in time
	NotYet     int64 `json:"not_yet"`    // of those, answered by a peer that did not have all digests yet
	Named      int64 `json:"named"`      // peers named in answers that were asked for the object
	False      int64 `json:"false"`      // of those, the ones that did not have it
	Misled     int64 `json:"misled"`     // of those, the ones that another full peer did not name
	// answers that named nobody, though a peer that another one named had the object
	Withheld int64 `json:"withheld"`
	Answered int64 `json:"answered"` // questions of others answered
	Deferred int64 `json:"deferred"` // of those, with "not yet"
}

// A Holder is a peer whose digest has a key.
type Holder struct {
	Peer           ID
	Key            uint8 // its place in the question
	FalsePositives uint8 // of the digest; see [Holder.FalsePositiveRate]
	Age            uint8 // of the digest; see [Holder.DigestAge]
}

// A digest's rate of false positives is 2^(-n/rateSteps), and its age n times ageStep, for a byte n.
const (
	rateSteps = 8
	ageStep   = 4 * time.Second
)

// holderOf returns the holder of the key at a place in a question, by a digest of that rate of false positives and age.
func holderOf(peer ID, key int, falsePositives float64, age time.Duration) Holder {
	n := min(max(-rateSteps*math.Log2(max(falsePositives, 1e-9)), 0), math.MaxUint8)
	return Holder{peer, uint8(key), uint8(n), uint8(min(age/ageStep, math.MaxUint8))}
}

// FalsePositiveRate returns the rate of false positives of the holder's digest, from 0 to 1.
func (h Holder) FalsePositiveRate() float64 { return math.Exp2(-float64(h.FalsePositives) / rateSteps) }

// DigestAge returns the time since the holder's digest was known to be current.
func (h Holder) DigestAge() time.Duration { return time.Duration(h.Age) * ageStep }

// IsQuestion and IsReply report whether a datagram is a [Question] or a [Reply], perhaps a malformed one.
func IsQuestion(b []byte) bool { return len(b) > 0 && b[0] == question.first() }
func IsReply(b []byte) bool    { return len(b) > 0 && b[0] == reply.first() }

// QuestionBytes is the length of a question for so many keys.
func QuestionBytes(keys int) int { return 5 + 8*keys }

// AppendTo appends the datagram to dst.
func (q Question) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, question.first()), q.Number)
	for _, k := range q.Keys {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(k))
	}
	return dst
}

// DecodeQuestion reads a datagram. b is not retained.
func DecodeQuestion(b []byte) (Question, error) {
	r := newReader("question", b)
	r.kind(question)
	q := Question{Number: r.Uint32("number")}
	for n := 0; r.Err == nil && (r.Off < len(b) || n == 0); n++ {
		if n == MaxKeys {
			r.Fail("keys")
		}
		q.Keys = append(q.Keys, digest.Key(r.Uint64("keys")))
	}
	if r.Err != nil {
		return Question{}, r.Err
	}
	return q, nil
}

// AppendTo appends the datagram to dst.
func (a Reply) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, reply.first()), a.Number)
	flags := byte(0)
	if a.NotYet {
		flags = 1
	}
	dst = append(dst, flags)
	for _, h := range a.Holders {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.Peer))
		dst = append(dst, h.Key, h.FalsePositives, h.Age)
	}
	return dst
}

// DecodeReply reads a datagram. b is not retained.
func DecodeReply(b []byte) (Reply, error) {
	r := newReader("reply", b)
	r.kind(reply)
	a := Reply{Number: r.Uint32("number")}
	flags := r.Byte("flags")
	if a.NotYet = flags == 1; flags > 1 {
		r.Fail("flags")
	}
	for r.Err == nil && r.Off < len(b) {
		h := Holder{ID(r.Uint64("peer")), r.Byte("key"), r.Byte("rate"), r.Byte("age")}
		if h.Key >= MaxKeys || len(a.Holders) == MaxHolders || a.NotYet {
			r.Fail("holders")
		}
		a.Holders = append(a.Holders, h)
	}
	if r.Err != nil {
		return Reply{}, r.Err
	}
	return a, nil
}
