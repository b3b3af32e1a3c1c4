package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// memberlist trusts its messages: a header of 33 bytes makes it allocate room for a million members,
// a packet of 2 KB is decompressed to any size, and one message makes a live peer dead, permanently
// if it has the greatest incarnation. A screen reads every message first, and passes on only those
// that memberlist itself could have sent. It turns a death that others report into a suspicion, which
// a live peer refutes: further reports shorten the suspicion, but only this peer's own timer ends it.
//
//	packet ─▶ read ─▶ bounded ─▶ confirmed? ─▶ memberlist
//	stream ─▶ read ─▶ bounded ─▶     │ no
//	                                 ▼
//	                              waits: probed, and passed on when it answers

// Kinds of memberlist's messages.
const (
	MsgPing         = 0
	msgIndirectPing = 1
	MsgAck          = 2
	MsgSuspect      = 3
	msgAlive        = 4
	MsgDead         = 5
	MsgPushPull     = 6
	msgCompound     = 7
	msgNack         = 11
	msgChecksummed  = 12
	msgError        = 13

	listedMember = 0xff // not a message: an element of a list of members
)

// screened has the fields of the messages that are passed on. Peers never send memberlist's other
// messages: compressed, encrypted, and user messages.
var screened = map[byte][]string{
	MsgPing:         {"SeqNo", "Node", "SourceAddr", "SourcePort", "SourceNode"},
	msgIndirectPing: {"SeqNo", "Target", "Port", "Node", "Nack", "SourceAddr", "SourcePort", "SourceNode"},
	MsgAck:          {"SeqNo", "Payload"},
	msgNack:         {"SeqNo"},
	msgError:        {"Error"},
	MsgSuspect:      {"Incarnation", "Node", "From"},
	MsgDead:         {"Incarnation", "Node", "From"},
	msgAlive:        {"Incarnation", "Node", "Addr", "Port", "Meta", "Vsn"},
	MsgPushPull:     {"Nodes", "UserStateLen", "Join"},
	listedMember:    {"Name", "Addr", "Port", "Meta", "Incarnation", "State", "Vsn"},
}

// fieldBounds has the type of each field, in all messages, and its greatest value or length.
var fieldBounds = map[string]struct {
	kind valueKind
	most uint64
}{
	"Name": {kindText, exchange.MaxName}, "Node": {kindText, exchange.MaxName}, "From": {kindText, exchange.MaxName},
	"SourceNode": {kindText, exchange.MaxName},
	"Addr":       {kindText, 16}, "Target": {kindText, 16}, "SourceAddr": {kindText, 16},
	"Meta": {kindText, memberlist.MetaMaxSize}, "Vsn": {kindText, 6}, "Payload": {kindText, uint64(AnswerBytes)},
	"Error": {kindText, 1 << 10},
	"Port":  {kindNumber, math.MaxUint16}, "SourcePort": {kindNumber, math.MaxUint16},
	"SeqNo": {kindNumber, math.MaxUint32}, "Incarnation": {kindNumber, math.MaxUint32}, // see screen.bounded
	"State": {kindNumber, uint64(memberlist.StateLeft)}, "Nodes": {kindNumber, math.MaxInt32},
	"UserStateLen": {kindNumber, 0}, // this package sends no user state
	"Nack":         {kindFlag, 1}, "Join": {kindFlag, 1},
}

// Members are the members that this peer knows.
type Members interface {
	Known(name string) (m Known, ok bool)
	Count() int
	Sums(n int) []uint32 // of the live members and this peer, by RangeOf; of names and metadata
}

// Known is what this peer knows of a member.
type Known struct {
	Addr  netip.AddrPort
	Up    bool
	Left  bool      // it has announced, in its present life, that it is about to leave
	Since time.Time // when it came or went
}

// Memory is a budget: see gossip.Memory.
type Memory interface {
	Take(bytes int64) bool
	Give(bytes int64)
}

// Config has the settings of a [Screen], all of them required. Its functions may be called at any time.
type Config struct {
	Self    string         // this peer's name
	Cluster string         // and its cluster's, which may be empty
	Addr    netip.AddrPort // and address
	Most    int            // members
	Alone   bool           // this peer has no other through which to join
	Memory  Memory         // of streams
	Members Members

	Admit func(message []byte) // passes a message to memberlist
	// a peer that answered is no member, since there are too many
	Refused  func(name string, at netip.AddrPort, err error)
	Stranger func(cluster string, from netip.Addr) // a stream is of another cluster
	Probe    func(b []byte, to netip.AddrPort)     // sends a packet
	// StreamProbe hears that a probe came by a stream, as when packets are lost: one of the member of that name, or, if
	// that is empty, one that the member at the address has answered.
	StreamProbe func(member string, at netip.AddrPort)
	Doubt       func(name string)                     // a peer did not answer another one
	Suspected   func(name string, incarnation uint64) // another member suspects a peer
}

// A Screen checks all streams and packets of a node. Its methods may be called at any time, except
// those documented as called with the lock held.
type Screen struct {
	Header []byte // with which memberlist's packets and streams begin: its label
	cfg    Config
	begun  time.Time    // with the reading of a monotonic clock
	probed atomic.Int64 // when this peer was probed as a newcomer, in nanoseconds since begun; 0 if never

	mu sync.Mutex // guards the following fields

	// Of memory: see screenedConn.claim.
	used    int
	perHost map[netip.Addr]int

	// Of incarnations: see bounded.
	own     uint64    // at least this peer's incarnation
	refuted time.Time // when refute was last called
	refutes bool      // a call of refute is scheduled

	// Of peers that have answered: see enter.
	seen   map[string]sighting
	pruned time.Time

	newcomers // the peers that have not
}

// New returns a screen for a peer that begins now.
func New(cfg Config) *Screen {
	return &Screen{Header: HeaderOf(cfg.Cluster), cfg: cfg, begun: time.Now(), own: 1, perHost: make(map[netip.Addr]int), seen: make(map[string]sighting),
		newcomers: newcomers{entered: cfg.Alone, waiting: make(map[claimed]*newcomer), asked: make(map[uint32]*newcomer),
			listed: make(map[string]int)}}
}

var (
	errScreenMemory = errors.New("streams of membership exceed their memory limit")
	errIncarnation  = errors.New("an incarnation that no peer can have reached")
	errKind         = errors.New("a kind of message that peers do not send")
)

// checksumHead is the length of what precedes a message with a checksum.
const checksumHead = 5

// Packet screens a packet, without its label. It returns the packet for memberlist,
// changed in place.
func (s *Screen) Packet(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0]>>4 == Short {
		long, err := lengthen(b, s.cfg.Self)
		if err != nil {
			return nil, err
		}
		return long, s.message(long)
	}
	if len(b) >= checksumHead && b[0] == msgChecksummed {
		if crc32.ChecksumIEEE(b[checksumHead:]) != binary.BigEndian.Uint32(b[1:]) {
			return nil, fmt.Errorf("%w: wrong checksum", errNotPacked)
		}
		b = b[checksumHead:]
	}
	if len(b) < 2 || b[0] != msgCompound {
		return b, s.message(b)
	}
	return b, s.compound(b)
}

// compound screens a packet of several messages.
func (s *Screen) compound(b []byte) error {
	lengths, rest := b[2:], b[min(len(b), 2+2*int(b[1])):]
	for range b[1] {
		if len(lengths) < 2 {
			return fmt.Errorf("%w: lengths are missing", errNotPacked)
		}
		n := int(binary.BigEndian.Uint16(lengths))
		if n > len(rest) {
			return fmt.Errorf("%w: a part of %d bytes, %d are left", errNotPacked, n, len(rest))
		}
		if err := s.message(rest[:n]); err != nil {
			return err
		}
		lengths, rest = lengths[2:], rest[n:]
	}
	return nil
}

// AsksOthers returns the member of which a message of memberlist's asks another one, since it has not answered this peer;
// "" = it is another message.
func AsksOthers(b []byte) string {
	if len(b) == 0 || b[0] != msgIndirectPing {
		return ""
	}
	c, err := read(&unpacker{b: b, at: 1}, msgIndirectPing)
	if err != nil {
		return ""
	}
	return c.Name
}

// message screens one message of a packet, in place.
func (s *Screen) message(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: an empty message", errNotPacked)
	}
	if b[0] == MsgPushPull || b[0] == msgError || b[0] == listedMember || screened[b[0]] == nil {
		return fmt.Errorf("%w (%d)", errKind, b[0])
	}
	c, err := read(&unpacker{b: b, at: 1}, b[0])
	if err != nil {
		return err
	}
	switch b[0] {
	case MsgAck:
		s.answered(uint32(c.number), c.answer)
	case msgIndirectPing:
		s.cfg.Doubt(c.Name) // the member that asks got no answer of it
	case MsgPing:
		if c.number >= newcomerNumbers {
			s.probed.Store(max(1, time.Since(s.begun).Nanoseconds()))
		}
	case MsgSuspect, msgAlive, MsgDead:
		if err := s.bounded(&c, b, b[0] == msgAlive); err != nil {
			return err
		}
		if b[0] != msgAlive && c.from != s.cfg.Self {
			s.cfg.Suspected(c.Name, c.Incarnation)
		}
		switch {
		case b[0] == msgAlive && !s.confirmed(c):
			s.wait(c, false)
			b[0] = msgNack // of no probe, so that memberlist ignores it and reads the rest of the packet
		case b[0] == MsgDead && (c.from != c.Name || !s.farewell(c.Name)):
			b[0] = MsgSuspect // it has the same fields
		}
	}
	return nil
}

// A Claim has the fields of a message about a peer, of a probe or an answer, or of the header of a
// list of members.
type Claim struct {
	Name        string
	from        string
	source      string // of a probe: the peer that sent it
	Incarnation uint64
	beginsAt    int    // offset of the incarnation
	endsAt      int    // offset of its end
	number      uint64 // of a probe
	answer      []byte // to a probe
	state       memberlist.NodeStateType
	stateAt     int // offset of the state
	members     int // in the list

	// Of a live peer. meta and versions are slices of the message.
	Addr           netip.AddrPort
	Meta, Versions []byte
}

// read reads the fields of a message of a kind.
func read(u *unpacker, kind byte) (c Claim, err error) {
	n, err := u.mapLen()
	if err != nil {
		return c, err
	}
	for range n {
		_, key, err := u.value(kindText, 16)
		if err != nil {
			return c, err
		}
		if !slices.Contains(screened[kind], string(key)) {
			return c, fmt.Errorf("%w: field %q", errNotPacked, key)
		}
		begins, bounds := u.at, fieldBounds[string(key)]
		number, text, err := u.value(bounds.kind, bounds.most)
		if err != nil {
			return c, fmt.Errorf("field %s: %w", key, err)
		}
		switch string(key) {
		case "Name", "Node":
			c.Name = string(text)
		case "From":
			c.from = string(text)
		case "SourceNode":
			c.source = string(text)
		case "Addr":
			addr, _ := netip.AddrFromSlice(text)
			c.Addr = netip.AddrPortFrom(addr.Unmap(), c.Addr.Port())
		case "Port":
			c.Addr = netip.AddrPortFrom(c.Addr.Addr(), uint16(number))
		case "Incarnation":
			c.Incarnation, c.beginsAt, c.endsAt = number, begins, u.at
		case "SeqNo":
			c.number = number
		case "State":
			c.state, c.stateAt = memberlist.NodeStateType(number), u.at-1
		case "Meta":
			c.Meta = text
		case "Vsn":
			c.Versions = text
		case "Payload":
			c.answer = text
		case "Nodes":
			c.members = int(number)
		}
	}
	return c, nil
}

// farewell reports whether the peer itself has announced that it is about to leave.
func (s *Screen) farewell(name string) bool {
	m, _ := s.cfg.Members.Known(name)
	return m.Left
}
