package gossip

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Whoever may speak could speak of thousands of live peers that there are not. memberlist
// would keep and pass on all of them, find them dead one a second, and there would be no
// room for others. So a peer that is new, or was dead, waits here, and memberlist hears of
// it when it has answered a probe by its name. What was invented costs its place here for
// two seconds, and goes no further than to whom it was told.

// A newcomer is probed at these intervals, so often.
const (
	newcomerProbe  = 500 * time.Millisecond
	newcomerProbes = 4
)

// newcomers are those that have not answered yet: at most as many as there may be members.
type newcomers struct {
	send  func(probe []byte, to netip.AddrPort)
	admit func(b []byte) // takes in memberlist's message
	self  string
	addr  netip.AddrPort // that answers come to

	mu       sync.Mutex
	waiting  map[claimed]*newcomer
	asked    map[uint32]*newcomer
	bySource map[netip.Addr]int
}

// claimed is who is said to be where: nobody keeps a peer out by naming another address.
type claimed struct {
	name string
	addr netip.AddrPort
}

type newcomer struct {
	claimed
	from        netip.Addr // that said it
	incarnation uint64
	alive       []byte
	probe       uint32
}

// known reports whether memberlist may hear that a peer is alive: it has answered, and has
// not died since.
func (s *screen) known(name string) bool {
	if name == s.newcomers.self {
		return true
	}
	s.mu.Lock()
	seen, ok := s.first[name]
	s.mu.Unlock()
	m := s.current()[name]
	return ok && (m == nil || m.up.Load() || time.Since(seen.answered) < time.Second)
}

// enter notes that a peer has answered. One address has at most half of the places, so that
// whoever answers by thousands of names there keeps out nobody from elsewhere.
func (s *screen) enter(name string, at netip.Addr) error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.first[name]
	if !ok {
		if len(s.first) >= s.max && !s.prune(now) {
			return fmt.Errorf("%w (%d)", errMembers, s.max)
		}
		same := 0
		for _, other := range s.first {
			if other.host == hostOf(at) {
				same++
			}
		}
		if same >= max(1, s.max/2) {
			return fmt.Errorf("%w (%d of %d at %v)", errMembers, same, s.max, at)
		}
	}
	seen.answered, seen.host = now, hostOf(at)
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

// wait has a peer probed of which an address says that it is alive.
func (s *screen) wait(c claim, from netip.Addr) {
	w := &s.newcomers
	if !c.addr.IsValid() || c.addr.Port() == 0 {
		return
	}
	n := &newcomer{claimed: claimed{c.name, c.addr}, from: from, incarnation: c.incarnation, alive: appendAlive(nil, c)}
	w.mu.Lock()
	if old := w.waiting[n.claimed]; old != nil {
		if old.incarnation < n.incarnation {
			old.incarnation, old.alive = n.incarnation, n.alive
		}
		w.mu.Unlock()
		return
	}
	if len(w.waiting) >= s.max && !w.makeRoom(from) {
		w.mu.Unlock()
		return // it will be said again
	}
	for n.probe = 0; n.probe == 0 || w.asked[n.probe] != nil; { // at most Limits.Members of 2³¹ are taken
		n.probe = 1<<31 | rand.Uint32() // those of memberlist count up from 1
	}
	w.waiting[n.claimed], w.asked[n.probe] = n, n
	w.bySource[from]++
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

func (w *newcomers) remove(n *newcomer) {
	delete(w.waiting, n.claimed)
	delete(w.asked, n.probe)
	if w.bySource[n.from]--; w.bySource[n.from] == 0 {
		delete(w.bySource, n.from)
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
func (s *screen) answered(probe uint32) {
	w := &s.newcomers
	w.mu.Lock()
	n := w.asked[probe]
	if n != nil {
		w.remove(n)
	}
	w.mu.Unlock()
	if n != nil && s.enter(n.name, n.addr.Addr()) == nil {
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
