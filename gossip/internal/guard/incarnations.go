package guard

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// A peer refutes its death by the next greater incarnation. The greatest one could not be refuted:
// one message with it would make the peer dead permanently. So the incarnations in messages are
// bounded:
//
//   - For another peer, the bound grows with time. A greater incarnation is replaced by the bound.
//   - For itself, a peer accepts every incarnation that others may ever accept, and refutes it by
//     the next one. Others replace that by their present bound, which is greater than the one that
//     they had accepted.
//   - Where an incarnation was replaced, the peer hears of its death in an incarnation that it has
//     left behind, which memberlist ignores. So the screen passes a suspicion of the peer's own
//     incarnation to memberlist, which refutes it.
//
// A peer that is not attacked stays below the first bound for its whole life.
const (
	incarnationFirst = 1 << 20         // the bound in 2020
	incarnationRate  = 4               // added each second since
	IncarnationLast  = 1<<32 - 1<<28   // the last bound, from 2051 on
	refutesEvery     = time.Second / 2 // least time between two such refutations
)

// greatest returns the present bound for other peers. It grows faster than a peer needs to refute
// incarnations that were accepted before.
func (s *Screen) greatest(now time.Time) uint64 {
	seconds := max(0, s.begun.Unix()-1577836800) // since 2020; clocks may differ
	return min(IncarnationLast, incarnationFirst+incarnationRate*uint64(seconds)+uint64(incarnationRate*now.Sub(s.begun).Seconds()))
}

// bounded bounds the incarnation of a claim that a peer is alive or not, and of the message b from
// which the claim was read.
func (s *Screen) bounded(c *Claim, b []byte, alive bool) error {
	if !exchange.ValidName(c.Name) {
		return fmt.Errorf("%w: name %q", errNotPacked, c.Name)
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Name == s.cfg.Self {
		switch {
		case c.Incarnation > IncarnationLast:
			return fmt.Errorf("%w: %s, %d; at most %d", errIncarnation, c.Name, c.Incarnation, uint64(IncarnationLast))
		case c.Incarnation >= s.own:
			s.own = c.Incarnation + 1
		case !alive && s.own > incarnationFirst && !s.refutes:
			s.refutes = true
			time.AfterFunc(refutesEvery-min(refutesEvery, now.Sub(s.refuted)), s.refute)
		}
		return nil
	}
	if most := s.greatest(now); c.Incarnation > most {
		// it is encoded in four bytes, or the last four of eight
		binary.BigEndian.PutUint32(b[c.endsAt-4:], uint32(most))
		c.Incarnation = most
	}
	if seen, ok := s.seen[c.Name]; ok && c.Incarnation > seen.incarnation {
		seen.incarnation = c.Incarnation
		s.seen[c.Name] = seen
	}
	return nil
}

// refute makes memberlist refute a suspicion of this peer in its own incarnation.
func (s *Screen) refute() {
	s.mu.Lock()
	own := s.own
	s.own++
	s.refuted, s.refutes = time.Now(), false
	s.mu.Unlock()
	s.cfg.Admit(Pack(MsgSuspect, "Incarnation", uint32(own), "Node", s.cfg.Self, "From", s.cfg.Self))
}

// Updates records that this peer takes the next incarnation by itself.
func (s *Screen) Updates() {
	s.mu.Lock()
	s.own++
	s.mu.Unlock()
}
