package gossip

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// delegate has the methods that memberlist calls, from its packet loop and under its own locks. So
// they copy, queue and return, and never call memberlist.
type delegate struct{ n *Node }

var (
	_ memberlist.Delegate         = delegate{}
	_ memberlist.EventDelegate    = delegate{}
	_ memberlist.ConflictDelegate = delegate{}
	_ memberlist.AliveDelegate    = delegate{}
	_ memberlist.PingDelegate     = delegate{}
)

func (d delegate) NodeMeta(limit int) []byte {
	m := exchange.Meta{
		MinVersion:  exchange.ProtocolVersion,
		MaxVersion:  exchange.ProtocolVersion,
		Incarnation: d.n.incarnation.Load(),
		Canary:      canaryOf(d.n.digestSeeds()[0]),
		Service:     d.n.cfg.Service,
		Secrets:     d.n.ring.Load().IDs(),
	}
	if d.n.signs != nil {
		m.Key = d.n.signs.Public().(ed25519.PublicKey)
	}
	return m.AppendTo(make([]byte, 0, exchange.MaxMeta))
}

// handleDatagram queues a datagram for the engine, which counts its bytes. A farewell is dropped
// unless it is from the peer itself.
func (n *Node) handleDatagram(b []byte, from netip.AddrPort) {
	if len(b) <= exchange.MaxDatagram && noteFarewell(*n.members.Load(), b, from) {
		select {
		case n.datagrams <- b:
			return
		default: // its sender repeats it, or the next sync makes up for it
		}
	}
	n.meters.in.packet(Adverts, len(b))
}

// noteFarewell records that a peer is about to leave if b is a farewell from that peer's address. It
// returns false for any other farewell, which must be ignored.
func noteFarewell(table memberTable, b []byte, from netip.AddrPort) bool {
	if len(b) == 0 || b[0]&0xf != byte(exchange.Farewell) {
		return true
	}
	a, err := exchange.DecodeAdvert(b)
	if err != nil {
		return true
	}
	for name, m := range table {
		if exchange.IDOf(name) != a.Head.Origin {
			continue
		}
		if info := m.info.Load(); info.addr == from && info.meta.Incarnation == a.Head.Version.Incarnation {
			m.left.Store(info.meta.Incarnation)
			return true
		}
	}
	return false
}

// The exchange does not use memberlist's gossip.
func (delegate) NotifyMsg([]byte)                           {}
func (delegate) GetBroadcasts(overhead, limit int) [][]byte { return nil }
func (delegate) LocalState(join bool) []byte                { return nil }
func (delegate) MergeRemoteState(buf []byte, join bool)     {}

func (d delegate) NotifyJoin(node *memberlist.Node)   { d.n.noteMember(node, true) }
func (d delegate) NotifyUpdate(node *memberlist.Node) { d.n.noteMember(node, true) }
func (d delegate) NotifyLeave(node *memberlist.Node)  { d.n.noteMember(node, false) }

// NotifyConflict logs that two addresses claim one name.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.n.log.Error("two peers have one name; the second is ignored while the first lives",
		"member", existing.Name, "addr", existing.Address(), "other", other.Address())
}

// AckPayload returns the payload of the answer to a probe: the sum of what this peer knows. To
// probes of newcomers, the hash of this peer's metadata follows: they believe no other peer about
// these (see [screen.confirmed]).
func (d delegate) AckPayload() []byte {
	d.n.meters.out.move(Membership, Vectors, guard.SumBytes)
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, guard.AnswerBytes), d.n.knownSum())
	if !d.n.transport.screen.WasProbed() {
		return b
	}
	own := guard.HashOfMeta(d.n.cfg.Name, d.NodeMeta(0))
	return append(b, own[:]...)
}

// NotifyPingComplete compares the sum in the answer to a probe. An answer of this peer's transport has none.
func (d delegate) NotifyPingComplete(other *memberlist.Node, rtt time.Duration, payload []byte) {
	if len(payload) == guard.SumBytes || len(payload) == guard.AnswerBytes {
		d.n.compareSum(other.Name, payload)
	}
}

// knownSum returns the sum of what this peer knows, as far as its loops have come.
func (n *Node) knownSum() uint32 { return n.sum.Load() + n.invalidations.sum.Load() }

// compareSum makes the loop compare the sum of another peer, if there is one.
func (n *Node) compareSum(name string, b []byte) {
	if len(b) < guard.SumBytes {
		return
	}
	sum := binary.LittleEndian.Uint32(b)
	n.meters.in.move(Membership, Vectors, guard.SumBytes)
	select {
	case n.calls <- func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.engine.HandleSum(time.Now(), name, sum == n.ownSum()+n.invalidations.sum.Load())
	}:
	default: // later ones will do
	}
}

var errName = errors.New("not a valid name")

// NotifyAlive excludes peers that cannot take part.
func (d delegate) NotifyAlive(node *memberlist.Node) error {
	err := errName
	if exchange.ValidName(node.Name) {
		var meta exchange.Meta
		if meta, err = exchange.DecodeMeta(node.Meta); err == nil {
			err = meta.Compatible(canariesOf(d.n.digestSeeds())...)
		}
	}
	if err == nil || node.Name == d.n.cfg.Name {
		return nil
	}
	d.n.log.Error("ignoring a member that cannot take part",
		"member", node.Name, "addr", node.Address(), "err", err)
	return err
}

// noteMember queues the latest state of a member for the node's loop.
func (n *Node) noteMember(node *memberlist.Node, up bool) {
	if node.Name == n.cfg.Name {
		return
	}
	if !up {
		if m := (*n.members.Load())[node.Name]; m != nil {
			m.up.Store(false)
		}
	}
	ip, _ := netip.AddrFromSlice(node.Addr)
	ev := memberEvent{node.Name, netip.AddrPortFrom(ip.Unmap(), node.Port), bytes.Clone(node.Meta), up}
	n.inbox.Lock()
	n.inbox.members[node.Name] = ev
	n.inbox.Unlock()
	n.wake()
}
