package node

import (
	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
)

// neighbours begins to follow the Squids that the configuration names, if any.
func (n *Node) neighbours(dial dialFunc) *squid.Neighbours {
	if len(n.cfg.SquidPeers) == 0 {
		return nil
	}
	return squid.New(squid.Config{Addrs: n.cfg.SquidPeers, Dial: dial, Logger: n.log})
}

// squidMembers lists the Squids among the members, under names that no peer has.
func (n *Node) squidMembers() (list []admin.Member) {
	if n.squids == nil {
		return nil
	}
	for _, s := range n.squids.Status() {
		list = append(list, admin.Member{
			Name: s.Name, State: s.State, Since: s.Since, Service: s.Addr,
			Current: s.Current, Keys: uint64(s.Keys), FalsePositiveRate: s.FalsePositiveRate,
			Age: s.Age.Seconds(), MemoryBytes: s.MemoryBytes,
			Hits: s.Hits, FalseHits: s.FalseHits, Failures: s.Failures,
		})
	}
	return list
}
