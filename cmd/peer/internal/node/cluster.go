package node

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/control"
	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
)

// record samples the counters until the node stops.
func (n *Node) record() {
	n.history.Add(admin.SampleOf(n.Status()))
	ticker := time.NewTicker(admin.HistoryStep)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			n.history.Add(admin.SampleOf(n.Status()))
		case <-n.stopped:
			return
		}
	}
}

// History returns the samples of the last hour, and one of now.
func (n *Node) History() []admin.Sample {
	return append(n.history.Samples(), admin.SampleOf(n.Status()))
}

// plan says what the digest is made for. s is complete but for it.
func (n *Node) plan(s admin.Status) admin.Plan {
	p := admin.Plan{Objects: s.Digest.Planned, Peers: 1, Churn: n.history.InsertRate(), Binding: "--false-positives"}
	for _, m := range s.Members {
		if m.Here() {
			p.Peers++
		}
	}
	f := n.cfg.FalsePositives
	d, err := digest.Plan(digest.Goal{
		Objects: p.Objects, Peers: max(p.Peers, 2), Churn: p.Churn, FalseCandidates: f * float64(max(p.Peers-1, 1)), Interval: n.cfg.Publish,
	})
	if err != nil { // more objects than a plan can have
		p.FalsePositiveRate, p.Note = f, err.Error()
		return p
	}
	p.FalsePositiveRate, p.DigestBytes, p.UpdateBytes = d.FalsePositiveRate, d.SnapshotBytes, d.DeltaBytes
	if p.Peers > 1 {
		p.FalseCandidates, p.BytesPerSecond, p.MemoryBytes = d.FalseCandidates, d.BytesPerSecond, d.MemoryBytes
	}
	switch held := uint64(s.Digest.Keys); {
	case held > p.Objects:
		p.Note = "The peer holds more objects than its digest was planned for: it is being planned anew."
	case held > p.Objects-p.Objects/10:
		p.Note = "The peer holds nearly as many objects as its digest was planned for."
	default:
		p.Note = "The digest has room: its false positives are below what they may be."
	}
	return p
}

// A clusterView is what all peers said last, kept for a moment so that many
// readers ask the others once. It is the reading's turn that guards it.
type clusterView struct {
	rows []admin.ClusterRow
	at   time.Time
}

const (
	clusterFor  = 5 * time.Second        // for which an answer is good
	clusterWait = 700 * time.Millisecond // for the others' answers
)

// Cluster returns what every living peer says of those that it asked.
func (n *Node) Cluster(ctx context.Context) []admin.ClusterRow {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), clusterWait+100*time.Millisecond)
	defer cancel()
	rows, now := n.readings.cluster.get(late, n.askCluster)
	if !now && rows == nil {
		rows = []admin.ClusterRow{{Peer: n.cfg.Name, Error: "hangs: /healthz says what", Asked: []admin.ClusterAsk{}}}
	}
	return rows
}

func (n *Node) askCluster() []admin.ClusterRow {
	if n.cluster.rows != nil && time.Since(n.cluster.at) < clusterFor {
		return n.cluster.rows
	}
	ctx, cancel := context.WithTimeout(context.Background(), clusterWait)
	defer cancel()
	rows := []admin.ClusterRow{admin.RowOf(n.Status())}
	var living []gossip.Member
	for _, m := range n.gossip.Members() {
		if m.Alive {
			living = append(living, m)
		}
	}
	others := make([]admin.ClusterRow, len(living))
	var all sync.WaitGroup
	for i, m := range living {
		all.Go(func() { others[i] = n.rowOf(ctx, m) })
	}
	all.Wait()
	n.cluster.rows, n.cluster.at = append(rows, others...), time.Now()
	return n.cluster.rows
}

func (n *Node) rowOf(ctx context.Context, m gossip.Member) (r admin.ClusterRow) {
	err := n.control.Call(ctx, n.peers, m.Name, m.Service, orderRow, struct{}{}, &r)
	switch {
	case err == nil:
		r.Peer = m.Name
		return r
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("no answer within a second")
	case errors.Is(err, control.ErrNoSecret):
		err = errors.New("peers without a secret do not answer each other")
	}
	return admin.ClusterRow{Peer: m.Name, Error: cmp.Or(err.Error(), "no answer"), Asked: []admin.ClusterAsk{}}
}
