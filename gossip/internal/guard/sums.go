package guard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Two peers that know nearly the same members do not send each other all of them: at ten thousand, that is
// 2 MB each way. Both first send sums over ranges of the members (PROTOCOL.md 2.5), and then only the members
// of the ranges whose sums differ. memberlist knows nothing of this: the bytes pass through here.
//
//	dialled:  Write(list) ─▶ sums ─▶      ─▶ sums of the other ─▶ Write(list − equal ranges)
//	accepted: Read()      ─▶ sums of the other ─▶ sums ─▶  …  Write(list − equal ranges)

// SumsByte is the first byte of a stream that begins with sums.
const SumsByte = 0xF6

const (
	membersPerRange = 32 // at most about twice that
	maxRangeBits    = 10
	rangeBytes      = 4
)

// ranges has the sums of two peers over the same ranges.
type ranges struct{ own, other []byte }

// differ reports whether the sums of the range of a member differ.
func (r ranges) differ(name string) bool {
	at := rangeBytes * RangeOf(exchange.IDOf(name), len(r.own)/rangeBytes)
	return !bytes.Equal(r.own[at:at+rangeBytes], r.other[at:at+rangeBytes])
}

// RangeOf returns the range of a member's ID, of n: a power of two.
func RangeOf(id exchange.ID, n int) int { return int(uint64(id) & uint64(n-1)) }

// sums returns this peer's sums over n ranges, as they are sent.
func (s *Screen) sums(n int) []byte {
	b := make([]byte, 0, rangeBytes*n)
	for _, sum := range s.cfg.Members.Sums(n) {
		b = binary.LittleEndian.AppendUint32(b, sum)
	}
	return b
}

// Write holds memberlist's label back until it knows the message that follows. Before a list of members, a peer that
// dialled exchanges sums.
func (c *screenedConn) Write(b []byte) (int, error) {
	written := len(b)
	switch list := len(b) > 0 && b[0] == MsgPushPull; {
	case c.labelled:
		if list {
			b = c.without(b)
		}
	case bytes.Equal(b, c.screen.Header):
		return written, nil
	default:
		if list {
			if err := c.exchangeSums(); err != nil {
				return 0, err
			}
			b = c.without(b)
		}
		b = append(bytes.Clone(c.screen.Header), b...)
	}
	if _, err := c.Conn.Write(b); err != nil {
		return 0, err
	}
	return written, nil
}

// exchangeSums sends this peer's sums, and reads the other's.
func (c *screenedConn) exchangeSums() error {
	width := min(bits.Len(uint(c.screen.cfg.Members.Count()/membersPerRange)), maxRangeBits)
	c.sums.own = c.screen.sums(1 << width)
	if _, err := c.Conn.Write(append([]byte{SumsByte, byte(width)}, c.sums.own...)); err != nil {
		return err
	}
	other, err := c.message.take(len(c.sums.own))
	c.sums.other, c.given = bytes.Clone(other), c.message.at
	return err
}

// answerSums reads the sums at the beginning of a stream, if there are any, and answers with this peer's.
func (c *screenedConn) answerSums() error {
	u := &c.message
	head, err := u.take(2)
	if err != nil || head[0] != SumsByte {
		u.at = 0
		return err
	}
	if head[1] > maxRangeBits {
		return fmt.Errorf("%w: 2^%d sums", errNotPacked, head[1])
	}
	other, err := u.take(rangeBytes << head[1])
	if err != nil {
		return err
	}
	c.sums = ranges{c.screen.sums(1 << head[1]), bytes.Clone(other)}
	c.given = u.at
	_, err = c.Conn.Write(c.sums.own)
	return err
}

// without returns a list of members without those of the ranges whose sums are equal.
func (c *screenedConn) without(list []byte) []byte {
	if c.sums.other == nil {
		return list // the other peer has sent no sums
	}
	u := unpacker{b: list, at: 1}
	head, err := read(&u, MsgPushPull)
	var kept []byte
	n := uint32(0)
	for i := 0; i < head.members && err == nil; i++ {
		start := u.at
		var m Claim
		if m, err = read(&u, listedMember); err == nil && c.sums.differ(m.Name) {
			kept = append(kept, list[start:u.at]...)
			n++
		}
	}
	if err != nil {
		return list // which the other peer refuses
	}
	return append(Pack(MsgPushPull, "Nodes", n, "UserStateLen", uint32(0), "Join", false), kept...)
}
