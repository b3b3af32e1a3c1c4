package node

import (
	"iter"
	"net/http"
	"time"

	format "github.com/summarycache/summarycache/digest/squid"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/squid"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A locator finds siblings by the digests that gossip keeps, and by those of the Squids beside the
// cluster. All are set before the first request.
type locator struct {
	*gossip.Node
	*squid.Neighbours
}

// neighbours starts fetching the digests of the Squids that the configuration names.
func (n *Node) neighbours() *squid.Neighbours {
	c := n.o.Squids
	c.Dial, c.Logger = guarded(n.dial(), n.siblingAccess), n.log
	all := squid.New(c)
	all.Use(n.config().SquidPeers)
	return all
}

// own answers at the paths that are this peer's, of which one is where Squids fetch its digest. Without Squids there is
// none, since the digest would reveal more to strangers than requests can.
func (n *Node) own(path string) http.Handler {
	switch {
	case path == peering.CoalescePath:
		return n.coalescer
	case path == format.Path && len(n.config().SquidPeers) > 0:
		return n.forSquids
	}
	return nil
}

// A dated object is one of the store on disk.
type dated interface {
	Key() string
	ListUntil() time.Time // when it stops being listed
	Generated() time.Time // when its content was, in whole seconds; zero = unknown
}

// listed yields the stored objects that are advertised to siblings.
func (n *Node) listed() iter.Seq[squid.Object] {
	return func(yield func(squid.Object) bool) {
		for listed := range n.proxy.Store().Listed() {
			o := listed.(dated)
			if !yield(squid.Object{Identity: o.Key(), FreshUntil: o.ListUntil(), Generated: o.Generated()}) {
				return
			}
		}
	}
}

// squidMembers lists the Squids as members, under names that no peer can have.
func (n *Node) squidMembers() (list []admin.Member) {
	for _, s := range n.squids.Status(nil) {
		state, record := n.recordOf(s.Name, s.Alive, false)
		list = append(list, admin.Member{
			Name: s.Name, State: state, Since: s.Since, Service: s.Addr, Squid: true,
			Current: s.Current, Keys: uint64(s.Keys), FalsePositiveRate: s.FalsePositiveRate,
			Age: s.Age.Seconds(), MemoryBytes: s.MemoryBytes, Record: record,
		})
	}
	return list
}

// squidMatches adds to an explanation the results of lookups in the Squids' digests.
func (n *Node) squidMatches(q *sibling.LookupRequest, steps []sibling.Ranked, out *admin.Explanation) {
	if len(q.Identities) == 0 {
		return
	}
	for _, s := range n.squids.Status(q) {
		state, record := n.recordOf(s.Name, s.Alive, false)
		out.Matches = append(out.Matches, n.expected(admin.Match{
			Peer: s.Name, State: state, Identity: "GET " + out.URL, Says: s.Says,
			FalsePositiveRate: s.FalsePositiveRate, Age: s.Age.Seconds(), Record: record,
		}, steps))
	}
}
