package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// memberlist probes another peer every second. Most of these probes tell nothing: in a small cluster the
// peer has just answered one, and in a quiet one nobody needs to know so soon. The node's transport
// answers such a probe itself, which to memberlist is as if it had not probed.
//
// A packet of a peer proves that the peer can be heard, but not that it hears, nor when the packet was
// sent. So only an answer counts as life: the answer to a probe or, in a probe, the token that this peer put
// into its last answer. By the latter one probe and its answer prove both peers alive (PROTOCOL.md 2.4).

const (
	restAfter = 4 * time.Second  // without an advert sent or a doubt, this peer is at rest
	tokenTime = 16 * time.Second // tokens change that often; the last two are valid
	aFew      = 16               // others
)

// Life records which peers have proven that they live. Its methods may be called at any time.
type Life struct {
	key [32]byte // of tokens
	max int      // peers
	// After a proof the only other peer is not probed for so long: by both, some two and a half of memberlist's
	// intervals. One of several is not, at rest, if this peer has probed another one: less than two intervals.
	// One of a few is not spared twice in a row: its turns could coincide with those that are spared for long.
	ofOne, ofSeveral time.Duration

	mu    sync.Mutex
	peers map[netip.AddrPort]*proof
	last  struct { // probe of this peer
		number   uint32
		to       netip.AddrPort
		at       time.Time
		answered bool
	}
	news time.Time // when an advert was last sent, or a peer doubted
}

// proof is what a peer has proven.
type proof struct {
	at     time.Time // zero if it is doubted since
	number uint32    // of its last probe with a token; 0 if it has answered a probe since
	token  uint32    // in its last answer; 0 if there was none, or it was sent back
	spared bool      // its last probe was not sent, as one of several
}

// NewLife returns the record of at most so many peers, of which memberlist probes one per interval.
func NewLife(most int, interval time.Duration) *Life {
	l := &Life{max: most, ofOne: 12 * interval / 5, ofSeveral: 19 * interval / 10, peers: make(map[netip.AddrPort]*proof)}
	rand.Read(l.key[:]) // does not fail
	return l
}

// Spare reports whether a probe of a peer need not be sent. others is how many peers there are.
func (l *Life) Spare(to netip.AddrPort, others int32, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[to]
	switch {
	case p == nil || p.at.IsZero():
		return false
	case others == 1:
		return now.Sub(p.at) < l.ofOne
	}
	twice := p.spared && others <= aFew
	p.spared = !twice && l.last.answered && now.Sub(l.last.at) < l.ofSeveral && now.Sub(l.news) > restAfter
	return p.spared
}

// Probes records that a probe is sent, in the short form, and appends the token of the peer's last answer,
// if it had one, and a sum.
func (l *Life) Probes(b []byte, to netip.AddrPort, sum uint32, now time.Time) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.number, l.last.to, l.last.at, l.last.answered = binary.LittleEndian.Uint32(b[1:]), to, now, false
	if p := l.peers[to]; p != nil && p.token != 0 {
		b[0] |= WithToken
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, p.token), sum)
		p.token = 0 // if the answer is lost, the next probe proves nothing
	}
	return b
}

// Hear learns what a probe or an answer in the short form proves. It returns the sum in a probe that proves
// something; otherwise nil.
func (l *Life) Hear(b []byte, from netip.AddrPort, now time.Time) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	number := binary.LittleEndian.Uint32(b[1:])
	switch b[0] & 0xf {
	case MsgPing | WithToken:
		token := binary.LittleEndian.Uint32(b[ShortHead+shortTag:])
		if token != l.token(from, now) && token != l.token(from, now.Add(-tokenTime)) {
			return nil
		}
		if p := l.proved(from, number, now); p != nil {
			return b[ShortHead+shortTag+tokenBytes:]
		}
	case MsgAck, MsgAck | WithToken:
		if number != l.last.number || from != l.last.to || l.last.answered {
			return nil
		}
		l.last.answered = true
		p := l.proved(from, 0, now)
		if p.token = 0; b[0]&WithToken != 0 {
			p.token = binary.LittleEndian.Uint32(b[ShortHead:])
		}
	}
	return nil
}

// proved records a proof of a peer: an answer, or a probe of a number with a token. It returns nil for a probe
// that comes again, which proves nothing, whoever sends it.
func (l *Life) proved(peer netip.AddrPort, number uint32, now time.Time) *proof {
	p := l.peers[peer]
	switch {
	case p == nil:
		if len(l.peers) >= l.max {
			clear(l.peers) // most have proven nothing for long
		}
		p = new(proof)
		l.peers[peer] = p
	case number != 0 && number <= p.number:
		return nil
	}
	p.at, p.number = now, number
	return p
}

// Answers appends to an answer of the sum alone the token that proves that it was received.
func (l *Life) Answers(b []byte, to netip.AddrPort, now time.Time) []byte {
	if len(b) != ShortHead+SumBytes {
		return b
	}
	b[0] |= WithToken
	return slices.Insert(b, ShortHead, binary.LittleEndian.AppendUint32(nil, l.token(to, now))...)
}

// token returns what a peer has to repeat to prove that it got an answer of this time.
func (l *Life) token(peer netip.AddrPort, now time.Time) uint32 {
	h := hmac.New(sha256.New, l.key[:])
	b, _ := peer.MarshalBinary()
	h.Write(binary.LittleEndian.AppendUint64(b, uint64(now.Unix())/uint64(tokenTime/time.Second)))
	return binary.LittleEndian.Uint32(h.Sum(nil))
}

// Doubt makes the next probe of a peer travel, whatever it has proven, and for a while those of others, who may
// be asked what they know of it.
func (l *Life) Doubt(peer netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.news = time.Now()
	if p := l.peers[peer]; p != nil {
		p.at = time.Time{}
	}
}

// Busy records that an advert was sent: where these are sent, probes cost little beside them.
func (l *Life) Busy(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.news = now
}
