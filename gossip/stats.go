package gossip

import (
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// Stats has the counters of a node, and its present state.
type Stats struct {
	// Exchange counts adverts, fetches, bodies and repairs.
	Exchange exchange.Stats
	// Invalidations has the counters of package invalidation.
	Invalidations invalidation.Stats

	// Questions counts those of light peers.
	Questions exchange.Questions
	// Light says that this peer keeps no digests of others.
	Light bool

	Peers        int   // other members that are alive
	Replicas     int   // live members whose digest is in use
	Behind       int   // live members whose digest has changed, or may have, since the version in use
	ReplicaBytes int64 // memory of the replicas' filters
	IndexBytes   int64 // memory of the index that lookups use

	In, Out Traffic // all bytes on the gossip port

	JoinsRefused    int64 // attempts of this peer to join that another one refused
	ClustersRefused int64 // packets and streams of other clusters, by name; see [Config.Cluster]

	PacketsStrange int64 // dropped: not of this cluster, or not a packet that a peer sends
	ConnsAccepted  int64
	ConnsRefused   int64 // beyond the limits
	ConnsStrange   int64 // closed because of their first byte
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	n.made()
	s := Stats{
		JoinsRefused: n.joinsRefused.Load(), ClustersRefused: n.otherClusters.refused.Load(),
		PacketsStrange: n.transport.strange.Load(),
		ConnsAccepted:  n.acceptor.accepted.Load(),
		ConnsRefused:   n.acceptor.refused.Load(),
		ConnsStrange:   n.acceptor.strange.Load(),
		IndexBytes:     int64(n.index.MemoryBytes()),
		Invalidations:  n.removals.Stats(),
	}
	s.Light = n.cfg.Light
	n.asking.with(func() { s.Questions = n.asking.count })
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Exchange = n.engine.Stats()
	s.In, s.Out = n.meters.in.traffic(), n.meters.out.traffic()
	s.In.Adverts += s.Exchange.AdvertBytesReceived
	s.In.Deltas += s.Exchange.CarriedBytesReceived
	s.Out.Adverts += s.Exchange.AdvertBytesSent
	s.Out.Deltas += s.Exchange.CarriedBytesSent
	for name, m := range *n.members.Load() {
		r, ok := n.engine.Replica(name)
		if !ok || !m.up.Load() {
			continue
		}
		s.Peers++
		inUse := m.inUse.Load()
		if r.Behind || inUse != r.Filter {
			s.Behind++
		}
		if inUse != nil {
			s.Replicas++
			s.ReplicaBytes += int64(inUse.MemoryBytes())
		}
	}
	return s
}
