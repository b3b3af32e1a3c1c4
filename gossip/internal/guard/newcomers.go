package guard

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A member could announce thousands of live peers that do not exist. memberlist would keep and
// relay all of them, and detect the death of one a second, and there would be no room for others.
// So a peer that is new, or was dead, waits here, and memberlist learns of it when it has answered a
// probe by its name. An invented peer takes a place here for two seconds, and is not relayed.
//
// If the metadata claimed for a peer (incarnation, address for siblings, key) differ from those of
// its last answer, it waits as well. So only the peer at its address can change them.
//
// A member could tell a peer that knows no other yet that a live peer is at another address, where
// an impostor answers by its name. So a new peer first believes only the peers through which it
// joins. For a peer that these list, it believes no other claim while the listed address may still
// answer.

// How many probes a newcomer gets, and at which interval.
const (
	newcomerProbe  = 500 * time.Millisecond
	newcomerProbes = 4
)

// newcomerNumbers is the least sequence number of such a probe. memberlist's count up from 1.
const newcomerNumbers = 1 << 31

// joinTime is how long a new peer believes only the peers through which it joins.
const joinTime = 10 * time.Second

// newcomers are the peers that have not answered yet: at most as many as there may be members.
type newcomers struct {
	entered bool // this peer got a member list that it requested, or has no peer to request one from
	waiting map[claimed]*newcomer
	asked   map[uint32]*newcomer // the same, by the number of the probe
	places  []*newcomer          // the same, to draw one: a range over a map favours those behind a gap
	listed  map[string]int       // how many wait that were in a list which this peer requested, by name
}

// claimed is a claim about a peer: its address and its metadata. Each claim waits separately, so that
// a false one does not exclude the true one.
type claimed struct {
	name string
	addr netip.AddrPort
	meta metaHash
}

func claimedBy(c Claim) claimed { return claimed{c.Name, c.Addr, HashOfMeta(c.Name, c.Meta)} }

// metaHash is the beginning of the SHA-256 of a peer's name and metadata. A member cannot find other
// metadata with the same hash.
type metaHash [8]byte

// Lengths of the payload of an answer to a probe: of the sum, and of the sum with the hash of the
// metadata.
const (
	SumBytes    = 4
	AnswerBytes = SumBytes + len(metaHash{})
)

// HashOfMeta returns the hash of a peer's name and metadata.
func HashOfMeta(name string, meta []byte) metaHash {
	sum := sha256.Sum256(append(append(append(make([]byte, 0, exchange.MaxName+1+exchange.MaxMeta), name...), 0), meta...))
	return metaHash(sum[:])
}

type newcomer struct {
	claimed
	listed      bool // in a list that this peer requested
	incarnation uint64
	alive       []byte // memberlist's message, to deliver when the newcomer has answered
	number      uint32 // of its probes
	probes      int    // left to send
	place       int    // in newcomers.places
}

// A sighting is the last answer of a peer to a probe.
type sighting struct {
	answered    time.Time
	at          netip.AddrPort // the address that answered
	meta        metaHash       // in the answer
	incarnation uint64         // the greatest of the peer that memberlist may have heard since
}

// confirmed reports whether memberlist may learn that a peer is alive: the peer has answered with
// these metadata, and has not died since. memberlist may also learn of a live member at another
// address, which it treats as a conflict.
func (s *Screen) confirmed(c Claim) bool {
	if c.Name == s.cfg.Self || s.livesElsewhere(c.Name, c.Addr) {
		return true
	}
	s.mu.Lock()
	seen, ok := s.seen[c.Name]
	s.mu.Unlock()
	m, known := s.cfg.Members.Known(c.Name)
	return ok && (!known || m.Up || time.Since(seen.answered) < time.Second) && seen.meta == HashOfMeta(c.Name, c.Meta)
}

// WasProbed reports whether this peer was probed as a newcomer just now. Only then do its answers
// contain the hash of its metadata: answers are most of the cost of membership in a quiet cluster.
func (s *Screen) WasProbed() bool {
	at := s.probed.Load()
	return at > 0 && time.Since(s.begun) < time.Duration(at)+newcomerProbe
}

func (s *Screen) livesElsewhere(name string, at netip.AddrPort) bool {
	m, _ := s.cfg.Members.Known(name)
	return m.Up && m.Addr != at
}

// disable makes memberlist ignore a member of the list in b, by turning it into a suspicion of a lower
// incarnation than any peer has.
func (c *Claim) disable(b []byte) {
	b[c.stateAt] = byte(memberlist.StateSuspect)
	if number := b[c.beginsAt+1 : c.endsAt]; len(number) > 0 {
		clear(number)
	} else {
		b[c.beginsAt] = 0
	}
}

// enter gives a place to a peer that has answered, and says so if there is none for it.
func (s *Screen) enter(c claimed, incarnation uint64) error {
	err := s.place(c, incarnation)
	if errors.Is(err, exchange.ErrMembers) {
		s.cfg.Refused(c.name, c.addr, err)
	}
	return err
}

// place records that a peer has answered, unless another address just did by its name, of which
// memberlist may not know yet. Peers at one address get at most half of the places, so that a host
// that answers by thousands of names does not exclude others.
func (s *Screen) place(c claimed, incarnation uint64) error {
	name, at := c.name, c.addr.Addr()
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen[name]
	if ok && seen.at != c.addr && now.Sub(seen.answered) < time.Second {
		return fmt.Errorf("%s answered at %v", name, seen.at)
	}
	if err := s.room(name, at, now); err != nil {
		return err
	}
	s.seen[name] = sighting{now, c.addr, c.meta, max(seen.incarnation, incarnation)}
	return nil
}

// Displaced makes memberlist count all members at an address but one as dead: that one has just answered there.
func (s *Screen) Displaced(by string, at netip.AddrPort) {
	s.mu.Lock()
	former := make(map[string]uint64)
	for name, seen := range s.seen {
		if seen.at == at && name != by {
			former[name] = seen.incarnation
		}
	}
	s.mu.Unlock()
	for name, incarnation := range former {
		if m, _ := s.cfg.Members.Known(name); m.Up && m.Addr == at {
			s.cfg.Admit(Pack(MsgDead, "Incarnation", uint32(incarnation), "Node", name, "From", s.cfg.Self))
		}
	}
}

// room returns an error if a peer would be one member too many. It is called with the lock held.
func (s *Screen) room(name string, at netip.Addr, now time.Time) error {
	if _, ok := s.seen[name]; ok {
		return nil
	}
	if len(s.seen) >= s.cfg.Most && !s.prune(now) {
		return fmt.Errorf("%w (%d)", exchange.ErrMembers, s.cfg.Most)
	}
	same := 0
	for _, other := range s.seen {
		if hostOf(other.at.Addr()) == hostOf(at) {
			same++
		}
	}
	if same >= max(1, s.cfg.Most/2) {
		return fmt.Errorf("%w (%d of %d at %v)", exchange.ErrMembers, same, s.cfg.Most, at)
	}
	return nil
}

// Room returns an error, which Config.Refused gets too, if a peer that wants to join would be one member too many.
func (s *Screen) Room(name string, at netip.AddrPort) error {
	s.mu.Lock()
	err := s.room(name, at.Addr(), time.Now())
	s.mu.Unlock()
	if err != nil {
		s.cfg.Refused(name, at, err)
	}
	return err
}

// hostOf returns the unit in which addresses are counted: for IPv6 a network of 64 bits, since one
// machine can have all its addresses.
func hostOf(a netip.Addr) netip.Addr {
	if a.Is6() {
		p, _ := a.Prefix(64) // does not fail for 64 bits
		return p.Addr()
	}
	return a
}

// deadRemembered is about as long as memberlist remembers a dead peer.
const deadRemembered = 45 * time.Second

// prune forgets peers that are not members, and dead ones, at most once a second, and reports whether
// there is room then. It is called with s.mu held.
func (s *Screen) prune(now time.Time) bool {
	if now.Sub(s.pruned) < time.Second {
		return false
	}
	s.pruned = now
	for name, seen := range s.seen {
		m, known := s.cfg.Members.Known(name)
		if !known && now.Sub(seen.answered) > time.Second || known && !m.Up && now.Sub(m.Since) > deadRemembered {
			delete(s.seen, name)
		}
	}
	return len(s.seen) < s.cfg.Most
}

// wait probes a peer that is claimed to be alive by a message from an address, or in a list that this
// peer requested.
func (s *Screen) wait(c Claim, listed bool) {
	if !c.Addr.IsValid() || c.Addr.Port() == 0 {
		return
	}
	n := &newcomer{claimed: claimedBy(c), listed: listed, incarnation: c.Incarnation, alive: AliveMessage(c), probes: newcomerProbes}
	s.mu.Lock()
	waits := s.addNewcomer(n)
	s.mu.Unlock()
	if waits {
		s.ask(n)
	}
}

// addNewcomer adds n if there is a place for it. If not, n will be announced again.
func (s *Screen) addNewcomer(n *newcomer) bool {
	if old := s.waiting[n.claimed]; old != nil {
		if old.incarnation < n.incarnation {
			old.incarnation, old.alive = n.incarnation, n.alive
		}
		return false
	}
	if !n.listed && (s.listed[n.name] > 0 || !s.entered && time.Since(s.begun) < joinTime) {
		return false
	}
	if len(s.waiting) >= s.cfg.Most {
		// any one: a peer that lives has mostly answered before it is its turn
		s.remove(s.places[rand.IntN(len(s.places))])
	}
	for n.number = 0; n.number == 0 || s.asked[n.number] != nil; { // at most Limits.Members of 2³¹ are taken
		n.number = newcomerNumbers | rand.Uint32()
	}
	s.waiting[n.claimed], s.asked[n.number] = n, n
	n.place, s.places = len(s.places), append(s.places, n)
	if n.listed {
		s.listed[n.name]++
	}
	return true
}

func (w *newcomers) remove(n *newcomer) {
	delete(w.waiting, n.claimed)
	delete(w.asked, n.number)
	last := len(w.places) - 1
	w.places[n.place], w.places[last].place = w.places[last], n.place
	w.places[last], w.places = nil, w.places[:last]
	if !n.listed {
		return
	}
	if w.listed[n.name]--; w.listed[n.name] == 0 {
		delete(w.listed, n.name)
	}
}

// ask sends a newcomer its next probe, or removes it after the last one.
func (s *Screen) ask(n *newcomer) {
	s.mu.Lock()
	waits := s.waiting[n.claimed] == n
	if waits && n.probes == 0 {
		s.remove(n)
		waits = false
	}
	n.probes--
	s.mu.Unlock()
	if waits {
		probe := Pack(MsgPing, "SeqNo", n.number, "Node", n.name, "SourceAddr", s.cfg.Addr.Addr().AsSlice(),
			"SourcePort", s.cfg.Addr.Port())
		s.cfg.Probe(probe, n.addr)
		time.AfterFunc(newcomerProbe, func() { s.ask(n) })
	}
}

// answered handles the answer to a probe, which may be one of memberlist's.
func (s *Screen) answered(number uint32, answer []byte) {
	s.mu.Lock()
	n := s.asked[number]
	if n != nil {
		s.remove(n)
	}
	s.mu.Unlock()
	if n == nil || len(answer) != AnswerBytes || metaHash(answer[SumBytes:]) != n.meta {
		return
	}
	if s.livesElsewhere(n.name, n.addr) || s.enter(n.claimed, n.incarnation) == nil {
		s.cfg.Admit(n.alive)
		s.Displaced(n.name, n.addr)
	}
}
