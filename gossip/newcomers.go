package gossip

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Whoever may speak could speak of thousands of live peers that there are not. memberlist
// would keep and pass on all of them, find them dead one a second, and there would be no
// room for others. So a peer that is new, or was dead, waits here, and memberlist hears of
// it when it has answered a probe by its name. What was invented costs its place here for
// two seconds, and goes no further than to whom it was told.
//
// So does one that is said to have other metadata than it answered with: another life, another
// address for siblings, another key. Nobody but the peer at its address can change those.
//
// A peer that knows nobody yet could be told by anybody that a live peer is elsewhere, where
// somebody answers by its name. So it takes nobody's word before that of the peers through which
// it joins, and of whom these speak, nobody else's while they may still answer.

// A newcomer is probed at these intervals, so often.
const (
	newcomerProbe  = 500 * time.Millisecond
	newcomerProbes = 4
)

// newcomerNumbers is the least number of such a probe. Those of memberlist count up from 1.
const newcomerNumbers = 1 << 31

// newcomers are those that have not answered yet: at most as many as there may be members.
type newcomers struct {
	send  func(probe []byte, to netip.AddrPort)
	admit func(b []byte) // takes in memberlist's message
	self  string
	addr  netip.AddrPort // that answers come to

	mu       sync.Mutex
	entered  bool // a list came from a peer that this one asked
	waiting  map[claimed]*newcomer
	listed   map[string]int // how many that wait were in such a list, by name
	asked    map[uint32]*newcomer
	bySource map[netip.Addr]int
}

// claimed is who is said to be where, with which metadata: nobody keeps a peer out by naming
// others.
type claimed struct {
	name string
	addr netip.AddrPort
	meta metaHash
}

func claimedBy(c claim) claimed { return claimed{c.name, c.addr, hashOfMeta(c.name, c.meta)} }

// metaHash is of a peer's name and metadata: the beginning of their SHA-256, so that a member
// cannot find others for an answer that a peer gives.
type metaHash [8]byte

func hashOfMeta(name string, meta []byte) metaHash {
	sum := sha256.Sum256(append(append(append(make([]byte, 0, exchange.MaxName+1+exchange.MaxMeta), name...), 0), meta...))
	return metaHash(sum[:])
}

type newcomer struct {
	claimed
	from        netip.Addr // that said it
	listed      bool       // in the list of a peer that was asked
	incarnation uint64
	alive       []byte
	probe       uint32
}

// confirmed reports whether memberlist may hear that a peer is alive: it has answered with these
// metadata, and has not died since. That it lives elsewhere memberlist may hear, too: it takes
// it for a conflict.
func (s *screen) confirmed(c claim) bool {
	if c.name == s.newcomers.self || s.livesElsewhere(c.name, c.addr) {
		return true
	}
	s.mu.Lock()
	seen, ok := s.first[c.name]
	s.mu.Unlock()
	m := s.current()[c.name]
	return ok && (m == nil || m.up.Load() || time.Since(seen.answered) < time.Second) && seen.meta == hashOfMeta(c.name, c.meta)
}

// asked reports whether somebody wants to know just now what this peer's metadata are. Answers
// to other probes need not say it: they are most of what membership costs where little happens.
func (s *screen) asked() bool {
	at := s.probed.Load()
	return at > 0 && time.Since(s.begun) < time.Duration(at)+newcomerProbe
}

func (s *screen) livesElsewhere(name string, at netip.AddrPort) bool {
	m := s.current()[name]
	return m != nil && m.up.Load() && m.info.Load().addr != at
}

// unsay makes memberlist overlook a member of the list that is in b: a suspicion of less than
// any peer's incarnation says nothing.
func (c *claim) unsay(b []byte) {
	b[c.stateAt] = byte(memberlist.StateSuspect)
	if number := b[c.beginsAt+1 : c.endsAt]; len(number) > 0 {
		clear(number)
	} else {
		b[c.beginsAt] = 0
	}
}

// enter notes that a peer has answered, unless one just did by its name elsewhere, of which
// memberlist may not have heard yet. One address has at most half of the places, so that
// whoever answers by thousands of names there keeps out nobody from elsewhere.
func (s *screen) enter(c claimed) error {
	name, at := c.name, c.addr.Addr()
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.first[name]
	if ok && seen.at != c.addr && now.Sub(seen.answered) < time.Second {
		return fmt.Errorf("%s answered at %v", name, seen.at)
	}
	if !ok {
		if len(s.first) >= s.max && !s.prune(now) {
			return fmt.Errorf("%w (%d)", errMembers, s.max)
		}
		same := 0
		for _, other := range s.first {
			if hostOf(other.at.Addr()) == hostOf(at) {
				same++
			}
		}
		if same >= max(1, s.max/2) {
			return fmt.Errorf("%w (%d of %d at %v)", errMembers, same, s.max, at)
		}
	}
	seen.answered, seen.at, seen.meta = now, c.addr, c.meta
	s.first[name] = seen
	return nil
}

// hostOf returns what counts as one address: of IPv6 a network of 64 bits, of which one
// machine has all.
func hostOf(a netip.Addr) netip.Addr {
	if a.Is6() {
		p, _ := a.Prefix(64) // does not fail for 64 bits
		return p.Addr()
	}
	return a
}

// joinTime is how long a peer takes nobody's word but that of those through which it joins.
const joinTime = 10 * time.Second

// wait has a peer probed of which an address says that it is alive, in a list that this peer
// asked for or not.
func (s *screen) wait(c claim, from netip.Addr, listed bool) {
	w := &s.newcomers
	if !c.addr.IsValid() || c.addr.Port() == 0 {
		return
	}
	n := &newcomer{claimed: claimedBy(c), from: from, listed: listed, incarnation: c.incarnation, alive: appendAlive(nil, c)}
	w.mu.Lock()
	if old := w.waiting[n.claimed]; old != nil {
		if old.incarnation < n.incarnation {
			old.incarnation, old.alive = n.incarnation, n.alive
		}
		w.mu.Unlock()
		return
	}
	if !listed && (w.listed[c.name] > 0 || !w.entered && time.Since(s.begun) < joinTime) {
		w.mu.Unlock()
		return
	}
	if len(w.waiting) >= s.max && !w.makeRoom(from) {
		w.mu.Unlock()
		return // it will be said again
	}
	for n.probe = 0; n.probe == 0 || w.asked[n.probe] != nil; { // at most Limits.Members of 2³¹ are taken
		n.probe = newcomerNumbers | rand.Uint32()
	}
	w.waiting[n.claimed], w.asked[n.probe] = n, n
	w.bySource[from]++
	if listed {
		w.listed[c.name]++
	}
	w.mu.Unlock()
	w.ask(n, newcomerProbes)
}

// makeRoom drops a newcomer of a source that has more than its share, if from has less. It
// is called with w.mu held.
func (w *newcomers) makeRoom(from netip.Addr) bool {
	share := len(w.waiting) / (len(w.bySource) + 1)
	if w.bySource[from] >= share {
		return false
	}
	for _, n := range w.waiting { // those above their share are most
		if w.bySource[n.from] > share {
			w.remove(n)
			return true
		}
	}
	return false
}

// enters notes that a list came from a peer that was asked, or that there is none to ask.
func (w *newcomers) enters() {
	w.mu.Lock()
	w.entered = true
	w.mu.Unlock()
}

func (w *newcomers) remove(n *newcomer) {
	delete(w.waiting, n.claimed)
	delete(w.asked, n.probe)
	if w.bySource[n.from]--; w.bySource[n.from] == 0 {
		delete(w.bySource, n.from)
	}
	if !n.listed {
		return
	}
	if w.listed[n.name]--; w.listed[n.name] == 0 {
		delete(w.listed, n.name)
	}
}

// ask probes a newcomer as often as is left, and then drops it.
func (w *newcomers) ask(n *newcomer, left int) {
	w.mu.Lock()
	waits := w.waiting[n.claimed] == n
	if waits && left == 0 {
		w.remove(n)
	}
	w.mu.Unlock()
	if !waits || left == 0 {
		return
	}
	w.send(appendProbe(nil, n.probe, n.name, w.addr), n.addr)
	time.AfterFunc(newcomerProbe, func() { w.ask(n, left-1) })
}

// answered takes in the answer to a probe, which may be one of memberlist's.
func (s *screen) answered(probe uint32, answer []byte) {
	w := &s.newcomers
	w.mu.Lock()
	n := w.asked[probe]
	if n != nil {
		w.remove(n)
	}
	w.mu.Unlock()
	if n == nil || len(answer) != answerBytes || metaHash(answer[sumBytes:]) != n.meta {
		return
	}
	if s.livesElsewhere(n.name, n.addr) || s.enter(n.claimed) == nil {
		w.admit(n.alive)
	}
}

func appendAlive(b []byte, c claim) []byte {
	b = append(b, msgAlive, 0x86)
	b = binary.BigEndian.AppendUint32(append(appendText(b, "Incarnation"), 0xce), uint32(c.incarnation))
	b = appendText(appendText(b, "Node"), c.name)
	b = appendAddr(b, "Addr", "Port", c.addr)
	b = appendText(appendText(b, "Meta"), string(c.meta))
	return appendText(appendText(b, "Vsn"), string(c.versions))
}

func appendSuspect(b []byte, name string, incarnation uint64) []byte {
	b = append(b, msgSuspect, 0x83)
	b = binary.BigEndian.AppendUint32(append(appendText(b, "Incarnation"), 0xce), uint32(incarnation))
	b = appendText(appendText(b, "Node"), name)
	return appendText(appendText(b, "From"), name)
}

func appendProbe(b []byte, number uint32, name string, from netip.AddrPort) []byte {
	b = append(b, msgPing, 0x84)
	b = binary.BigEndian.AppendUint32(append(appendText(b, "SeqNo"), 0xce), number)
	b = appendText(appendText(b, "Node"), name)
	return appendAddr(b, "SourceAddr", "SourcePort", from)
}

func appendAddr(b []byte, addr, port string, ap netip.AddrPort) []byte {
	b = appendText(appendText(b, addr), string(ap.Addr().AsSlice()))
	return binary.BigEndian.AppendUint16(append(appendText(b, port), 0xcd), ap.Port())
}

// appendText appends a string of at most 65,535 bytes in MessagePack.
func appendText(b []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(b, 0xa0|byte(len(s))), s...)
	}
	return append(binary.BigEndian.AppendUint16(append(slices.Grow(b, 3+len(s)), 0xda), uint16(len(s))), s...)
}
