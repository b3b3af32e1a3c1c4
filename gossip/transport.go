package gossip

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
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

// maxPacket is the longest packet accepted, in bytes. memberlist is configured
// to send at most 1,400; a longer one can only be meant to hurt.
const maxPacket = 2048

// packetBacklog is how many packets wait for memberlist before more are dropped.
const packetBacklog = 1024

// transport is memberlist's view of the node's one port. The sockets belong to
// the node; packets come from a loop here, streams from the node's acceptor.
type transport struct {
	packets   net.PacketConn
	advertise netip.AddrPort
	ring      func() *ring
	allowed   func(netip.Addr) bool
	foreign   func(from netip.AddrPort) // is told of packets that no accepted secret opens
	dial      func(ctx context.Context, addr string) (net.Conn, error)
	exchange  func(datagram []byte, from netip.AddrPort) // takes in one of the exchange's own
	invalid   func(datagram []byte)                      // takes in one of package invalidation
	meters    *meters
	screen    *screen
	quiet     *limiter

	packetCh chan *memberlist.Packet
	streamCh chan net.Conn
	closing  chan struct{}
	close    sync.Once
	wg       sync.WaitGroup

	packetsIn, packetsOut, strange, dropped atomic.Int64
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func (t *transport) start() {
	t.wg.Go(t.readPackets)
}

func (t *transport) readPackets() {
	buf := make([]byte, maxPacket+1)
	for {
		n, from, err := t.packets.ReadFrom(buf)
		now := time.Now()
		if err != nil {
			select {
			case <-t.closing:
				return
			case <-time.After(time.Millisecond):
				continue // a socket error concerns one packet
			}
		}
		t.packetsIn.Add(1)
		opened := t.open(buf[:n], from)
		if opened == nil {
			t.strange.Add(1)
			t.meters.in.packet(Membership, n) // as far as can be told
			continue
		}
		t.meters.in.packet(Sealing, n-len(opened))
		kind := kindOf(opened)
		if kind == ofInvalidation {
			t.meters.in.packet(Invalidations, len(opened))
			t.invalid(opened)
			continue
		}
		if kind == ofExchange {
			t.exchange(opened, addrPortOf(from))
			continue
		}
		t.meters.in.packet(Membership, len(opened))
		screened, err := t.screen.packet(opened, addrOf(from))
		if err != nil {
			t.refused(addrOf(from), err)
			continue
		}
		t.deliver(screened, from, now)
	}
}

// deliver gives memberlist a packet.
func (t *transport) deliver(b []byte, from net.Addr, at time.Time) {
	select {
	case t.packetCh <- &memberlist.Packet{Buf: slices.Concat(plainHeader, b), From: from, Timestamp: at}:
	default:
		t.dropped.Add(1)
	}
}

// probe sends a newcomer a probe.
func (t *transport) probe(b []byte, to netip.AddrPort) {
	if t.allowed(to.Addr()) && t.write(b, to) == nil {
		t.meters.out.packet(Membership, len(b))
	}
}

// refused counts a packet that the screen does not let through, and says so.
func (t *transport) refused(from netip.Addr, err error) {
	t.strange.Add(1)
	t.quiet.log(slog.LevelWarn, "screen "+from.String(), "refused a packet of membership", "from", from, "err", err)
}

// A packetKind is the upper four bits of the first byte of an opened packet.
type packetKind byte

const (
	ofMembership   packetKind = 0 // memberlist's, without its label
	ofExchange     packetKind = exchange.ProtocolVersion
	ofInvalidation packetKind = invalidation.PushByte >> 4
	ofNobody       packetKind = 0xff
)

func kindOf(packet []byte) packetKind {
	if len(packet) > 0 {
		switch k := packetKind(packet[0] >> 4); k {
		case ofMembership, ofExchange, ofInvalidation:
			return k
		}
	}
	return ofNobody
}

// open returns the packet in b; nil if it is not for this node.
func (t *transport) open(b []byte, from net.Addr) []byte {
	if len(b) > maxPacket || !t.allowed(addrOf(from)) {
		return nil
	}
	packet := t.ring().open(b)
	if packet == nil && (len(b) > sealBytes && b[0] == sealedByte || kindOf(b) != ofNobody) {
		t.foreign(addrPortOf(from)) // of another secret, or without one
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
	return t.advertise.Addr().AsSlice(), int(t.advertise.Port()), nil
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	to, err := netip.ParseAddrPort(a.Addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip: packet to %q: %w", a.Addr, err)
	}
	b = bytes.TrimPrefix(b, plainHeader)
	if err = t.write(b, to); err == nil {
		t.meters.out.packet(Membership, len(b))
	}
	return time.Now(), err
}

// write sends a packet.
func (t *transport) write(b []byte, to netip.AddrPort) error {
	sealed := t.ring().seal(b)
	_, err := t.packets.WriteTo(sealed, net.UDPAddrFromAddrPort(to))
	if err == nil {
		t.meters.out.packet(Sealing, len(sealed)-len(b))
		t.packetsOut.Add(1)
	}
	return err
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout sets a deadline on what it returns, because memberlist
// writes its label before it sets one.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := t.dial(ctx, a.Addr)
	if err != nil {
		return nil, err
	}
	c = t.screen.stream(t.meters.members(c), false)
	c.SetDeadline(time.Now().Add(timeout))
	return c, nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streamCh }

// handOver gives memberlist an incoming stream.
func (t *transport) handOver(c net.Conn) {
	c = t.screen.stream(c, true)
	select {
	case t.streamCh <- c:
	case <-t.closing:
		c.Close()
	}
}

// Shutdown stops the packet loop. The listener is the node's to close.
func (t *transport) Shutdown() error {
	t.close.Do(func() {
		close(t.closing)
		t.packets.Close()
	})
	t.wg.Wait()
	return nil
}
