package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
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
	n       *Node
	packets net.PacketConn
	screen  *screen
	life    *life

	packetCh chan *memberlist.Packet
	streamCh chan net.Conn
	wg       sync.WaitGroup

	strange atomic.Int64 // packets dropped
}

var _ memberlist.Transport = (*transport)(nil)

func newTransport(n *Node, packets net.PacketConn) *transport {
	t := &transport{
		n: n, packets: packets,
		screen:   newScreen(n.cfg.Name, n.advertise, n.cfg.Limits.Members, func() memberTable { return *n.members.Load() }),
		life:     newLife(n.cfg.Limits.Members, n.cfg.detect.probe),
		packetCh: make(chan *memberlist.Packet, packetBacklog), streamCh: make(chan net.Conn),
	}
	t.screen.memory = n.cfg.Limits.StreamMemory
	t.screen.entered = len(n.cfg.Join) == 0
	t.screen.admit = func(message []byte) { t.deliver(message, net.UDPAddrFromAddrPort(n.advertise), time.Now()) }
	t.screen.doubt, t.screen.suspected = n.Doubt, n.check
	t.screen.probe = func(b []byte, to netip.AddrPort) {
		if t.write(b, to) == nil {
			n.meters.out.packet(Membership, len(b))
		}
	}
	return t
}

func (t *transport) readPackets() {
	buf := make([]byte, maxPacket+1)
	for {
		n, from, err := t.packets.ReadFrom(buf)
		now := time.Now()
		if err != nil {
			select {
			case <-t.n.ctx.Done():
				return
			case <-time.After(time.Millisecond):
				continue // a socket error affects one packet
			}
		}
		opened, in := t.open(buf[:n], addrPortOf(from)), &t.n.meters.in
		if opened == nil {
			t.strange.Add(1)
			in.packet(Membership, n) // the most likely kind
			continue
		}
		in.packet(Sealing, n-len(opened))
		switch kindOf(opened) {
		case ofInvalidation:
			in.packet(Invalidations, len(opened))
			t.n.invalidations.datagram(opened)
		case ofExchange:
			t.n.handleDatagram(opened, addrPortOf(from))
		case ofMembership, ofProbe:
			in.packet(Membership, len(opened))
			if screened, err := t.screen.packet(opened, addrOf(from)); err == nil {
				if kindOf(opened) == ofProbe {
					t.n.compareSum(t.n.liveAt(addrPortOf(from)), t.life.hear(opened, addrPortOf(from), now))
				}
				t.deliver(screened, from, now)
			} else {
				t.strange.Add(1)
				t.n.log.Warn("refused a packet of membership", "from", addrOf(from), "err", err)
			}
		}
	}
}

// deliver passes a packet to memberlist, or drops it if too many wait.
func (t *transport) deliver(b []byte, from net.Addr, at time.Time) {
	select {
	case t.packetCh <- &memberlist.Packet{Buf: slices.Concat(plainHeader, b), From: from, Timestamp: at}:
	default: // memberlist tolerates lost packets
	}
}

// A packetKind is the upper four bits of the first byte of an opened packet.
type packetKind byte

const (
	ofMembership   packetKind = 0 // memberlist's, without its label
	ofExchange     packetKind = exchange.ProtocolVersion
	ofProbe        packetKind = 2 // memberlist's, in the short form
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
	packet := t.n.ring.Load().open(b)
	if packet == nil && (len(b) > sealBytes && b[0] == sealedByte || kindOf(b) != ofNobody) {
		t.n.foreign(from.Addr()) // under another secret, or none
	}
	if kindOf(packet) == ofNobody {
		return nil
	}
	return packet
}

// addrOf returns the IP address of a socket address; the zero Addr if it has none.
func addrOf(a net.Addr) netip.Addr { return addrPortOf(a).Addr() }

func addrPortOf(a net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	switch a := a.(type) {
	case *net.UDPAddr:
		ap = a.AddrPort()
	case *net.TCPAddr:
		ap = a.AddrPort()
	default:
		ap, _ = netip.ParseAddrPort(a.String()) // the zero AddrPort if it is none
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.n.advertise.Addr().AsSlice(), int(t.n.advertise.Port()), nil
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip: packet to %q: %w", addr, err)
	}
	b, spared := t.short(bytes.TrimPrefix(b, plainHeader), to)
	if spared {
		return time.Now(), nil
	}
	if err = t.write(b, to); err == nil {
		t.n.meters.out.packet(Membership, len(b))
	}
	return time.Now(), err
}

// short returns the short form of a packet of memberlist's, if it has one, or answers it itself.
func (t *transport) short(b []byte, to netip.AddrPort) (short []byte, spared bool) {
	short, now := shorten(b), time.Now()
	switch others := t.n.others.Load(); {
	case kindOf(short) != ofProbe:
	case short[0] == shortAck && others == 1:
		short = t.life.answers(short, to, now)
	case short[0] != shortPing:
	case t.life.spare(to, others, now):
		t.deliver(pack(msgAck, "SeqNo", binary.LittleEndian.Uint32(short[1:])), net.UDPAddrFromAddrPort(to), now)
		return nil, true
	default:
		if short = t.life.probes(short, to, t.n.knownSum(), now); short[0] != shortPing {
			t.n.meters.out.move(Membership, Vectors, sumBytes)
		}
	}
	return short, false
}

// write seals and sends a packet.
func (t *transport) write(b []byte, to netip.AddrPort) error {
	sealed := t.n.ring.Load().seal(b)
	_, err := t.packets.WriteTo(sealed, net.UDPAddrFromAddrPort(to))
	if err == nil {
		t.n.meters.out.packet(Sealing, len(sealed)-len(b))
	}
	return err
}

// DialTimeout sets a deadline on the connection, since memberlist writes its label before it sets
// one.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := t.n.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c = t.screen.stream(t.n.meters.members(c), false)
	c.SetDeadline(time.Now().Add(timeout))
	return c, nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streamCh }

// handOver passes an incoming stream to memberlist.
func (t *transport) handOver(c net.Conn) {
	c = t.screen.stream(c, true)
	select {
	case t.streamCh <- c:
	case <-t.n.ctx.Done():
		c.Close()
	}
}

// Shutdown stops the packet loop. The listener is the node's to close.
func (t *transport) Shutdown() error {
	t.n.cancel()
	t.packets.Close()
	t.wg.Wait()
	return nil
}
