package gossip

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Join contacts the seeds and enters the cluster through all that answer. It
// succeeds if one does, or if there are none. If another live peer has this one's
// name it fails with [ErrNameTaken] and enters nothing. Other errors are
// [*JoinError]s, joined; with [ErrUnreachable] the node goes on trying, so that a
// caller may take that for "not yet".
//
// When it has succeeded, this peer has also heard what was invalidated before
// ([Node.Invalidate]), unless nobody could tell it within two seconds.
func (n *Node) Join(ctx context.Context) error {
	if n.ctx.Err() != nil {
		return ErrClosed
	}
	results := n.greetAll(ctx, n.cfg.Join)
	var errs []error
	var open []greeted
	waiting := len(n.cfg.Join) == 0
	for _, g := range results {
		switch {
		case g.err == nil:
			open = append(open, g)
		case errors.Is(g.err, ErrNameTaken):
			return &JoinError{g.seed, g.err}
		default:
			errs = append(errs, &JoinError{g.seed, g.err})
			waiting = waiting || errors.Is(g.err, ErrUnreachable)
		}
	}
	for _, err := range errs {
		n.log.Warn("could not join through a seed", "err", err)
	}
	entered := len(open) > 0
	if entered || waiting {
		n.joined.Do(func() { n.wg.Go(n.rejoinLoop) })
	}
	if !entered {
		return errors.Join(errs...)
	}
	if err := n.enter(open); err != nil {
		return err
	}
	n.catchUp(ctx)
	return nil
}

// greeted is what came of a hello to a seed.
type greeted struct {
	seed    string
	addr    string // where it was reached
	welcome exchange.Welcome
	err     error
}

// greetAll says hello to all seeds at once, and asks whether this peer's name is
// free.
func (n *Node) greetAll(ctx context.Context, seeds []string) []greeted {
	out := make([]greeted, len(seeds))
	var wg sync.WaitGroup
	for i, seed := range seeds {
		wg.Go(func() { out[i] = n.greet(ctx, seed) })
	}
	wg.Wait()
	return out
}

func (n *Node) greet(ctx context.Context, seed string) greeted {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	w, welcome, err := n.connect(ctx, seed, true)
	if err != nil {
		return greeted{seed: seed, err: err}
	}
	defer w.Close()
	n.seeds.Store(seed, welcome.Name)
	return greeted{seed: seed, addr: w.RemoteAddr().String(), welcome: welcome}
}

// enter merges this peer's view of the members with that of each seed.
func (n *Node) enter(seeds []greeted) error {
	var errs []error
	entered := 0
	for _, g := range seeds {
		if g.welcome.Name == n.cfg.Name {
			entered++ // ourselves, among our own seeds
			continue
		}
		if _, err := n.memberlist.Join([]string{g.addr}); err != nil {
			errs = append(errs, &JoinError{g.seed, err})
			continue
		}
		entered++
	}
	if entered == 0 {
		return errors.Join(errs...)
	}
	return nil
}

const (
	settleInterval = time.Second // between attempts while a seed does not know this peer yet
	settleTime     = time.Minute
	deadAtOnce     = 3 // dead peers tried in one round
)

// rejoinLoop looks for seeds that are not members and for peers that died: a
// cluster that was split does not find together otherwise. For a while after the
// start it comes round more often, as long as a seed does not count this peer
// among the living: so it is with a peer that was restarted at another address
// before its former life was declared dead.
func (n *Node) rejoinLoop() {
	began := time.Now()
	for wait := settleInterval; ; {
		wait = wait - wait/4 + rand.N(wait/2+1)
		select {
		case <-n.ctx.Done():
			return
		case <-time.After(wait):
		}
		settled := n.rejoin()
		wait = n.cfg.RejoinInterval
		if !settled && time.Since(began) < settleTime {
			wait = min(wait, settleInterval)
		}
	}
}

// rejoin makes one round, and reports whether every seed that could be reached
// knows this peer.
func (n *Node) rejoin() bool {
	table := *n.members.Load()
	targets := make([]string, 0, len(n.cfg.Join)+deadAtOnce)
	for _, seed := range n.cfg.Join {
		name, _ := n.seeds.Load(seed)
		s, _ := name.(string)
		if m := table[s]; m != nil && m.up.Load() && m.knows.Load() {
			continue
		}
		if s != n.cfg.Name {
			targets = append(targets, seed)
		}
	}
	var dead []string
	for _, m := range table {
		if info := m.info.Load(); !m.up.Load() && time.Since(info.since) < deadMemory {
			dead = append(dead, info.addr.String())
		}
	}
	rand.Shuffle(len(dead), func(i, j int) { dead[i], dead[j] = dead[j], dead[i] })
	targets = append(targets, dead[:min(len(dead), deadAtOnce)]...)
	settled := true
	var open []greeted
	for _, g := range n.greetAll(n.ctx, targets) {
		switch {
		case g.err == nil:
			if g.welcome.Known == n.incarnation.Load() && n.confirm(g.welcome.Name) {
				continue
			}
			settled = false
			open = append(open, g)
		case !errors.Is(g.err, ErrUnreachable) && n.ctx.Err() == nil:
			n.quiet.log(slog.LevelError, "rejoin "+g.seed, "could not join", "seed", g.seed, "err", g.err)
		}
	}
	if err := n.enter(open); err != nil {
		n.log.Debug("rejoining failed", "err", err)
	}
	return settled
}

// Dead peers are remembered, and tried, so long; and at most so many.
const (
	deadMemory = 24 * time.Hour
	deadKept   = 1024
)

// confirm notes that the peer called name counts this one among the living. It
// returns false if this one does not count it.
func (n *Node) confirm(name string) bool {
	m := (*n.members.Load())[name]
	if m == nil || !m.up.Load() {
		return false
	}
	m.knows.Store(true)
	return true
}

// meetEvery is how often, at most, one address is contacted for being met.
const meetEvery = 2 * time.Second

// meet is called when a peer has said who it is over a stream. If membership knows
// nothing of that life of it, its member list and ours are merged: so a peer that
// restarted before anybody noticed, and that has no seeds, is found by the first who
// talks to it.
func (n *Node) meet(name string, incarnation uint64, addr string, from netip.Addr) {
	ap, err := netip.ParseAddrPort(addr)
	if name == n.cfg.Name || n.known(name) == incarnation || err != nil {
		return
	}
	if n.ring.Load().stream == nil && ap.Addr() != from {
		return // do not let strangers send us where they like
	}
	n.merge(name, addr)
}

// meetAgain is called when a peer advertises that is dead as far as membership knows:
// its member list and ours are merged, too. Death spreads to who missed the last word
// of a peer and is not corrected there, since the others know better and say nothing.
func (n *Node) meetAgain(m *member) {
	if info := m.info.Load(); !m.up.Load() && !m.hasLeft(info) {
		n.merge(m.name, info.addr.String())
	}
}

// merge merges this peer's member list with that of the one at addr, unless it did
// lately.
func (n *Node) merge(name, addr string) {
	now := time.Now()
	n.met.Lock()
	for a, at := range n.met.at {
		if now.Sub(at) >= meetEvery {
			delete(n.met.at, a)
		}
	}
	_, lately := n.met.at[addr]
	if !lately {
		n.met.at[addr] = now
	}
	n.met.Unlock()
	if lately || n.ctx.Err() != nil {
		return
	}
	n.wg.Go(func() {
		if _, err := n.memberlist.Join([]string{addr}); err != nil {
			n.log.Debug("merging member lists failed", "member", name, "addr", addr, "err", err)
		}
	})
}
