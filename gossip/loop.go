package gossip

import (
	"log/slog"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// wake makes the loop run a step.
func (n *Node) wake() {
	select {
	case n.woken <- struct{}{}:
	default:
	}
}

// with calls f with the engine.
func (n *Node) with(f func(*exchange.Engine)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n.engine)
}

// update calls f, which changes the engine, and makes the loop handle the outputs.
func (n *Node) update(f func(*exchange.Engine)) {
	n.with(f)
	n.wake()
}

// sleep waits. It returns false if the node ends meanwhile.
func (n *Node) sleep(d time.Duration) bool {
	select {
	case <-n.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

const pruneInterval = 10 * time.Second

// loop passes events to the engine and handles its outputs. Nothing else drains the engine, so that
// its updates reach the index in order.
func (n *Node) loop() {
	timer := time.NewTimer(pruneInterval)
	defer timer.Stop()
	pruneAt := time.Now().Add(pruneInterval)
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.woken:
		case b := <-n.datagrams:
			n.with(func(e *exchange.Engine) { e.HandleDatagram(time.Now(), b) })
		case f := <-n.calls:
			f()
		case <-timer.C:
		}
		n.takeMembers()
		next := n.step()
		now := time.Now()
		if !now.Before(pruneAt) {
			n.pool.prune(now.Add(-clientIdle))
			n.forgetDead(now)
			n.measure()
			n.invalidations.with(func(e *invalidation.Engine) { e.Forget(now) })
			pruneAt = now.Add(pruneInterval)
		}
		if next.IsZero() || next.After(pruneAt) {
			next = pruneAt
		}
		timer.Reset(max(0, time.Until(next)))
	}
}

// step passes the queued datagrams and the time to the engine, handles its outputs, and returns when
// the engine needs the next step.
func (n *Node) step() time.Time {
	n.mu.Lock()
	for drained := false; !drained; {
		select {
		case b := <-n.datagrams:
			n.engine.HandleDatagram(time.Now(), b)
		default:
			drained = true
		}
	}
	now := time.Now()
	if asks, news := n.demand.Look(now, n.watched); news {
		n.engine.SetAsks(asks)
	}
	n.engine.Tick(now)
	out := n.engine.Drain()
	next := n.engine.Next()
	n.sum.Store(n.ownSum())
	n.mu.Unlock()
	n.do(out)
	return next
}

func (n *Node) do(out exchange.Outputs) {
	table := *n.members.Load()
	for _, u := range out.Updates {
		if m := table[u.Peer]; m != nil {
			n.learn(m, u)
		}
	}
	now := time.Now()
	for _, name := range out.Fresh {
		if m := table[name]; m != nil {
			m.fresh.Store(now.UnixNano())
		}
	}
	for _, name := range out.NotDead {
		if m := table[name]; m != nil {
			n.meetAgain(m)
		}
	}
	n.send(out.Datagrams)
	for _, f := range out.Fetches {
		n.wg.Go(func() { n.fetch(f) })
	}
	for _, s := range out.Syncs {
		n.wg.Go(func() { n.sync(s) })
	}
	for _, ev := range out.Events {
		n.report(ev)
	}
	if out.Incarnation != 0 {
		n.incarnation.Store(out.Incarnation)
		n.sumMembers()
		n.wg.Go(n.updateMetadata)
	}
}

// updateMetadata makes memberlist announce this node's metadata. Two concurrent calls could announce
// the older metadata under the greater incarnation, permanently.
func (n *Node) updateMetadata() {
	n.updating <- struct{}{} // a mutex would stop the clock of a test in virtual time
	defer func() { <-n.updating }()
	n.transport.screen.Updates()
	_ = n.memberlist.UpdateNode(time.Second) // peers that miss it learn it by an exchange of member lists
}

func (n *Node) send(datagrams []exchange.Datagram) {
	table := *n.members.Load()
	sent := datagrams[:0]
	for _, d := range datagrams {
		// A failed send is like a lost datagram, which the engine repeats.
		if m := table[d.To]; m != nil && n.transport.write(d.Data, m.info.Load().addr) == nil {
			sent = append(sent, d)
		}
	}
	if len(sent) == 0 {
		return
	}
	n.transport.life.Busy(time.Now())
	n.with(func(e *exchange.Engine) {
		for _, d := range sent {
			e.Sent(d)
		}
	})
}

// ownSum returns the sum of the digests and members that this peer knows. The sum of invalidations,
// which change independently, has to be added. It is called with n.mu held.
func (n *Node) ownSum() uint32 { return n.engine.Sum() + uint32(n.memberSum.Load()) }

// eventLog has the levels and texts of events in the log. Warnings and errors, which other peers can
// cause, are logged at most once a minute for each peer.
var eventLog = map[exchange.EventKind]struct {
	level slog.Level
	text  string
}{
	exchange.Leaving:   {slog.LevelDebug, "a peer is about to leave"},
	exchange.Applied:   {slog.LevelDebug, "applied a digest"},
	exchange.Diverged:  {slog.LevelWarn, "a digest differs from its origin's; fetching a snapshot"},
	exchange.Repaired:  {slog.LevelInfo, "a digest that had diverged is right again"},
	exchange.Rejected:  {slog.LevelWarn, "rejected an answer"},
	exchange.Flooding:  {slog.LevelWarn, "a peer replaces its digest too often; fetching it less often"},
	exchange.Displaced: {slog.LevelWarn, "another process has this name, or this one's clock was set back; took a greater incarnation"},
	exchange.Collision: {slog.LevelError, "ignoring a peer whose name collides with another's"},
}

// report logs an event and calls the hook.
func (n *Node) report(ev exchange.Event) {
	entry := eventLog[ev.Kind]
	args := []any{"member", ev.Peer, "head", ev.Head}
	switch ev.Kind {
	case exchange.Applied:
		args = append(args, "from_peer", ev.Source, "snapshot", ev.Snapshot, "bytes", ev.Bytes, "lag", ev.Lag)
	case exchange.Rejected:
		args = append(args, "from_peer", ev.Source, "err", ev.Err)
	}
	n.log.Log(n.ctx, entry.level, entry.text, args...)
	if hook := n.cfg.Hooks.Event; hook != nil {
		n.hook(func() { hook(ev) })
	}
}

// hook queues a call of a hook. Beyond hookBacklog, calls are dropped.
func (n *Node) hook(f func()) {
	select {
	case n.hooks <- f:
	default:
	}
}

func (n *Node) callHooks() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case f := <-n.hooks:
			if planted.Fault == "hook-skipped" && len(n.hooks) > 0 {
				continue // a newer one waits
			}
			f()
		}
	}
}

// inLoop calls f in the node's loop, and waits for it. It returns false if the node ends before.
func (n *Node) inLoop(f func()) bool { return n.in(n.calls, f) }

func (n *Node) in(loop chan<- func(), f func()) bool {
	done := make(chan struct{})
	select {
	case loop <- func() { f(); close(done) }:
	case <-n.ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// ProbeExchange waits until the loop that runs the exchange has finished its present step, or the
// node is closed. It returns at once if the node is idle, and never while the loop hangs. A health
// check calls it in a goroutine of its own and measures the time.
func (n *Node) ProbeExchange() { n.inLoop(func() {}) }

// ProbePublishing is [Node.ProbeExchange] for the loop that publishes changes of the holdings.
// Without holdings it returns at once.
func (n *Node) ProbePublishing() {
	if n.cfg.Holdings != nil {
		n.in(n.publisher, func() {})
	}
}
