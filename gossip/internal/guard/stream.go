package guard

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// label is the label with which memberlist's packets and streams begin, in a cluster without a name. It is removed from
// packets before they are sent.
const label = "sc1"

// LabelOf returns the label in a cluster of a name, which may be empty, and HeaderOf the bytes of it.
func LabelOf(cluster string) string {
	if cluster == "" {
		return label
	}
	return label + ":" + cluster
}

func HeaderOf(cluster string) []byte {
	l := LabelOf(cluster)
	return append([]byte{HeaderByte, byte(len(l))}, l...)
}

// HeaderByte is the first byte of a stream of memberlist's.
const HeaderByte = 0xF4

// Limits on the memory of memberlist's streams, in bytes: of all, and of those of one address. A list
// of members takes four times its length, since it is read into a buffer that doubles and decoded
// from there. The list in answer takes a kilobyte per member. So two peers that know of each other's members none
// can exchange all that there may be.
const (
	screenHosts  = 3 // addresses whose streams fit in at once
	screenHost   = 8 << 20
	screenMember = 3 << 10 // for each member instead, if that is more
	screenList   = 4
	screenAnswer = 1 << 10
)

// mostOfHost returns the limit for the streams of one address: for as many members as there may be if this peer asks
// for their list, and for as many as it knows if others send it one, since they may be strangers.
func (c *screenedConn) mostOfHost() int {
	members := c.screen.cfg.Most
	if c.labelled {
		members = c.screen.cfg.Members.Count()
	}
	return max(screenHost, screenMember*members)
}

// Stream returns a connection from which memberlist can read a message only when all of it has been
// read and screened. Its memory counts towards the limits until it is closed.
func (s *Screen) Stream(c net.Conn, labelled bool) net.Conn {
	screened := &screenedConn{Conn: c, screen: s, from: AddrOf(c.RemoteAddr()), labelled: labelled}
	screened.message.more = screened.message.readInto(c, func(total int) error {
		return screened.claim(screened.answer + screenList*total)
	})
	return screened
}

type screenedConn struct {
	net.Conn
	screen   *Screen
	from     netip.Addr
	labelled bool // begins with memberlist's label, as streams that other peers opened do
	sums     ranges

	once    sync.Once
	message unpacker
	err     error
	given   int // bytes of the message that memberlist has read
	answer  int // bytes claimed for the list in answer

	claimed int // guarded by screen.mu
	closed  bool
}

func (c *screenedConn) Read(b []byte) (int, error) {
	c.once.Do(func() { c.err = c.read() })
	if c.err != nil {
		return 0, c.err
	}
	n := copy(b, c.message.b[c.given:c.message.at])
	if c.given += n; n == 0 && len(b) > 0 {
		return 0, io.EOF // a stream carries one message
	}
	return n, nil
}

// read reads the one message of the stream.
func (c *screenedConn) read() error {
	u, s := &c.message, c.screen
	if c.labelled {
		if err := c.answerSums(); err != nil {
			return err
		}
		if err := c.checkLabel(); err != nil {
			return err
		}
	}
	first, err := u.bigEndian(1)
	if err != nil {
		return err
	}
	kind := byte(first)
	switch kind {
	case MsgPing, MsgAck, msgError, MsgPushPull:
	default:
		return fmt.Errorf("%w (%d)", errKind, kind)
	}
	if kind == MsgPushPull && c.labelled {
		c.answer = screenAnswer * (1 + s.cfg.Members.Count())
		if err := c.claim(c.answer + screenList*cap(u.b)); err != nil {
			return err
		}
	}
	list, err := read(u, kind)
	switch at := AddrPortOf(c.RemoteAddr()); {
	case err == nil && kind == MsgPing && c.labelled && list.source != "":
		s.cfg.StreamProbe(list.source, at)
	case err == nil && kind == MsgAck && !c.labelled:
		s.cfg.StreamProbe("", at)
	}
	if err != nil || kind != MsgPushPull {
		return err
	}
	if list.members > 2*s.cfg.Most { // a list has the dead members for a while
		return fmt.Errorf("%w: %d", exchange.ErrMembers, list.members)
	}
	expected := !c.labelled // this peer has dialled an address, whose peer must be in the list
	for i := range list.members {
		if err := c.member(i, &expected); err != nil {
			return err
		}
	}
	if !c.labelled {
		s.mu.Lock()
		s.entered = true
		s.mu.Unlock()
	}
	return nil
}

// checkLabel reads the label of a stream.
func (c *screenedConn) checkLabel() error {
	u := &c.message
	head, err := u.take(2)
	if err == nil && head[0] != HeaderByte {
		err = fmt.Errorf("%w: no label", errNotPacked)
	}
	if err == nil {
		head, err = u.take(int(head[1]))
	}
	if err != nil {
		return err
	}
	cluster, named := strings.CutPrefix(string(head), label+":")
	if string(head) == label {
		cluster, named = "", true
	}
	if named && cluster != c.screen.cfg.Cluster && (cluster == "" || exchange.ValidName(cluster)) {
		c.screen.cfg.Stranger(cluster, c.from)
	}
	if string(head) != LabelOf(c.screen.cfg.Cluster) {
		return fmt.Errorf("%w: label %q", errNotPacked, head)
	}
	return nil
}

// member reads a member of a list, and changes claims about it that memberlist must not believe.
// expected is true while the peer at the other end has not been in the list yet.
func (c *screenedConn) member(i int, expected *bool) error {
	u, s, start := &c.message, c.screen, c.message.at
	m, err := read(u, listedMember)
	if err != nil {
		return err
	}
	if u.at-start < leastMember || m.stateAt == 0 || m.endsAt == 0 {
		return fmt.Errorf("%w: member %d lacks fields", errNotPacked, i)
	}
	alive := m.state == memberlist.StateAlive
	if err := s.bounded(&m, u.b, alive); err != nil {
		return err
	}
	switch {
	case alive && !s.confirmed(m):
		if *expected && m.Addr == AddrPortOf(c.RemoteAddr()) && s.enter(claimedBy(m), m.Incarnation) == nil {
			*expected = false // one peer is at one address
			s.Displaced(m.Name, m.Addr)
		} else {
			s.wait(m, !c.labelled)
			m.disable(u.b)
		}
	case m.state == memberlist.StateLeft && !s.farewell(m.Name):
		u.b[m.stateAt] = byte(memberlist.StateDead) // memberlist treats that as a suspicion
	}
	return nil
}

// leastMember is the length in bytes of the shortest member of a list that is accepted. It bounds the
// memory of the decoded list.
const leastMember = 55

// claim reserves memory for c, total bytes altogether.
func (c *screenedConn) claim(total int) error {
	s := c.screen
	s.mu.Lock()
	defer s.mu.Unlock()
	more := total - c.claimed
	host := c.mostOfHost()
	if c.closed || s.used+more > screenHosts*host || s.perHost[c.from]+more > host || more > 0 && !s.cfg.Memory.Take(int64(more)) {
		return fmt.Errorf("%w (%d of %d bytes, %d for %v)", errScreenMemory, s.used, screenHosts*host,
			s.perHost[c.from], c.from)
	}
	c.take(more)
	return nil
}

// take counts memory that was reserved, or releases some. It is called with screen.mu held.
func (c *screenedConn) take(more int) {
	s := c.screen
	c.claimed += more
	s.used += more
	if more < 0 {
		s.cfg.Memory.Give(int64(-more))
	}
	if s.perHost[c.from] += more; s.perHost[c.from] == 0 {
		delete(s.perHost, c.from)
	}
}

func (c *screenedConn) Close() error {
	c.screen.mu.Lock()
	c.closed = true
	c.take(-c.claimed)
	c.screen.mu.Unlock()
	return c.Conn.Close()
}
