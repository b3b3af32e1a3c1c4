package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// memberlist believes what its messages promise: a header of 33 bytes makes it allocate
// room for a million members, a packet of 2 KB is expanded to what it will be, and one
// message makes a live peer dead, for good with the greatest incarnation. A screen reads
// everything first, and lets through what memberlist itself would have sent. What others
// say of a death it makes a suspicion: each peer finds deaths itself, and a live one
// refutes meanwhile. Only a suspicion that has stood for a while is ended by what others say.

// Kinds of messages of memberlist's.
const (
	msgPing         = 0
	msgIndirectPing = 1
	msgAck          = 2
	msgSuspect      = 3
	msgAlive        = 4
	msgDead         = 5
	msgPushPull     = 6
	msgCompound     = 7
	msgNack         = 11
	msgChecksummed  = 12
	msgError        = 13
)

// What is let through of a field.
type fieldKind uint8

const (
	isName        fieldKind = iota // of a peer; empty in a ping to whoever is there
	isAddr                         // 4 or 16 bytes
	isPort                         //
	isIncarnation                  // see screen.believable
	isNumber                       // of 32 bits
	isState                        // alive, suspect, dead or left
	isMeta                         //
	isVersions                     //
	isSum                          // what an answer to a probe carries
	isReason                       // of an error
	isFlag                         //
	isCount                        // of members
	isNothing                      // the length of a state that this package does not send
)

// screened are the fields of the messages that are let through. All others (compressed
// and encrypted ones, and long ones of users) are never sent by a peer.
var screened = map[byte]map[string]fieldKind{
	msgPing:         {"SeqNo": isNumber, "Node": isName, "SourceAddr": isAddr, "SourcePort": isPort, "SourceNode": isName},
	msgIndirectPing: {"SeqNo": isNumber, "Target": isAddr, "Port": isPort, "Node": isName, "Nack": isFlag, "SourceAddr": isAddr, "SourcePort": isPort, "SourceNode": isName},
	msgAck:          {"SeqNo": isNumber, "Payload": isSum},
	msgNack:         {"SeqNo": isNumber},
	msgError:        {"Error": isReason},
	msgSuspect:      {"Incarnation": isIncarnation, "Node": isName, "From": isName},
	msgDead:         {"Incarnation": isIncarnation, "Node": isName, "From": isName},
	msgAlive:        {"Incarnation": isIncarnation, "Node": isName, "Addr": isAddr, "Port": isPort, "Meta": isMeta, "Vsn": isVersions},
	msgPushPull:     {"Nodes": isCount, "UserStateLen": isNothing, "Join": isFlag},
}

// memberFields are those of each member in a list.
var memberFields = map[string]fieldKind{
	"Name": isName, "Addr": isAddr, "Port": isPort, "Meta": isMeta, "Incarnation": isIncarnation, "State": isState, "Vsn": isVersions,
}

// Bounds of what the streams of memberlist may take, in bytes of memory: in all, and for
// one address. A list of members takes four times its length (it is read into a buffer
// that doubles, and decoded from there), and the list in answer a kilobyte a member.
const (
	screenMemory = 24 << 20
	screenHost   = 8 << 20
	screenList   = 4
	screenAnswer = 1 << 10
)

// A refutation adds one to an incarnation, at most as often as a peer is suspected. So
// it stays below where it was first seen, and these: at once, and for each second since.
const (
	incarnationSlack = 1024
	incarnationRate  = 16
	incarnationFirst = math.MaxInt32 // greatest of a peer not seen before
)

// A screen is used by all streams and packets of a node. Its methods may be called at
// any time.
type screen struct {
	max     int // members
	current func() memberTable
	begun   time.Time // this peer's incarnation was 1 then

	newcomers newcomers

	mu      sync.Mutex
	used    int
	perHost map[netip.Addr]int
	first   map[string]sighting
	pruned  time.Time
}

// A sighting is the incarnation that a peer had when it first answered, and that in which
// it has been suspected since a time; the zero Time if it is not, as far as was heard from
// others.
type sighting struct {
	incarnation, suspected uint64
	at, answered, since    time.Time
	host                   netip.Addr // where it answered, see hostOf
}

// A live peer refutes a suspicion within this time.
const refuted = 3 * time.Second

func newScreen(most int, current func() memberTable) *screen {
	return &screen{max: most, current: current, begun: time.Now(), perHost: make(map[netip.Addr]int), first: make(map[string]sighting),
		newcomers: newcomers{waiting: make(map[claimed]*newcomer), asked: make(map[uint32]*newcomer), bySource: make(map[netip.Addr]int)}}
}

var (
	errScreenMemory = errors.New("streams of membership take all the memory that they may")
	errMembers      = errors.New("more members than Limits.Members")
	errIncarnation  = errors.New("an incarnation that no peer can have reached")
	errKind         = errors.New("a kind of message that peers do not send")
)

// packet returns of a packet from an address, without its label, what is for memberlist,
// in place, or why it is not.
func (s *screen) packet(b []byte, from netip.Addr) ([]byte, error) {
	if len(b) >= 5 && b[0] == msgChecksummed {
		if crc32.ChecksumIEEE(b[5:]) != binary.BigEndian.Uint32(b[1:]) {
			return nil, fmt.Errorf("%w: wrong checksum", errNotPacked)
		}
		b = b[5:]
	}
	if len(b) < 2 || b[0] != msgCompound {
		return b, s.message(b, from)
	}
	return b, s.compound(b, from)
}

// compound screens the messages of a packet that has several.
func (s *screen) compound(b []byte, from netip.Addr) error {
	lengths, rest := b[2:], b[min(len(b), 2+2*int(b[1])):]
	for range b[1] {
		if len(lengths) < 2 {
			return fmt.Errorf("%w: lengths are missing", errNotPacked)
		}
		n := int(binary.BigEndian.Uint16(lengths))
		if n > len(rest) {
			return fmt.Errorf("%w: a part of %d bytes, %d are left", errNotPacked, n, len(rest))
		}
		if err := s.message(rest[:n], from); err != nil {
			return err
		}
		lengths, rest = lengths[2:], rest[n:]
	}
	return nil
}

// message screens one message of a packet.
func (s *screen) message(b []byte, from netip.Addr) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: an empty message", errNotPacked)
	}
	switch b[0] {
	case msgPing, msgIndirectPing, msgAck, msgNack:
		c, err := s.fields(&unpacker{b: b, at: 1}, screened[b[0]])
		if err == nil && b[0] == msgAck {
			s.answered(uint32(c.number))
		}
		return err
	case msgSuspect, msgAlive, msgDead:
		c, err := s.fields(&unpacker{b: b, at: 1}, screened[b[0]])
		if err == nil {
			err = s.believable(c.name, c.incarnation, b[0] == msgAlive)
		}
		if err == nil && b[0] == msgAlive && !s.known(c.name) {
			s.wait(c, from)
			b[0] = msgNack // of no probe: to keep the others of its packet
		}
		if b[0] == msgDead && !(c.from == c.name && s.farewell(c.name)) && (c.from == c.name || !s.unrefuted(c.name)) {
			b[0] = msgSuspect // it has the same fields
		}
		return err
	}
	return fmt.Errorf("%w (%d)", errKind, b[0])
}

// noteFarewell notes that a peer is about to leave if b says so, and comes from the
// address of that peer. It reports whether b may be used: it is no farewell, or a true one.
func noteFarewell(table memberTable, b []byte, from netip.AddrPort) bool {
	if len(b) == 0 || b[0]&0xf != byte(exchange.Farewell) {
		return true
	}
	a, err := exchange.DecodeAdvert(b)
	if err != nil {
		return true
	}
	for name, m := range table {
		if exchange.IDOf(name) != a.Head.Origin {
			continue
		}
		if info := m.info.Load(); info.addr == from && info.meta.Incarnation == a.Head.Version.Incarnation {
			m.left.Store(info.meta.Incarnation)
			return true
		}
	}
	return false
}

// farewell reports whether the peer itself said that it is about to leave.
func (s *screen) farewell(name string) bool {
	m := s.current()[name]
	return m != nil && m.hasLeft(m.info.Load())
}

// A claim is what a message says of a peer, or how many members of a list follow it.
type claim struct {
	name, from  string
	incarnation uint64
	number      uint64 // of a probe
	state       memberlist.NodeStateType
	stateAt     int // where the byte of it is
	members     int

	// Of a live peer. They are read from the message, and end with it.
	addr           netip.AddrPort
	meta, versions []byte
}

// fields screens a map.
func (s *screen) fields(u *unpacker, want map[string]fieldKind) (c claim, err error) {
	n, err := u.mapLen()
	if err != nil {
		return c, err
	}
	if n > len(want) {
		return c, fmt.Errorf("%w: %d fields", errNotPacked, n)
	}
	for range n {
		key, err := u.text(16)
		if err != nil {
			return c, err
		}
		kind, ok := want[string(key)]
		if !ok {
			return c, fmt.Errorf("%w: field %q", errNotPacked, key)
		}
		var v uint64
		switch kind {
		case isName:
			var b []byte
			b, err = u.text(exchange.MaxName)
			switch string(key) {
			case "Name", "Node":
				c.name = string(b)
			case "From":
				c.from = string(b)
			}
		case isAddr:
			var b []byte
			b, err = u.text(16)
			addr, _ := netip.AddrFromSlice(b)
			c.addr = netip.AddrPortFrom(addr.Unmap(), c.addr.Port())
		case isPort:
			v, err = u.uint(math.MaxUint16)
			c.addr = netip.AddrPortFrom(c.addr.Addr(), uint16(v))
		case isIncarnation:
			c.incarnation, err = u.uint(math.MaxUint32)
		case isNumber:
			c.number, err = u.uint(math.MaxUint32)
		case isState:
			v, err = u.uint(uint64(memberlist.StateLeft))
			c.state, c.stateAt = memberlist.NodeStateType(v), u.at-1
		case isMeta:
			c.meta, err = u.text(memberlist.MetaMaxSize)
		case isVersions:
			c.versions, err = u.text(6)
		case isSum:
			_, err = u.text(sumBytes)
		case isReason:
			_, err = u.text(1 << 10)
		case isFlag:
			_, err = u.boolean()
		case isCount:
			v, err = u.uint(2 * uint64(s.max)) // the dead are in it for a while
			c.members = int(v)
		case isNothing:
			_, err = u.uint(0)
		}
		if err != nil {
			return c, fmt.Errorf("field %s: %w", key, err)
		}
	}
	return c, nil
}

// believable reports whether a peer can have reached this incarnation by refuting
// suspicions. Otherwise one message would make it dead for good: it refutes by the next
// greater one, and after the greatest there is none. What is said of this peer itself is
// bounded nearly as at those that have seen it from its start: it must refute whatever they
// believe of its death, and by one that they believe. Those that come much later believe less.
func (s *screen) believable(name string, incarnation uint64, alive bool) error {
	if !exchange.ValidName(name) {
		return fmt.Errorf("%w: %q is no name", errNotPacked, name)
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.first[name]
	self := name == s.newcomers.self
	if self {
		seen, ok = sighting{incarnation: 1 + incarnationSlack/2, at: s.begun}, true
	}
	greatest := uint64(incarnationFirst)
	if ok {
		greatest = seen.incarnation + incarnationSlack + uint64(incarnationRate*now.Sub(seen.at).Seconds())
		if alive {
			greatest += incarnationSlack // so that the greatest that is believed of a death can be refuted
		}
	}
	switch {
	case incarnation > greatest:
		return fmt.Errorf("%w: %s, %d; at most %d", errIncarnation, name, incarnation, greatest)
	case ok && !self:
		if alive && incarnation > seen.suspected {
			seen.since = time.Time{}
		} else if !alive && seen.since.IsZero() {
			seen.suspected, seen.since = incarnation, now
		}
		s.first[name] = seen
	}
	return nil
}

// unrefuted reports whether a peer has been suspected for so long that it would have
// refuted that if it lived.
func (s *screen) unrefuted(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.first[name]
	return !seen.since.IsZero() && time.Since(seen.since) >= refuted
}

// For so long memberlist remembers a dead peer, about.
const deadRemembered = 45 * time.Second

// prune forgets the names that are no members, or dead ones, at most once a second, and
// reports whether there is room then.
func (s *screen) prune(now time.Time) bool {
	if now.Sub(s.pruned) < time.Second {
		return false
	}
	s.pruned = now
	table := s.current()
	for name, seen := range s.first {
		m := table[name]
		if m == nil && now.Sub(seen.at) > time.Second || m != nil && !m.up.Load() && now.Sub(m.info.Load().since) > deadRemembered {
			delete(s.first, name)
		}
	}
	return len(s.first) < s.max
}
