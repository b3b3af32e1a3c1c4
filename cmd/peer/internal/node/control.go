package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/admin"
	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// purgeWait is how long an operator waits for a purge, here and at the other peers. A purge that
// takes longer goes on.
const purgeWait = 800 * time.Millisecond

const (
	commandRow  = "row"  // returns an [admin.ClusterRow]
	commandPast = "past" // returns the misses that an [admin.PastRequest] selects, as []admin.Miss
	commandHeld = "held" // returns the responses stored for the URL of an [admin.WhyRequest], as []engine.Stored
)

// handleCommand carries out a command of another peer.
func (n *Node) handleCommand(_ context.Context, _, operation string, body []byte) (any, error) {
	switch operation {
	case commandRow:
		return admin.RowOf(n.Status()), nil
	case commandPast:
		in, err := as[admin.PastRequest](body)
		return n.past.Latest(n.config().Name, in), err
	case commandHeld:
		in, err := as[admin.WhyRequest](body)
		if err != nil {
			return nil, err
		}
		e, err := n.Why(in)
		return e.Stored, err
	}
	return nil, fmt.Errorf("%s does not know the operation %q", n.config().Name, operation)
}

func as[T any](body []byte) (in T, err error) { return in, json.Unmarshal(body, &in) }

// targets returns the targets of a purge.
func (n *Node) targets(o admin.PurgeRequest) (targets []invalidation.Target, err error) {
	switch {
	case o.URL != "" && len(o.Tags) > 0:
		return nil, errors.New("a purge is by URL or by tag, not by both")
	case len(o.Tags) > 0 && (o.Prefix || o.Pattern):
		return nil, errors.New("a prefix or a pattern is for URLs only, not for tags")
	case o.Prefix && o.Pattern:
		return nil, errors.New("a purge is by prefix or by pattern, not by both") // the API has no command line
	case len(o.Tags) == 0:
		kind := invalidation.Identity
		switch {
		case o.Prefix:
			kind = invalidation.Prefix
		case o.Pattern:
			kind = invalidation.Pattern
		}
		t, err := n.proxy.Target(o.URL, kind)
		t.Soft = o.Soft
		return []invalidation.Target{t}, err
	case len(o.Tags) > proxy.MaxPurgeTags:
		return nil, fmt.Errorf("%d tags: want at most %d at once", len(o.Tags), proxy.MaxPurgeTags)
	}
	for _, tag := range o.Tags {
		if split := engine.SplitTags(tag); len(split) != 1 || split[0] != tag || len(tag) > invalidation.MaxName {
			return nil, fmt.Errorf("%q is not a tag: it is empty or too long, or has a space or a comma", tag)
		}
		targets = append(targets, invalidation.Target{Kind: invalidation.Tag, Name: tag, Soft: o.Soft})
	}
	return targets, nil
}

// purgeHere removes responses of this peer in the background; removed receives their number. It
// returns when the removal has begun or ctx has ended. remove is [proxy.Handler.Purge], or
// [proxy.Handler.Invalidated] if all peers get the invalidation.
func (n *Node) purgeHere(ctx context.Context, targets []invalidation.Target, remove func(invalidation.Target) int) (removed <-chan int) {
	begun, done := make(chan struct{}), make(chan int, 1)
	go func() {
		n.removing.Lock()
		defer n.removing.Unlock()
		close(begun)
		start, removed := time.Now(), 0
		for _, t := range targets {
			removed += remove(t)
		}
		if took := time.Since(start); took >= purgeWait {
			n.log.Warn("a purge took long", "target", targets[0], "removed", removed, "took", took)
		}
		done <- removed
	}()
	select {
	case <-begun:
	case <-ctx.Done():
	}
	return done
}

// Purge removes responses; see [admin.Source]. A purge everywhere is an invalidation.
func (n *Node) Purge(ctx context.Context, o admin.PurgeRequest) (r admin.PurgeReport, err error) {
	targets, err := n.targets(o)
	if err != nil {
		return r, err
	}
	r = n.purge(ctx, targets, o.Everywhere)
	if o.URL != "" {
		r.URL = targets[0].Name
	}
	return r, nil
}

// purgeFor carries out a client's PURGE.
func (n *Node) purgeFor(ctx context.Context, targets []invalidation.Target) (removed int, late []string) {
	r := n.purge(ctx, targets, true)
	for _, p := range r.Peers {
		if p.Error != "" {
			late = append(late, p.Peer+" ("+p.Error+")")
		}
	}
	if own := r.Peers[0].Removed; own != nil {
		removed = *own
	}
	return removed, late
}

func (n *Node) purge(ctx context.Context, targets []invalidation.Target, everywhere bool) (r admin.PurgeReport) {
	soon, cancel := context.WithTimeout(ctx, purgeWait)
	defer cancel()
	remove := n.proxy.Purge
	if everywhere {
		remove = n.proxy.Invalidated
	}
	removed := n.purgeHere(soon, targets, remove)
	var others []admin.Purged
	if everywhere {
		others = n.purgeOthers(soon, targets)
	}
	own, count := admin.Purged{Peer: n.config().Name}, 0
	select {
	case count = <-removed:
	case <-soon.Done():
		select {
		case count = <-removed: // while the others took all the time
		default:
			own.Error = fmt.Sprintf("not done within %v: it goes on, and the log says when it is done", purgeWait)
		}
	}
	if own.Error == "" {
		own.Removed = &count
	}
	r.Peers = append([]admin.Purged{own}, others...)
	n.log.Info("purged", "target", targets[0], "targets", len(targets), "everywhere", everywhere, "removed", count)
	return r
}

// purgeOthers sends the invalidation to all other peers, and waits for the live ones. Late or dead
// peers get it afterwards.
func (n *Node) purgeOthers(ctx context.Context, targets []invalidation.Target) []admin.Purged {
	err := n.gossip.Invalidate(ctx, targets...)
	var late *gossip.UnreachedError
	if err != nil && !errors.As(err, &late) {
		return []admin.Purged{{Peer: "all others", Error: err.Error()}}
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), purgeWait/4)
	defer cancel()
	members, now := n.readings.peers.get(soon, n.gossip.Members) // the last known ones if the exchange hangs
	if !now && members == nil {
		return []admin.Purged{{Peer: "all others", Error: "not known: the exchange hangs"}}
	}
	out := make([]admin.Purged, len(members))
	for i, m := range members {
		out[i] = admin.Purged{Peer: m.Name}
		switch {
		case !m.Alive:
			out[i].Error = "not reached: the peer is dead, and hears of it when it comes back"
		case late != nil && slices.Contains(late.Members, m.Name):
			out[i].Error = fmt.Sprintf("not done within %v: the purge is still being sent to it", purgeWait)
		}
	}
	if errors.Is(err, gossip.ErrMembers) {
		for _, name := range late.Members {
			out = append(out, admin.Purged{Peer: name,
				Error: "not reached: it is no member here, since there are more than --max-members allows"})
		}
	}
	return out
}

// An invalidator is the cluster for the cache, which is made before gossip runs: then its Node is
// set.
type invalidator struct{ *gossip.Node }

// applied removes the responses that this peer or another has invalidated.
func (n *Node) applied(t invalidation.Target) {
	n.removing.Lock() // so that a purge in purgeHere counts the responses that it removes
	defer n.removing.Unlock()
	if removed := n.proxy.Invalidated(t); removed > 0 {
		n.log.Info("removed invalidated objects", "target", t, "removed", removed)
	}
}
