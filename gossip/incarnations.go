package gossip

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A peer refutes its death by the next greater incarnation, and there is none after the
// greatest, so that one message could make it dead permanently. So incarnations that others
// state are bounded:
//
//   - Of another, a peer believes no incarnation beyond a bound that grows with time. It
//     takes a greater one for the bound.
//   - Of itself, it believes all that anybody may ever believe of it. It refutes that by one
//     more, which the others take for their bound by then: that is more than they believed
//     before.
//   - Where the bound was taken, the peer hears of its death in an incarnation that it has
//     left behind, which memberlist ignores. So the screen has memberlist told once more, of
//     the peer's own incarnation.
//
// A peer that is not attacked stays below the first bound for all its life.
const (
	incarnationFirst = 1 << 20         // greatest that is believed in 2020
	incarnationRate  = 4               // added each second since
	incarnationLast  = 1<<32 - 1<<28   // greatest that is ever believed: until 2051
	refutesEvery     = time.Second / 2 // at most, what others should know to be refuted
)

// greatest returns the greatest incarnation that this peer believes of others now. It grows
// faster than a peer needs to refute what was believed before.
func (s *screen) greatest(now time.Time) uint64 {
	seconds := max(0, s.begun.Unix()-1577836800) // since 2020; clocks that differ do no harm
	return min(incarnationLast, incarnationFirst+incarnationRate*uint64(seconds)+uint64(incarnationRate*now.Sub(s.begun).Seconds()))
}

// bounded bounds the incarnation of a claim that a peer is alive, or is not, also in b,
// which the claim was read from.
func (s *screen) bounded(c *claim, b []byte, alive bool) error {
	if !exchange.ValidName(c.name) {
		return fmt.Errorf("%w: %q is no name", errNotPacked, c.name)
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.name == s.self {
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
	return nil
}

// refute has memberlist refute a suspicion of this peer in its own incarnation.
func (s *screen) refute() {
	s.mu.Lock()
	own := s.own
	s.own++
	s.refuted, s.refutes = time.Now(), false
	s.mu.Unlock()
	s.admit(pack(msgSuspect, "Incarnation", uint32(own), "Node", s.self, "From", s.self))
}

// updates notes that this peer takes the next incarnation by itself.
func (s *screen) updates() {
	s.mu.Lock()
	s.own++
	s.mu.Unlock()
}
