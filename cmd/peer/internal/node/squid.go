package node

import (
	"iter"
	"net/http"

	format "github.com/summarycache/summarycache/digest/squid"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/conn"
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// neighbours begins to follow the Squids that the configuration names, if any.
func (n *Node) neighbours(o Options) *squid.Neighbours {
	if len(n.cfg.SquidPeers) == 0 {
		return nil
	}
	c := o.Squids
	c.Addrs, c.Dial, c.Logger = n.cfg.SquidPeers, guarded(n.dial(o), &conn.Access{Peers: n.gossipAddrs, Admin: n.proxyAccess().Admin}), n.log
	return squid.New(c)
}

// ownPaths are where Squids fetch this peer's digest. Without Squids there is none: the
// digest would tell strangers more than they can find out by requests.
func (n *Node) ownPaths() map[string]http.Handler {
	if len(n.cfg.SquidPeers) == 0 {
		return map[string]http.Handler{}
	}
	n.forSquids = &squid.Publisher{Objects: n.listed, Logger: n.log}
	return map[string]http.Handler{format.Path: n.forSquids}
}

// listed are the objects that are advertised to siblings.
func (n *Node) listed() iter.Seq[squid.Object] {
	return func(yield func(squid.Object) bool) {
		for o := range n.proxy.Store().Listed() {
			if !yield(squid.Object{Identity: o.Key(), FreshUntil: o.ListUntil(), Generated: o.Generated()}) {
				return
			}
		}
	}
}

// servedToSquids counts the digests that Squids fetched, and their bytes.
func (n *Node) servedToSquids() (digests, bytes int64) {
	if n.forSquids == nil {
		return 0, 0
	}
	return n.forSquids.Served()
}

// squidMembers lists the Squids among the members, under names that no peer has.
func (n *Node) squidMembers() (list []admin.Member) {
	if n.squids == nil {
		return nil
	}
	for _, s := range n.squids.Status() {
		state, record := n.recordOf(s.Name, s.Alive, false)
		list = append(list, admin.Member{
			Name: s.Name, State: state, Since: s.Since, Service: s.Addr, Squid: true,
			Current: s.Current, Keys: uint64(s.Keys), FalsePositiveRate: s.FalsePositiveRate,
			Age: s.Age.Seconds(), MemoryBytes: s.MemoryBytes, Record: record,
		})
	}
	return list
}

// squidMatches adds to an explanation what the Squids' digests say.
func (n *Node) squidMatches(q *sibling.LookupRequest, steps []sibling.Ranked, out *admin.Explanation) {
	if n.squids == nil || len(q.Identities) == 0 {
		return
	}
	says := n.squids.Says(q)
	for i, s := range n.squids.Status() {
		state, record := n.recordOf(s.Name, s.Alive, false)
		out.Matches = append(out.Matches, n.expected(admin.Match{
			Peer: s.Name, State: state, Identity: "GET " + out.URL, Says: says[i],
			FalsePositiveRate: s.FalsePositiveRate, Age: s.Age.Seconds(), Record: record,
		}, steps))
	}
}
