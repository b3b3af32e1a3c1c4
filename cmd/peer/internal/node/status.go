package node

import (
	"context"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/table"
	"github.com/summarycache/summarycache/gossip"
)

// Status returns the state of the node. A part that does not answer in time is represented by its
// last answer.
func (n *Node) Status() admin.Status {
	s := admin.Status{
		Name: n.config().Name, Cluster: n.config().Cluster, Zone: n.config().Zone, Version: n.o.Version, Started: n.started, Now: time.Now(),
		State: *n.state.Load(), Addresses: n.Addresses(), Encrypted: n.config().Secret != nil,
		Config: *n.reloads.Load(), Upgrade: *n.upgrades.Load(), Health: n.Health(), Origins: n.proxy.FailingOrigins(), Traffic: n.proxy.Counters(),
	}
	s.Clients.Open, s.Clients.Dropped, s.Clients.Refused = n.gates.clients.Stats()
	s.Memory = n.memory()
	deadline, lost, zones := n.proxy.SiblingLoad()
	s.Siblings = admin.Siblings{Deadline: deadline.Seconds(), Lost: lost, ZoneBytes: zones}
	s.Late = n.lateness.Now().Seconds()
	s.Ready = s.State == serving || s.State == starting && n.o.Continues
	switch {
	case n.config().Origin != nil:
		s.Origin = n.config().Origin.String()
	case n.config().Reverse():
		s.Origin = table.Of(len(n.config().Sites), "site")
	}
	if n.config().PeerTLS != nil {
		s.CertificateUntil = n.config().PeerTLS.Until()
	}
	s.Traffic.OwnersAsked, s.Traffic.FetchersFound, s.Traffic.LookupsSent = n.coalescer.Counts()
	n.askParts(&s)
	return s
}

// askParts fills in the states of the parts that may hang, all at the same time.
func (n *Node) askParts(s *admin.Status) {
	late, cancel := context.WithTimeout(context.Background(), statusWait)
	defer cancel()
	var all sync.WaitGroup
	var now [4]bool
	all.Go(func() { s.Digest, now[0] = n.readings.digest.get(late, n.digest) })
	all.Go(func() { s.Exchange, now[1] = n.readings.exchange.get(late, n.exchange) })
	all.Go(func() { s.Members, now[2] = n.readings.members.get(late, n.allMembers) })
	all.Go(func() { s.Store, now[3] = n.readings.store.get(late, n.proxy.Store().Stats) })
	all.Wait()
	for i, name := range []string{"digest", "exchange", "members", "store"} {
		if !now[i] {
			s.Health.Missing = append(s.Health.Missing, name)
		}
	}
	s.Members = append([]admin.Member{}, s.Members...) // never null in JSON, and not shared with the reading
}

// allMembers returns the other peers and the Squids.
func (n *Node) allMembers() (list []admin.Member) {
	runs := make(map[string]admin.ClusterRow)
	if known := n.readings.cluster.last.Load(); known != nil {
		for _, r := range known.Peers {
			runs[r.Peer] = r
		}
	}
	for _, m := range n.gossip.Members() {
		out := n.member(m)
		out.Version, out.Started = runs[m.Name].Version, runs[m.Name].Started
		list = append(list, out)
	}
	return append(list, n.squidMembers()...)
}

func (n *Node) digest() admin.Digest {
	filter := n.holdings.Keys().Filter()
	f := filter.Current()
	g := f.Geometry()
	v := f.Version()
	return admin.Digest{
		Keys: filter.Len(), Published: f.Keys(), Planned: n.holdings.Keys().Inside().Planned(), Replans: n.holdings.Keys().Inside().Replans(), Bits: g.Bits, Hashes: g.Hashes,
		FalsePositiveRate: f.FalsePositiveRate(), Epoch: v.Epoch, Sequence: v.Sequence,
		MemoryBytes: f.MemoryBytes(), Saturated: n.holdings.Keys().Inside().Saturated(),
	}
}

func (n *Node) exchange() admin.Exchange {
	all := n.gossip.Stats()
	e := all.Exchange
	x := admin.Exchange{Stats: e, Sent: all.Out, Received: all.In, ReplicaBytes: all.ReplicaBytes, IndexBytes: all.IndexBytes, LagMax: e.LagMax.Seconds(),
		Questions: all.Questions, JoinsRefused: all.JoinsRefused, ClustersRefused: all.ClustersRefused, Half: len(n.gossip.Inside().HalfMembers()), Light: all.Light}
	x.SquidSent, x.SquidBytes = n.forSquids.Served()
	if e.Lags > 0 {
		x.LagMean = e.LagSum.Seconds() / float64(e.Lags)
	}
	return x
}

func (n *Node) member(m gossip.Member) admin.Member {
	state, record := n.recordOf(m.Name, m.Alive, m.Left)
	return admin.Member{
		Name: m.Name, State: state, Since: m.Since, Gossip: m.Addr, Service: m.Service, Zone: m.Zone, Light: m.Light, Hears: m.Hears,
		Current: m.Alive && !m.Behind, Keys: m.Keys, FalsePositiveRate: m.FalsePositiveRate,
		Age: m.Age.Seconds(), MemoryBytes: m.MemoryBytes, Record: record,
	}
}

// recordOf returns the health record of a peer or a Squid, and the state that follows from
// this record and from membership.
func (n *Node) recordOf(name string, alive, left bool) (state string, _ admin.Record) {
	r := n.health.Of(name)
	switch {
	case left:
		state = "left"
	case !alive:
		state = "dead"
	case r.Quarantined:
		state = "quarantined"
	case r.Suspended:
		state = "suspended"
	default:
		state = "alive"
	}
	return state, admin.Record{Record: r, RoundTrip: r.RoundTrip.Seconds()}
}

// Holds reports whether the store has a response under an identity (see package
// cache). It does not count as a use.
func (n *Node) Holds(identity string) bool {
	_, ok := n.proxy.Store().Peek(identity)
	return ok
}
