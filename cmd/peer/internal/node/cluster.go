package node

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
)

// History returns the samples of the last hour, and one of now.
func (n *Node) History() []admin.Sample {
	return append(n.history.Samples(), admin.SampleOf(n.Status()))
}

// Events returns the last lines of the log.
func (n *Node) Events() []admin.Event { return n.events.Latest() }

// A clusterView has the last answers of all peers. They are reused for a moment, so that many
// readers cause one request to each peer. The turn of readings.cluster guards it.
type clusterView struct {
	admin.Cluster
	at time.Time
}

const (
	clusterFor  = time.Second            // how long answers are reused
	clusterWait = 700 * time.Millisecond // for the answers of all other peers
)

// Cluster returns a row for each peer, as the peers describe themselves.
func (n *Node) Cluster(ctx context.Context) admin.Cluster {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), clusterWait+100*time.Millisecond)
	defer cancel()
	c, now := n.readings.cluster.get(late, n.askCluster)
	if !now && c.Peers == nil {
		c.Peers = []admin.ClusterRow{admin.Silent(n.config().Name, "hangs", "hangs: /healthz says what")}
	}
	return c
}

func (n *Node) askCluster() admin.Cluster {
	if n.cluster.Peers != nil && time.Since(n.cluster.at) < clusterFor {
		return n.cluster.Cluster
	}
	rows := []admin.ClusterRow{admin.RowOf(n.Status())}
	for _, a := range askAll[admin.ClusterRow](context.Background(), n, commandRow, struct{}{}) {
		switch {
		case !a.member.Alive:
			a.said = admin.Silent("", "dead", a.err)
		case a.err != "":
			a.said = admin.Silent("", "no answer", a.err)
		}
		a.said.Peer = a.member.Name
		rows = append(rows, a.said)
	}
	n.cluster.Cluster, n.cluster.at = admin.ClusterOf(rows), time.Now()
	return n.cluster.Cluster
}

// Misses returns the last misses; see [admin.Source].
func (n *Node) Misses(ctx context.Context, q admin.PastRequest) admin.Misses {
	all := admin.Misses{Silent: []admin.Holder{}}
	own, others := n.past.Latest(n.config().Name, q), [][]admin.Miss(nil)
	if q.Everywhere {
		for _, a := range askAll[[]admin.Miss](ctx, n, commandPast, q) {
			if a.err != "" {
				all.Silent = append(all.Silent, admin.Holder{Peer: a.member.Name, Error: a.err, Stored: []engine.Stored{}})
			}
			others = append(others, a.said)
		}
	}
	all.Misses = admin.MissesOf(own, others, q.Last)
	return all
}

// Holders returns what each other peer stores; see [admin.Source]. Like a request to a sibling,
// it passes on neither cookies nor credentials.
func (n *Node) Holders(ctx context.Context, in admin.WhyRequest) []admin.Holder {
	in.Header = in.Header.Clone()
	in.Header.Del("Cookie")
	in.Header.Del("Authorization")
	list := []admin.Holder{}
	for _, a := range askAll[[]engine.Stored](ctx, n, commandHeld, in) {
		list = append(list, admin.Holder{Peer: a.member.Name, Error: a.err, Stored: append([]engine.Stored{}, a.said...)})
	}
	return list
}

// An answer is the answer of a member, or why there is none.
type answer[T any] struct {
	member gossip.Member
	said   T
	err    string
}

// askAll sends the same command to all other members at once, and returns their answers. It
// omits members that left, and sends nothing to dead members.
func askAll[T any](ctx context.Context, n *Node, operation string, in any) []answer[T] {
	ctx, cancel := context.WithTimeout(ctx, clusterWait)
	defer cancel()
	answers := []answer[T]{}
	for _, m := range n.gossip.Members() {
		if !m.Left {
			answers = append(answers, answer[T]{member: m})
		}
	}
	var all sync.WaitGroup
	for i := range answers {
		a := &answers[i]
		if !a.member.Alive {
			a.err = "dead for " + admin.Span(time.Since(a.member.Since))
			continue
		}
		all.Go(func() {
			err := n.control.Call(ctx, n.peers, a.member.Name, a.member.Service, operation, in, &a.said)
			var op *net.OpError
			switch {
			case err == nil:
			case ctx.Err() != nil:
				a.err = "no answer within a second"
			case errors.As(err, &op):
				a.err = op.Err.Error()
			default:
				a.err = err.Error()
			}
		})
	}
	all.Wait()
	return answers
}
