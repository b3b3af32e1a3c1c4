package gossip

import (
	"context"
	"errors"
	"maps"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/summarycache/summarycache/gossip/exchange"
)

// Join looks up the entries of Config.Join and joins the cluster through all peers that answer. It
// succeeds if another peer answers, or if Config.Join is empty. If another live peer has this one's
// name, it fails with [ErrNameTaken] and does not join. Other errors are [*JoinError]s, joined.
// After [ErrUnreachable] and [ErrMembers] the node keeps trying, so that a caller may treat it as "not yet".
//
// After a success, this peer also knows the earlier invalidations ([Node.Invalidate]), unless no
// member could send them within two seconds.
func (n *Node) Join(ctx context.Context) error {
	if n.made().ctx.Err() != nil {
		return ErrClosed
	}
	if ctx == nil {
		return errNoContext
	}
	if err := n.join(ctx); err != nil {
		return err
	}
	n.catchUp(ctx)
	return nil
}

// join joins the cluster, and sees to it that this peer goes on trying.
func (g *group) join(ctx context.Context) error {
	met := g.tryAll(ctx)
	var errs []error
	seeds := *g.seeds.Load()
	joined, waiting := len(seeds) == 0, len(seeds) == 0
	for _, s := range seeds {
		switch err := s.failure(); {
		case err == nil:
			joined = true
		case errors.Is(err, ErrNameTaken):
			return &JoinError{s.text, err}
		default:
			errs = append(errs, &JoinError{s.text, err})
			waiting = waiting || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrMembers)
		}
	}
	for _, err := range errs {
		if joined && errors.Is(err, errNobody) {
			continue // its only address is this peer's: all peers may have the same list
		}
		g.log.Warn("could not join through a seed", "err", err)
	}
	if joined || waiting {
		g.joined.Do(func() { g.work.Go(g.rejoinLoop) })
	}
	if !joined {
		return errors.Join(errs...)
	}
	return g.enter(met)
}

// tryAll tries all seeds at once.
func (g *group) tryAll(ctx context.Context) []greeted {
	return slices.Concat(each(*g.seeds.Load(), func(s *seed) []greeted { return g.try(ctx, s) })...)
}

// greeted is the result of greeting an address.
type greeted struct {
	addr    string
	welcome exchange.Welcome
	err     error
}

// greetAll greets all addresses concurrently, and asks there whether this peer's name is free.
func (g *group) greetAll(ctx context.Context, addrs []string) []greeted {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	return each(addrs, func(addr string) greeted {
		w, welcome, err := g.connect(ctx, addr, true)
		if err == nil {
			w.Close()
		}
		return greeted{addr, welcome, err}
	})
}

// enter merges this peer's member list with those of the peers met: with one of each cluster to which
// they belong.
func (g *group) enter(met []greeted) error {
	var errs []error
	entered := make(map[string]bool)
	for _, one := range met {
		if entered[one.welcome.Name] {
			continue
		}
		if _, err := g.memberlist.Join([]string{one.addr}); err != nil {
			errs = append(errs, &JoinError{one.addr, err})
			continue
		}
		for _, m := range g.memberlist.Members() {
			entered[m.Name] = true
		}
	}
	if len(entered) > 0 {
		return nil
	}
	return errors.Join(errs...)
}

const (
	settleInterval = time.Second // between attempts while a seed does not know this peer yet
	settleTime     = time.Minute
	deadAtOnce     = 3 // dead peers tried in one round
)

// rejoinLoop tries the addresses of seeds that are not members, and dead peers. Otherwise the parts
// of a cluster that was split would not find each other. In the first minute it does so each second
// while this peer is alone, or meets a peer that does not count it as alive. The latter happens
// after a restart at another address, until the former life is declared dead.
func (g *group) rejoinLoop() {
	began := time.Now()
	alone := false
	for wait := settleInterval; g.sleep(wait - wait/4 + rand.N(wait/2+1)); {
		settled := g.rejoin()
		err := g.alone()
		switch {
		case g.ctx.Err() != nil:
			return
		case err != nil:
			settled = false
			g.log.Warn("alone: no other peer is found; trying again", "err", err)
		case alone:
			g.log.Info("found other peers")
		}
		alone = err != nil
		wait = g.cfg.rejoin
		if !settled && time.Since(began) < settleTime {
			wait = min(wait, settleInterval)
		}
	}
}

// rejoin tries each seed and some dead peers once. It reports whether each peer that it met counts
// this one as alive.
func (g *group) rejoin() bool {
	var dead []string
	for _, m := range *g.members.Load() {
		if info := m.info.Load(); !m.up.Load() && time.Since(info.since) < deadMemory {
			dead = append(dead, info.addr.String())
		}
	}
	rand.Shuffle(len(dead), func(i, j int) { dead[i], dead[j] = dead[j], dead[i] })
	met := g.tryAll(g.ctx)
	for _, s := range *g.seeds.Load() {
		g.logRefusal(s.text, s.failure())
	}
	for _, one := range g.greetAll(g.ctx, dead[:min(len(dead), deadAtOnce)]) {
		if g.logRefusal(one.addr, one.err); one.err == nil {
			met = append(met, one)
		}
	}
	met = slices.DeleteFunc(met, func(one greeted) bool {
		return one.welcome.Known == g.incarnation.Load() && g.live(one.welcome.Name) != nil
	})
	if err := g.enter(met); err != nil {
		g.log.Debug("rejoining failed", "err", err)
	}
	for _, h := range g.halfMembers() {
		g.log.Warn("a peer is a member only by half", "member", h.Name, "why", h)
	}
	return len(met) == 0
}

// logRefusal logs why a peer that answered did not let this one join.
func (g *group) logRefusal(seed string, err error) {
	if err != nil && !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrCluster) && g.ctx.Err() == nil {
		g.log.Error("could not join", "seed", seed, "err", err)
	}
}

// For how long, and at most how many, dead peers are remembered and tried.
const (
	deadMemory = 24 * time.Hour
	deadKept   = 1024
)

const (
	meetEvery = 2 * time.Second        // least time between two merges with one address
	meetRound = 250 * time.Millisecond // in which news of a member comes to twice as many peers, about
)

// meet is called when a peer has named itself over a stream. If membership does not come to know that
// incarnation by itself, the two peers' member lists are merged. So a peer that restarted before its death was
// detected, and that has no seeds, is found by the first peer that connects to it. A peer that joins connects to all
// others, most of which hear of it a moment later: if each merged lists with it at once, it would get as many as there
// are peers.
func (g *group) meet(name string, incarnation uint64, addr string, from netip.Addr) {
	ap, err := netip.ParseAddrPort(addr)
	if name == g.cfg.Name || g.known(name) == incarnation || err != nil {
		return
	}
	if g.ring.Load().Stream == nil && ap.Addr() != from {
		return // a stranger must not choose the address to connect to
	}
	if !g.metLately(addr) {
		g.work.Go(func() {
			if g.sleep(meetRound*time.Duration(bits.Len(uint(len(*g.members.Load()))))) && g.known(name) != incarnation {
				g.mergeWith(name, addr)
			}
		})
	}
}

// meetAgain is called when a peer advertises although membership counts it as dead: the two peers'
// member lists are merged. Other peers, which know that it lives, would not correct this one.
func (g *group) meetAgain(m *member) {
	if info := m.info.Load(); !m.up.Load() && !m.hasLeft(info) {
		g.merge(m.name, info.addr.String())
	}
}

// merge merges this peer's member list with that of the peer at addr, at most once per meetEvery.
func (g *group) merge(name, addr string) {
	if !g.metLately(addr) {
		g.work.Go(func() { g.mergeWith(name, addr) })
	}
}

// metLately reports whether the last merge with an address began less than meetEvery ago. If not, one begins now.
func (g *group) metLately(addr string) bool {
	now := time.Now()
	g.met.Lock()
	defer g.met.Unlock()
	maps.DeleteFunc(g.met.at, func(_ string, at time.Time) bool { return now.Sub(at) >= meetEvery })
	_, lately := g.met.at[addr]
	if !lately {
		g.met.at[addr] = now
	}
	return lately || g.ctx.Err() != nil
}

func (g *group) mergeWith(name, addr string) {
	if _, err := g.memberlist.Join([]string{addr}); err != nil {
		g.log.Debug("merging member lists failed", "member", name, "addr", addr, "err", err)
	}
}
