package gossip

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/insider"
)

const (
	halfAfter  = 20 * time.Second // from the first sign to the last before a peer counts as half a member
	halfKept   = 3 * time.Minute  // after the last sign
	maxUnheard = 1024
)

// signs is when something was first and last seen, without a sign of the opposite in between.
type signs struct {
	mu          sync.Mutex
	first, last time.Time
}

// note records a sign, or the opposite of one.
func (s *signs) note(sign bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !sign || now.Sub(s.last) > halfKept {
		s.first = time.Time{}
	}
	if sign {
		s.last = now
		if s.first.IsZero() {
			s.first = now
		}
	}
}

// lasting reports whether there have been such signs for a while, and only such.
func (s *signs) lasting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.first.IsZero() && s.last.Sub(s.first) >= halfAfter && time.Since(s.last) <= halfKept
}

// hearing returns whether a live member and this peer hear each other.
func (m *member) hearing() insider.Hearing {
	switch {
	case m.deaf.lasting():
		return insider.HearsNot
	case m.mute[0].lasting() || m.mute[1].lasting():
		return insider.HearsStreams
	case m.astray.lasting():
		return insider.HearsOthers
	case m.knows.Load():
		return insider.Hears
	}
	return insider.HearsUnknown
}

// welcomed records what the welcome of another peer says: whether it counts this one as alive.
func (g *group) welcomed(name string, known uint64) {
	if m := g.live(name); m != nil {
		m.knows.Store(known == g.incarnation.Load())
		m.deaf.note(known != g.incarnation.Load())
	}
}

// probed records that a probe of this peer by a member, or of a member by this peer, has arrived: as a packet, or only
// as a stream.
func (g *group) probed(m *member, bySelf, stream bool) {
	if m == nil {
		return
	}
	way := &m.mute[0]
	if bySelf {
		way = &m.mute[1]
	} else {
		m.knows.Store(true) // nobody probes whom he does not count as alive
		m.deaf.note(false)
	}
	way.note(stream)
	if bySelf {
		m.astray.note(false)
	}
}

// unheard are the peers that open streams and are no members.
type unheard struct {
	mu sync.Mutex
	at map[string]*unheardPeer
}

type unheardPeer struct {
	addr string
	signs
}

// connected records a hello of a peer.
func (g *group) connected(name, addr string) {
	u := &g.unheard
	u.mu.Lock()
	defer u.mu.Unlock()
	if g.live(name) != nil || name == g.cfg.Name {
		delete(u.at, name)
		return
	}
	p := u.at[name]
	if p == nil || p.addr != addr {
		maps.DeleteFunc(u.at, func(_ string, p *unheardPeer) bool { return time.Since(p.last) > halfKept })
		if len(u.at) >= maxUnheard {
			return
		}
		if u.at == nil {
			u.at = make(map[string]*unheardPeer)
		}
		p = &unheardPeer{addr: addr}
		u.at[name] = p
	}
	p.note(true)
}

// HalfMembers returns the peers that are members only by half, by name: of this peer and each of them, one cannot be heard by
// the other, or only by streams or through a third, since half a minute. A firewall that lets through TCP but not UDP
// does so, one between two of several peers, and address translation without an Advertise.
func (n inside) HalfMembers() []insider.HalfMember { return n.made().halfMembers() }

func (g *group) halfMembers() []insider.HalfMember {
	var all []insider.HalfMember
	for _, m := range g.liveMembers() {
		if h := m.hearing(); h > insider.Hears {
			all = append(all, insider.HalfMember{Name: m.name, Addr: m.info.Load().addr.String(), Hearing: h})
		}
	}
	g.unheard.mu.Lock()
	for name, p := range g.unheard.at {
		if p.lasting() && g.live(name) == nil {
			all = append(all, insider.HalfMember{Name: name, Addr: p.addr, Hearing: insider.Unheard})
		}
	}
	g.unheard.mu.Unlock()
	slices.SortFunc(all, func(a, b insider.HalfMember) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
