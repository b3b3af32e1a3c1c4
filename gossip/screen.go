package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
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
	isIncarnation                  // see screen.bounded
	isNumber                       // of 32 bits
	isState                        // alive, suspect, dead or left
	isMeta                         //
	isVersions                     //
	isAnswer                       // what an answer to a probe carries
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
	msgAck:          {"SeqNo": isNumber, "Payload": isAnswer},
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

// Incarnations that others state are bounded, so that each can be refuted by a greater one: see
// screen.bounded. A peer that suffers no attack stays below the first for all its life.
const (
	incarnationFirst = 1 << 20         // greatest that is believed in 2020
	incarnationRate  = 4               // by so many more each second since
	incarnationLast  = 1<<32 - 1<<28   // greatest that is ever believed: until 2051
	refutesEvery     = time.Second / 2 // at most, what others should know to be refuted
)

// A screen is used by all streams and packets of a node. Its methods may be called at
// any time.
type screen struct {
	max     int // members
	current func() memberTable
	begun   time.Time // has the reading of a clock that is never put back

	newcomers newcomers
	probed    atomic.Int64 // when this peer was probed as a newcomer, in nanoseconds since begun; 0 if never

	mu      sync.Mutex
	own     uint64    // this peer's incarnation is not greater
	refuted time.Time // when this peer last refuted what others should know to be refuted
	refutes bool      // it will again
	used    int
	perHost map[netip.Addr]int
	first   map[string]sighting
	pruned  time.Time
}

// A sighting is when a peer last answered, and the incarnation in which it has been suspected
// since a time; the zero Time if it is not, as far as was heard from others.
type sighting struct {
	suspected       uint64
	answered, since time.Time
	at              netip.AddrPort // where it answered
	meta            metaHash       // and what
}

// A live peer refutes a suspicion within this time.
const refuted = 3 * time.Second

func newScreen(most int, current func() memberTable) *screen {
	return &screen{max: most, current: current, begun: time.Now(), own: 1, perHost: make(map[netip.Addr]int), first: make(map[string]sighting),
		newcomers: newcomers{waiting: make(map[claimed]*newcomer), asked: make(map[uint32]*newcomer), bySource: make(map[netip.Addr]int), listed: make(map[string]int)}}
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
		switch {
		case err != nil:
		case b[0] == msgAck:
			s.answered(uint32(c.number), c.answer)
		case b[0] == msgPing && c.number >= newcomerNumbers:
			s.probed.Store(max(1, time.Since(s.begun).Nanoseconds()))
		}
		return err
	case msgSuspect, msgAlive, msgDead:
		c, err := s.fields(&unpacker{b: b, at: 1}, screened[b[0]])
		if err == nil {
			err = s.bounded(&c, b, b[0] == msgAlive)
		}
		if err == nil && b[0] == msgAlive && !s.confirmed(c) {
			s.wait(c, from, false)
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
	beginsAt    int    // where the bytes of it begin
	endsAt      int    // and end
	number      uint64 // of a probe
	answer      []byte // to one
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
			c.beginsAt = u.at
			c.incarnation, err = u.uint(math.MaxUint32)
			c.endsAt = u.at
		case isNumber:
			c.number, err = u.uint(math.MaxUint32)
		case isState:
			v, err = u.uint(uint64(memberlist.StateLeft))
			c.state, c.stateAt = memberlist.NodeStateType(v), u.at-1
		case isMeta:
			c.meta, err = u.text(memberlist.MetaMaxSize)
		case isVersions:
			c.versions, err = u.text(6)
		case isAnswer:
			c.answer, err = u.text(answerBytes)
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

// greatest returns the greatest incarnation that this peer believes of others now. It grows
// faster than a peer needs to refute what was believed before.
func (s *screen) greatest(now time.Time) uint64 {
	seconds := max(0, s.begun.Unix()-1577836800) // since 2020: clocks that are apart do no harm
	return min(incarnationLast, incarnationFirst+incarnationRate*uint64(seconds)+uint64(incarnationRate*now.Sub(s.begun).Seconds()))
}

// bounded bounds the incarnation of a claim, in b, which has it where it was read from. A peer
// refutes a death by the next greater incarnation, and after the greatest there is none, so that
// one message could make it dead for good. So nobody believes more than greatest of another,
// and takes more for that; and the peer itself believes all that anybody may ever believe
// of it. It refutes that by one more, which the others take for what they may believe by then:
// that is more than they believed before. Where they do, the peer hears of its death in an incarnation that
// it is beyond, which memberlist ignores, and so is told of it once more in its own.
func (s *screen) bounded(c *claim, b []byte, alive bool) error {
	if !exchange.ValidName(c.name) {
		return fmt.Errorf("%w: %q is no name", errNotPacked, c.name)
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.name == s.newcomers.self {
		switch {
		case c.incarnation > incarnationLast:
			return fmt.Errorf("%w: %s, %d; at most %d", errIncarnation, c.name, c.incarnation, uint64(incarnationLast))
		case c.incarnation >= s.own:
			s.own = c.incarnation + 1
		case !alive && s.own > incarnationFirst && !s.refutes:
			s.refutes = true
			time.AfterFunc(refutesEvery-min(refutesEvery, now.Sub(s.refuted)), s.refute)
		}
		return nil
	}
	if most := s.greatest(now); c.incarnation > most {
		binary.BigEndian.PutUint32(b[c.endsAt-4:], uint32(most)) // it took four bytes, or the last of eight
		c.incarnation = most
	}
	if seen, ok := s.first[c.name]; ok {
		if alive && c.incarnation > seen.suspected {
			seen.since = time.Time{}
		} else if !alive && seen.since.IsZero() {
			seen.suspected, seen.since = c.incarnation, now
		}
		s.first[c.name] = seen
	}
	return nil
}

// refute has memberlist refute a suspicion of this peer in its own incarnation.
func (s *screen) refute() {
	s.mu.Lock()
	own := s.own
	s.own++
	s.refuted, s.refutes = time.Now(), false
	s.mu.Unlock()
	s.newcomers.admit(appendSuspect(nil, s.newcomers.self, own))
}

// updates notes that this peer takes the next incarnation by itself.
func (s *screen) updates() {
	s.mu.Lock()
	s.own++
	s.mu.Unlock()
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
		if m == nil && now.Sub(seen.answered) > time.Second || m != nil && !m.up.Load() && now.Sub(m.info.Load().since) > deadRemembered {
			delete(s.first, name)
		}
	}
	return len(s.first) < s.max
}
