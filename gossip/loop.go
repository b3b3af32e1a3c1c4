package gossip

import (
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/invalidation"
)

// wake makes the loop run the engine.
func (h *host) wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

// with calls f with the engine.
func (h *host) with(f func(*exchange.Engine)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.engine)
}

// update calls f, which changes the engine, and makes the loop handle the outputs.
func (h *host) update(f func(*exchange.Engine)) {
	h.with(f)
	h.wake()
}

const pruneInterval = 10 * time.Second

// loop passes events to the engine and handles its outputs. Nothing else drains the engine, so that
// its updates reach the index in order.
func (h *host) loop() {
	timer := time.NewTimer(pruneInterval)
	defer timer.Stop()
	pruneAt := time.Now().Add(pruneInterval)
	for {
		var call func()
		var datagram []byte
		h.exchanging.end()
		select {
		case <-h.ctx.Done():
			return
		case <-h.woken:
		case datagram = <-h.datagrams:
		case call = <-h.calls:
		case <-timer.C:
		}
		h.exchanging.begin()
		switch {
		case datagram != nil:
			h.with(func(e *exchange.Engine) { e.HandleDatagram(time.Now(), datagram) })
		case call != nil:
			call()
		}
		h.handleMemberEvents()
		next := h.runEngine()
		now := time.Now()
		if !now.Before(pruneAt) {
			h.pool.prune(now.Add(-clientIdle))
			h.forgetDead(now)
			h.digests.measured(h.digestBytes())
			h.removals.With(func(e *invalidation.Engine) { e.Forget(now) })
			pruneAt = now.Add(pruneInterval)
		}
		if next.IsZero() || next.After(pruneAt) {
			next = pruneAt
		}
		timer.Reset(max(0, time.Until(next)))
	}
}

// runEngine passes the queued datagrams and the time to the engine, handles its outputs, and returns when
// the engine needs that next.
func (h *host) runEngine() time.Time {
	h.mu.Lock()
	for drained := false; !drained; {
		select {
		case b := <-h.datagrams:
			h.engine.HandleDatagram(time.Now(), b)
		default:
			drained = true
		}
	}
	now := time.Now()
	if asks, news := h.demand.Look(now, h.watched); news {
		h.engine.SetAsks(asks)
	}
	h.engine.Tick(now)
	out := h.engine.Drain()
	next := h.engine.Next()
	h.sum.Store(h.ownSum())
	h.asking.complete.Store(h.engine.Complete())
	h.mu.Unlock()
	h.do(out)
	return next
}

func (h *host) do(out exchange.Outputs) {
	h.applyUpdates(out.Updates)
	table := *h.members.Load()
	now := time.Now()
	for _, name := range out.Fresh {
		if m := table[name]; m != nil {
			m.fresh.Store(now.UnixNano())
		}
	}
	for _, name := range out.NotDead {
		if m := table[name]; m != nil {
			h.meetAgain(m)
		}
	}
	h.send(out.Datagrams)
	for _, f := range out.Fetches {
		h.work.Go(func() { h.fetch(f) })
	}
	for _, s := range out.Syncs {
		h.work.Go(func() { h.sync(s) })
	}
	for _, ev := range out.Events {
		h.report(ev)
	}
	if out.Incarnation != 0 {
		h.incarnation.Store(out.Incarnation)
		h.sumSelf()
		h.work.Go(h.updateMetadata)
	}
}

func (h *host) send(datagrams []exchange.Datagram) {
	table := *h.members.Load()
	sent := datagrams[:0]
	for _, d := range datagrams {
		// A failed send is like a lost datagram, which the engine repeats.
		if m := table[d.To]; m != nil && h.transport.write(d.Data, m.info.Load().addr) == nil {
			sent = append(sent, d)
		}
	}
	if len(sent) == 0 {
		return
	}
	h.transport.life.Busy(time.Now())
	h.with(func(e *exchange.Engine) {
		for _, d := range sent {
			e.Sent(d)
		}
	})
}

// ownSum returns the sum of the digests and members that this peer knows. The sum of invalidations,
// which change independently, has to be added. It is called with n.mu held.
func (h *host) ownSum() uint32 { return h.engine.Sum() + uint32(h.memberSum.Load()) }

// datagram queues a datagram for the engine, which counts its bytes.
func (h *host) datagram(b []byte) {
	if len(b) <= exchange.MaxDatagram {
		select {
		case h.datagrams <- b:
			return
		default: // its sender repeats it, or the next sync makes up for it
		}
	}
	h.meters.in.packet(kindAdverts, len(b))
}

// knownSum returns the sum of what this peer knows, as far as its loops have come.
func (h *host) knownSum() uint32 { return h.sum.Load() + h.removals.Sum() }

// compareSum makes the loop compare the sum of another peer with this one's.
func (h *host) compareSum(name string, sum uint32) {
	select {
	case h.calls <- func() {
		h.with(func(e *exchange.Engine) {
			if digests, ok := e.SumWith(name); ok {
				e.HandleSum(time.Now(), name, sum == digests+uint32(h.memberSum.Load())+h.removals.Sum())
			}
		})
	}:
	default: // later ones will do
	}
}

// eventLog has the levels and texts of events in the log. Warnings and errors, which other peers can
// cause, are logged at most once a minute for each peer.
var eventLog = map[exchange.EventKind]struct {
	level slog.Level
	text  string
}{
	exchange.Leaving:  {slog.LevelDebug, "a peer is about to leave"},
	exchange.Applied:  {slog.LevelDebug, "applied a digest"},
	exchange.Diverged: {slog.LevelWarn, "a digest differs from its origin's; fetching a snapshot"},
	exchange.Repaired: {slog.LevelInfo, "a digest that had diverged is right again"},
	exchange.Rejected: {slog.LevelWarn, "rejected an answer"},
	exchange.Flooding: {slog.LevelWarn, "a peer replaces its digest too often; fetching it less often"},
	exchange.Displaced: {slog.LevelWarn,
		"another process has this name, or this one's clock was set back; took a greater incarnation"},
	exchange.Collision: {slog.LevelError, "ignoring a peer whose name collides with another's"},
}

// report logs an event and calls the hook.
func (h *host) report(ev exchange.Event) {
	entry := eventLog[ev.Kind]
	args := []any{"member", ev.Peer, "head", ev.Head}
	switch ev.Kind {
	case exchange.Applied:
		args = append(args, "from_peer", ev.Source, "snapshot", ev.Snapshot, "bytes", ev.Bytes, "lag", ev.Lag)
	case exchange.Rejected:
		args = append(args, "from_peer", ev.Source, "err", ev.Err)
	}
	h.log.Log(h.ctx, entry.level, entry.text, args...)
	if hook := h.cfg.Hooks.Event; hook != nil {
		h.hook(func() { hook(ev) })
	}
}

// hook queues a call of a hook. Beyond hookBacklog, calls are dropped.
func (h *host) hook(f func()) {
	select {
	case h.hooks <- f:
	default:
	}
}

func (h *host) callHooks() {
	for {
		select {
		case <-h.ctx.Done():
			return
		case f := <-h.hooks:
			f()
		}
	}
}

// inLoop calls f in the node's loop, and waits for it. It returns false if the node ends before.
func (h *host) inLoop(f func()) bool { return h.in(h.calls, f) }

func (h *host) in(loop chan<- func(), f func()) bool {
	done := make(chan struct{})
	select {
	case loop <- func() { f(); close(done) }:
	case <-h.ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-h.ctx.Done():
		return false
	}
}

// A turn says whether a loop works or waits for work.
type turn struct{ works atomic.Bool }

func (t *turn) begin() { t.works.Store(true) }
func (t *turn) end()   { t.works.Store(false) }

// ProbeExchange waits until the loop that runs the exchange has finished its present turn, or the
// node is closed. It returns at once, and wakes nobody, if the node is idle, and never while the loop hangs. A health
// check calls it in a goroutine of its own and measures the time.
func (n inside) ProbeExchange() {
	if n.made().exchanging.works.Load() {
		n.inLoop(func() {})
	}
}

// ProbePublishing is ProbeExchange for the loop that publishes changes of the holdings.
// Without holdings it returns at once.
func (n inside) ProbePublishing() {
	if n.made().cfg.Holdings != nil && n.publishing.works.Load() {
		n.in(n.publisher, func() {})
	}
}

// watched chooses a live sibling whose digest is under the node's seed, for [exchange.Demand].
func (h *host) watched() (current func() *digest.Filter) {
	live := h.liveMembers()
	if len(live) == 0 {
		return nil
	}
	m := live[rand.IntN(len(live))]
	if f := m.inUse.Load(); f == nil || f.Geometry().Seed != h.digestSeeds()[0] {
		return nil
	}
	return m.inUse.Load
}

// agreed returns when another peer last had the same sum, and one that differs in what vectors do not list.
func (h *host) agreed() (at time.Time, odd string) {
	h.with(func(e *exchange.Engine) { at, odd = e.AgreedAt(), e.TakeAtOdds() })
	return at, odd
}
