package gossip

import (
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Stats counts what a node did since it was made, and what it holds now.
type Stats struct {
	// Exchange counts adverts, fetches, bodies and repairs.
	Exchange exchange.Stats

	Peers        int   // other members that are alive
	Replicas     int   // of them, those whose digest is in use
	Behind       int   // of them, those of whose digest something newer is known or supposed to exist
	ReplicaBytes int64 // memory of the replicas' filters
	IndexBytes   int64 // memory of the index that lookups ask

	PacketsIn, PacketsOut         int64 // memberlist's, adverts included
	PacketBytesIn, PacketBytesOut int64 // of those, as they travel, without the headers of IP and UDP
	PacketsStrange                int64 // dropped: not of this cluster, too long, or from an address not allowed
	PacketsDropped                int64 // dropped: memberlist was too slow
	AdvertsDropped                int64 // dropped: the node was too slow
	VectorBytesIn                 int64 // of other peers' lists of versions, compared every Config.SyncInterval

	ConnsAccepted int64
	ConnsRefused  int64 // beyond the limits, or from addresses not allowed
	ConnsStrange  int64 // closed for their first byte
	Malformed     int64 // requests that were none

	Lookups     int64 // calls of Candidates and CandidatesByKey
	Quarantines int64 // of peers whose digests were far from true: see Node.ReportFalseHit
	HooksLost   int64 // events that no hook was called for, because hooks were too slow
}

// DigestBytesIn returns all bytes received to keep replicas in step: adverts,
// vectors and bodies.
func (s Stats) DigestBytesIn() int64 {
	return s.VectorBytesIn + s.Exchange.AdvertBytesIn + s.Exchange.DeltaBytesIn + s.Exchange.SnapshotBytesIn
}

// DigestBytesOut returns all bytes sent for others' replicas: adverts and bodies.
func (s Stats) DigestBytesOut() int64 {
	return s.Exchange.AdvertBytesOut + s.Exchange.DeltaBytesOut + s.Exchange.SnapshotBytesOut
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	s := Stats{
		PacketsIn:      n.transport.packetsIn.Load(),
		PacketsOut:     n.transport.packetsOut.Load(),
		PacketBytesIn:  n.transport.bytesIn.Load(),
		PacketBytesOut: n.transport.bytesOut.Load(),
		PacketsStrange: n.transport.strange.Load(),
		PacketsDropped: n.transport.dropped.Load(),
		AdvertsDropped: n.datagramsLost.Load(),
		VectorBytesIn:  n.syncBytes.Load(),
		ConnsAccepted:  n.acceptor.accepted.Load(),
		ConnsRefused:   n.acceptor.overCap.Load() + n.acceptor.notAllowed.Load(),
		ConnsStrange:   n.acceptor.strange.Load(),
		Malformed:      n.malformed.Load() + n.datagramsBad.Load(),
		Lookups:        n.lookups.Load(),
		Quarantines:    n.quarantines.Load(),
		HooksLost:      n.hooksLost.Load(),
	}
	for _, v := range *n.views.Load() {
		s.IndexBytes += int64(v.index.MemoryBytes())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Exchange = n.engine.Stats()
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
