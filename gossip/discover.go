package gossip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/insider"
)

// A seed is an entry of Config.Join, and the result of the last attempt to join through it.
type seed struct {
	text string

	mu    sync.Mutex
	found []netip.AddrPort // addresses that it stands for
	at    time.Time        // when these were looked up
	err   error            // why it leads to no other peer; nil if it does, or was not tried yet
}

// seedsOf returns the seeds of these entries. It keeps those that there are.
func (g *group) seedsOf(entries []string) *[]*seed {
	seeds := make([]*seed, 0, len(entries))
	for _, entry := range entries {
		s := &seed{text: entry}
		if old := g.seeds.Load(); old != nil {
			if i := slices.IndexFunc(*old, func(s *seed) bool { return s.text == entry }); i >= 0 {
				s = (*old)[i]
			}
		}
		seeds = append(seeds, s)
	}
	return &seeds
}

// SetJoin replaces [Config.Join] of a running node, which then tries the new entries at once. It leaves
// no peer that it knows. An error means that an entry is not valid, and that nothing has changed.
func (n inside) SetJoin(entries []string) error {
	n.made()
	if err := checkJoins(entries); err != nil {
		return err
	}
	n.seeds.Store(n.seedsOf(entries))
	n.work.Go(func() { n.rejoin() })
	return nil
}

func (s *seed) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

const (
	lookupEvery = time.Minute     // while a seed leads to other peers; otherwise it is looked up at each attempt
	lookupWait  = 5 * time.Second // for all lookups of a seed
	// greetedAtOnce bounds the addresses of a seed tried in one round, which are chosen at random: of
	// a thousand peers behind one name, none greets all others.
	greetedAtOnce = 16
)

// errNobody: a seed leads to no other peer, although nothing failed.
var errNobody = fmt.Errorf("%w: no address but this peer's own", ErrUnreachable)

// resolver looks up names. [net.Resolver] is one, and a [Network] may be.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

func (g *group) resolver() resolver {
	if r, ok := g.cfg.Network.(resolver); ok {
		return r
	}
	return net.DefaultResolver
}

func checkJoins(entries []string) error {
	var errs []error
	for _, entry := range entries {
		if err := insider.CheckJoin(entry); err != nil {
			errs = append(errs, fmt.Errorf("gossip: join %q: %w", entry, err))
		}
	}
	return errors.Join(errs...)
}

// resolve returns all addresses that an entry of Config.Join stands for.
func (g *group) resolve(ctx context.Context, entry string) ([]netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	name, ok := insider.SRVName(entry)
	if !ok {
		host, port, _ := net.SplitHostPort(entry)
		number, _ := strconv.ParseUint(port, 10, 16)
		return g.addresses(ctx, host, uint16(number))
	}
	_, records, err := g.resolver().LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err
	}
	records = slices.Clone(records) // a resolver may return the same slice to other callers
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	type result struct {
		addrs []netip.AddrPort
		err   error
	}
	var all []netip.AddrPort
	var errs []error
	for _, r := range each(records[:min(len(records), greetedAtOnce)], func(r *net.SRV) result {
		addrs, err := g.addresses(ctx, r.Target, r.Port)
		return result{addrs, err}
	}) {
		all, errs = append(all, r.addrs...), append(errs, r.err)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, errors.Join(errs...)
}

// each calls f for all elements of list concurrently, and returns the results in order.
func each[T, R any](list []T, f func(T) R) []R {
	out := make([]R, len(list))
	var wg sync.WaitGroup
	for i, x := range list {
		wg.Go(func() { out[i] = f(x) })
	}
	wg.Wait()
	return out
}

func (g *group) addresses(ctx context.Context, host string, port uint16) ([]netip.AddrPort, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), port)}, nil
	}
	ips, err := g.resolver().LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	out := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		out[i] = netip.AddrPortFrom(ip.Unmap(), port)
	}
	return out, nil
}

// try greets the addresses of a seed that are not members, and returns the peers that answered: none
// if one of them has this peer's name.
func (g *group) try(ctx context.Context, s *seed) (met []greeted) {
	s.mu.Lock()
	found, at, err := s.found, s.at, s.err
	s.mu.Unlock()
	if err != nil || time.Since(at) >= lookupEvery {
		at = time.Now()
		var fresh []netip.AddrPort
		if fresh, err = g.resolve(ctx, s.text); err == nil {
			found = fresh
		} // otherwise keep the addresses of the last lookup
	}
	if len(found) > 0 || err == nil {
		met, err = g.tryAddresses(ctx, s.text, found)
	} else {
		err = unreachable(err)
	}
	s.mu.Lock()
	s.found, s.at, s.err = found, at, err
	s.mu.Unlock()
	return met
}

// tryAddresses does so for the addresses that a seed stands for. It returns an error if they lead to
// no other peer, or if another peer has this one's name.
func (g *group) tryAddresses(ctx context.Context, seed string, found []netip.AddrPort) (met []greeted, err error) {
	targets, known := g.targets(found)
	var errs []error
	for _, one := range g.greetAll(ctx, targets) {
		switch {
		case one.err == nil && one.welcome.Name != g.cfg.Name: // not this peer, at another address
			met = append(met, one)
		case one.err != nil && one.addr != seed:
			errs = append(errs, fmt.Errorf("%s: %w", one.addr, one.err))
		case one.err != nil:
			errs = append(errs, one.err)
		}
	}
	err = errors.Join(errs...)
	switch {
	case errors.Is(err, ErrNameTaken):
		return nil, err
	case known || len(met) > 0:
		g.logRefusal(seed, err)
		return met, nil
	case err == nil:
		return nil, errNobody
	}
	return nil, err
}

// targets returns some of a seed's addresses to greet, and whether other addresses are those of
// members. These need no hello if a member knows this peer.
func (g *group) targets(found []netip.AddrPort) (targets []string, known bool) {
	live := make(map[netip.AddrPort]bool)
	mutual := false
	for _, m := range g.liveMembers() {
		live[m.info.Load().addr] = true
		mutual = mutual || m.knows.Load()
	}
	for _, a := range found {
		switch {
		case a == g.advertise:
		case live[a] && mutual:
			known = true
		default:
			targets = append(targets, a.String())
		}
	}
	rand.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	return targets[:min(len(targets), greetedAtOnce)], known
}

// Alone returns nil if another peer is alive, or if Config.Join is empty. Otherwise it returns one
// [*JoinError] for each entry, joined: why the last attempt failed. It does not wait.
func (n inside) Alone() error { return n.made().alone() }

func (g *group) alone() error {
	if len(g.liveMembers()) > 0 {
		return nil
	}
	var errs []error
	for _, s := range *g.seeds.Load() {
		err := s.failure()
		if err == nil {
			err = fmt.Errorf("%w: no answer yet", ErrUnreachable)
		}
		errs = append(errs, &JoinError{s.text, err})
	}
	return errors.Join(errs...)
}
