package node

import (
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/gossip"
)

// Status tells everything about the node as it is now.
func (n *Node) Status() admin.Status {
	s := admin.Status{
		Name: n.cfg.Name, Version: n.version, Started: n.started, Now: time.Now(),
		State: *n.state.Load(), Addresses: n.Addresses(), Encrypted: n.cfg.Secret != nil,
		Traffic: n.proxy.Counters(), Store: n.proxy.Store().Stats(), Digest: n.digest(), Exchange: n.exchange(),
		Members: []admin.Member{},
	}
	s.Ready = s.State == serving
	if n.cfg.Origin != nil {
		s.Origin = n.cfg.Origin.String()
	}
	if n.cfg.PeerTLS != nil {
		_, s.CertificateUntil = n.cfg.PeerTLS.Validity()
	}
	for _, m := range n.gossip.Members() {
		s.Members = append(s.Members, member(m))
	}
	s.Members = append(s.Members, n.squidMembers()...)
	s.Traffic.HomesAsked, s.Traffic.FetchersFound = n.crowd.Asked.Load(), n.crowd.Told.Load()
	for i := range s.Members {
		s.Members[i].RoundTrip = n.proxy.RoundTripTime(s.Members[i].Name).Seconds()
	}
	s.Plan = n.plan(s)
	return s
}

func (n *Node) digest() admin.Digest {
	filter := n.holdings.Filter()
	f := filter.Current()
	g := f.Geometry()
	v := f.Version()
	t := filter.Tally()
	return admin.Digest{
		Keys: t.Keys, Published: f.Keys(), Planned: n.shape.planned.Load(), Replans: n.shape.replans.Load(), Bits: g.Bits, Hashes: g.Hashes,
		FalsePositiveRate: f.FalsePositiveRate(), Epoch: v.Epoch, Sequence: v.Sequence,
		MemoryBytes: f.MemoryBytes(), Saturated: t.Saturated,
	}
}

func (n *Node) exchange() admin.Exchange {
	all := n.gossip.Stats()
	e, in, out := all.Exchange, all.In, all.Out
	x := admin.Exchange{
		Published: e.Published, AdvertsSent: e.AdvertsOut, AdvertBytesSent: out[gossip.Adverts], AdvertsHeard: e.AdvertsIn,
		AdvertBytesHeard: in[gossip.Adverts],
		SnapshotsSent:    e.SnapshotsOut, SnapshotBytesSent: out[gossip.Snapshots],
		SnapshotsHeard: e.SnapshotsIn, SnapshotBytesHeard: in[gossip.Snapshots],
		DeltasSent: e.DeltasOut, DeltaBytesSent: out[gossip.Deltas], DeltasHeard: e.DeltasIn, DeltaBytesHeard: in[gossip.Deltas],
		RequestBytesSent: out[gossip.Requests] + out[gossip.Greetings], RequestBytesHeard: in[gossip.Requests] + in[gossip.Greetings],
		VectorBytesSent: out[gossip.Vectors], VectorBytesHeard: in[gossip.Vectors],
		MembershipBytesSent: out[gossip.Membership], MembershipBytesHeard: in[gossip.Membership],
		SealingBytesSent: out[gossip.Sealing], SealingBytesHeard: in[gossip.Sealing],
		CarriedBytesSent: e.CarriedBytesOut, CarriedHeard: e.CarriedIn,
		Syncs: e.Syncs, Repairs: e.Repairs, Divergences: e.Divergences, Rejected: e.Rejected,
		ResumedBytes: e.ResumedBytes, ReplicaBytes: all.ReplicaBytes, IndexBytes: all.IndexBytes,
		LagMax: e.LagMax.Seconds(),
	}
	x.SquidSent, x.SquidBytesSent = n.servedToSquids()
	if e.Lags > 0 {
		x.LagMean = e.LagSum.Seconds() / float64(e.Lags)
	}
	return x
}

func member(m gossip.Member) admin.Member {
	state := "alive"
	switch {
	case m.Left:
		state = "left"
	case !m.Alive:
		state = "dead"
	case m.Quarantined:
		state = "quarantined"
	case m.Suspended:
		state = "suspended"
	}
	return admin.Member{
		Name: m.Name, State: state, Since: m.Since, Gossip: m.Addr, Service: m.Service,
		Current: m.Alive && !m.Behind, Keys: m.Keys, FalsePositiveRate: m.FalsePositiveRate,
		Age: m.Age.Seconds(), MemoryBytes: m.MemoryBytes,
		Hits: m.Hits, FalseHits: m.FalseHits, Failures: m.Failures,
	}
}

// Holds reports whether the store has a response under an identity (see package
// cache) at this moment, without using it.
func (n *Node) Holds(identity string) bool {
	_, ok := n.proxy.Store().Peek(identity)
	return ok
}
