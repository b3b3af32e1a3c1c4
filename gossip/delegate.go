package gossip

import (
	"bytes"
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
type delegate struct{ g *group }

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
		Incarnation: d.g.incarnation.Load(),
		Canary:      canaryOf(d.g.digestSeeds()[0]),
		Service:     d.g.cfg.Service,
		Secrets:     d.g.ring.Load().IDs(),
		Zone:        d.g.cfg.Zone,
		Light:       d.g.cfg.Light,
		Settings:    d.g.settings.Load().sent,
		Farewell:    farewellOf(d.g.farewell[:]),
	}
	return append(m.AppendTo(make([]byte, 0, exchange.MaxMeta)), d.g.cfg.later...)
}

// The exchange does not use memberlist's gossip.
func (delegate) NotifyMsg([]byte)                           {}
func (delegate) GetBroadcasts(overhead, limit int) [][]byte { return nil }
func (delegate) LocalState(join bool) []byte                { return nil }
func (delegate) MergeRemoteState(buf []byte, join bool)     {}

func (d delegate) NotifyJoin(node *memberlist.Node)   { d.g.noteMember(node, true) }
func (d delegate) NotifyUpdate(node *memberlist.Node) { d.g.noteMember(node, true) }
func (d delegate) NotifyLeave(node *memberlist.Node)  { d.g.noteMember(node, false) }

// NotifyConflict logs that two addresses claim one name.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.log.Error("two peers have one name; the second is ignored while the first lives",
		"member", existing.Name, "addr", existing.Address(), "other", other.Address())
}

// AckPayload returns the payload of the answer to a probe: the sum of what this peer knows. To
// probes of newcomers, the hash of this peer's metadata follows: they believe no other peer about
// these (see [screen.confirmed]).
func (d delegate) AckPayload() []byte {
	d.g.meters.out.move(kindMembership, kindVectors, guard.SumBytes)
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, guard.AnswerBytes), d.g.callbacks.sum())
	if !d.g.transport.screen.WasProbed() {
		return b
	}
	own := guard.HashOfMeta(d.g.cfg.Name, d.NodeMeta(0))
	return append(b, own[:]...)
}

// NotifyPingComplete compares the sum in the answer to a probe. An answer of this peer's transport has none.
func (d delegate) NotifyPingComplete(other *memberlist.Node, rtt time.Duration, payload []byte) {
	if len(payload) == guard.SumBytes || len(payload) == guard.AnswerBytes {
		d.g.probed(d.g.live(other.Name), true, false)
		d.g.compare(other.Name, payload)
	}
}

// compare compares the sum of another peer, if there is one, with this peer's.
func (g *group) compare(name string, b []byte) {
	if len(b) >= guard.SumBytes {
		g.meters.in.move(kindMembership, kindVectors, guard.SumBytes)
		g.callbacks.compare(name, binary.LittleEndian.Uint32(b))
	}
}

var errName = errors.New("not a valid name")

// NotifyAlive excludes peers that cannot take part.
func (d delegate) NotifyAlive(node *memberlist.Node) error {
	err := errName
	if exchange.ValidName(node.Name) {
		var meta exchange.Meta
		if meta, err = exchange.DecodeMeta(node.Meta); err == nil {
			err = meta.Compatible(canariesOf(d.g.digestSeeds())...)
		}
	}
	if err == nil || node.Name == d.g.cfg.Name {
		return nil
	}
	d.g.log.Error("ignoring a member that cannot take part",
		"member", node.Name, "addr", node.Address(), "err", err)
	return err
}

// noteMember queues the latest state of a member for the node's loop.
func (g *group) noteMember(node *memberlist.Node, up bool) {
	if node.Name == g.cfg.Name {
		return
	}
	if !up {
		if m := (*g.members.Load())[node.Name]; m != nil {
			m.up.Store(false)
		}
	}
	ip, _ := netip.AddrFromSlice(node.Addr)
	ev := memberEvent{node.Name, netip.AddrPortFrom(ip.Unmap(), node.Port), bytes.Clone(node.Meta), up}
	g.inbox.Lock()
	g.inbox.members[node.Name] = ev
	g.inbox.Unlock()
	g.callbacks.wake()
}
