package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// maxPacket is the length in bytes of the longest packet accepted. Peers send at most 1,400; only an
// attacker sends more.
const maxPacket = 2048

// packetBacklog bounds the packets that wait for memberlist. More are dropped.
const packetBacklog = 1024

// transport lets memberlist use the node's port. A loop here reads its packets; its streams come
// from the node's acceptor. The sockets belong to the node.
type transport struct {
	g       *group
	packets net.PacketConn
	screen  *guard.Screen
	life    *guard.Life

	packetCh chan *memberlist.Packet
	streamCh chan net.Conn

	strange  atomic.Int64 // packets dropped
	checking atomic.Int32 // checks under way
}

var _ memberlist.Transport = (*transport)(nil)

func newTransport(g *group, packets net.PacketConn) *transport {
	t := &transport{
		g: g, packets: packets,
		life:     guard.NewLife(g.cfg.Limits.Members, g.cfg.detect.probe),
		packetCh: make(chan *memberlist.Packet, packetBacklog), streamCh: make(chan net.Conn),
	}
	t.screen = guard.New(guard.Config{
		Self: g.cfg.Name, Cluster: g.cfg.Cluster, Addr: g.advertise, Most: g.cfg.Limits.Members, Alone: len(g.cfg.Join) == 0,
		Memory: g.cfg.Limits.StreamMemory, Members: known{g}, Admit: t.admit, Refused: g.refuse, Doubt: g.doubt, Suspected: g.check,
		Stranger: func(cluster string, from netip.Addr) {
			g.noteCluster(&secrets.ClusterError{Ours: g.cfg.Cluster, Theirs: cluster}, "", from.String())
		},
		StreamProbe: func(member string, at netip.AddrPort) {
			if member != "" {
				g.probed(g.live(member), false, true)
			} else {
				g.probed(g.liveAt(at), true, true)
			}
		},
		Probe: func(b []byte, to netip.AddrPort) {
			if t.write(b, to) == nil {
				g.meters.out.packet(kindMembership, len(b))
			}
		},
	})
	return t
}

// admit passes a message to memberlist that no other peer has sent.
func (t *transport) admit(message []byte) {
	t.deliver(message, net.UDPAddrFromAddrPort(t.g.advertise), time.Now())
}

func (t *transport) readPackets() {
	buf := make([]byte, maxPacket+1)
	for {
		n, from, err := t.packets.ReadFrom(buf)
		now := time.Now()
		if err != nil {
			select {
			case <-t.g.ctx.Done():
				return
			case <-time.After(time.Millisecond):
				continue // a socket error affects one packet
			}
		}
		opened, in := t.open(buf[:n], guard.AddrPortOf(from)), &t.g.meters.in
		if opened == nil {
			t.strange.Add(1)
			in.packet(kindMembership, n) // the most likely kind
			continue
		}
		in.packet(kindSealing, n-len(opened))
		switch kindOf(opened) {
		case ofInvalidation:
			in.packet(kindInvalidations, len(opened))
			t.g.callbacks.removal(opened)
		case ofExchange:
			if exchange.IsQuestion(opened) || exchange.IsReply(opened) {
				t.g.callbacks.question(opened, guard.AddrPortOf(from))
			} else if b := noteFarewell(*t.g.members.Load(), opened, guard.AddrPortOf(from)); b != nil {
				t.g.callbacks.datagram(b)
			} else {
				in.packet(kindAdverts, len(opened))
			}
		case ofMembership, ofProbe:
			in.packet(kindMembership, len(opened))
			if screened, err := t.screen.Packet(opened); err == nil {
				if kindOf(opened) == ofProbe {
					sum := t.life.Hear(opened, guard.AddrPortOf(from), now)
					if m := t.g.liveAt(guard.AddrPortOf(from)); m != nil && opened[0]&^guard.WithToken == guard.ShortPing {
						t.g.probed(m, false, false)
						t.g.compare(m.name, sum)
					}
				}
				t.deliver(screened, from, now)
			} else {
				t.strange.Add(1)
				t.g.log.Warn("refused a packet of membership", "from", guard.AddrOf(from), "err", err)
			}
		}
	}
}

// deliver passes a packet to memberlist, or drops it if too many wait.
func (t *transport) deliver(b []byte, from net.Addr, at time.Time) {
	select {
	case t.packetCh <- &memberlist.Packet{Buf: slices.Concat(t.screen.Header, b), From: from, Timestamp: at}:
	default: // memberlist tolerates lost packets
	}
}

// A packetKind is the upper four bits of the first byte of an opened packet.
type packetKind byte

const (
	ofMembership   packetKind = 0 // memberlist's, without its label
	ofExchange     packetKind = exchange.Datagrams
	ofProbe        packetKind = guard.Short // memberlist's, in the short form
	ofInvalidation packetKind = invalidation.PushByte >> 4
	ofNobody       packetKind = 0xff
)

func kindOf(packet []byte) packetKind {
	if len(packet) > 0 {
		switch k := packetKind(packet[0] >> 4); k {
		case ofMembership, ofExchange, ofProbe, ofInvalidation:
			return k
		}
	}
	return ofNobody
}

// open returns the packet in b; nil if it is invalid or of another cluster.
func (t *transport) open(b []byte, from netip.AddrPort) []byte {
	if len(b) > maxPacket {
		return nil
	}
	packet := t.g.ring.Load().Open(b)
	if kindOf(packet) != ofNobody {
		return packet
	}
	marked, sealed := len(b) > 0 && b[0] == secrets.MarkedByte, len(b) > secrets.SealBytes && b[0] == secrets.SealedByte
	if marked || packet == nil && (sealed || kindOf(b) != ofNobody) {
		t.g.foreign(from.Addr()) // under another secret or name, or none
	}
	return nil
}

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.g.advertise.Addr().AsSlice(), int(t.g.advertise.Port()), nil
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip: packet to %q: %w", addr, err)
	}
	b, spared := t.short(bytes.TrimPrefix(b, t.screen.Header), to)
	if name := guard.AsksOthers(b); name != "" {
		if m := t.g.live(name); m != nil {
			m.astray.note(true)
		}
	}
	if spared {
		return time.Now(), nil
	}
	if err = t.write(b, to); err == nil {
		t.g.meters.out.packet(kindMembership, len(b))
	}
	return time.Now(), err
}

// short returns the short form of a packet of memberlist's, if it has one, or answers it itself.
func (t *transport) short(b []byte, to netip.AddrPort) (short []byte, spared bool) {
	short, now := guard.Shorten(b), time.Now()
	switch others := t.g.others.Load(); {
	case kindOf(short) != ofProbe:
	case short[0] == guard.ShortAck && others == 1:
		short = t.life.Answers(short, to, now)
	case short[0] != guard.ShortPing:
	case t.life.Spare(to, others, now):
		t.deliver(guard.Pack(guard.MsgAck, "SeqNo", binary.LittleEndian.Uint32(short[1:])),
			net.UDPAddrFromAddrPort(to), now)
		return nil, true
	default:
		if short = t.life.Probes(short, to, t.g.callbacks.sum(), now); short[0] != guard.ShortPing {
			t.g.meters.out.move(kindMembership, kindVectors, guard.SumBytes)
		}
	}
	return short, false
}

// write seals and sends a packet.
func (t *transport) write(b []byte, to netip.AddrPort) error {
	sealed := t.g.ring.Load().Seal(b)
	_, err := t.packets.WriteTo(sealed, net.UDPAddrFromAddrPort(to))
	if err == nil {
		t.g.meters.out.packet(kindSealing, len(sealed)-len(b))
	}
	return err
}

// DialTimeout sets a deadline on the connection, since memberlist writes its label before it sets
// one.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := t.g.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c = t.screen.Stream(t.g.meters.members(c), false)
	c.SetDeadline(time.Now().Add(timeout))
	return c, nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streamCh }

// handOver passes an incoming stream to memberlist.
func (t *transport) handOver(c net.Conn) {
	c = t.screen.Stream(c, true)
	select {
	case t.streamCh <- c:
	case <-t.g.ctx.Done():
		c.Close()
	}
}

// Shutdown ends the packet loop, for which [Node.Close] waits. The listener is the node's to close.
func (t *transport) Shutdown() error {
	t.g.work.Stop(ErrClosed)
	return t.packets.Close()
}
