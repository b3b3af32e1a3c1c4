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
	"strings"
	"sync"
	"time"
)

// A seed is an entry of Config.Join, and what came of it.
type seed struct {
	text string

	mu       sync.Mutex
	found    []netip.AddrPort          // what it stands for
	at       time.Time                 // when that was looked up; zero if it is to be again
	answered map[netip.AddrPort]string // names of those who answered there since
	err      error                     // why it leads to no other peer; nil if it does
}

// failure returns why it leads to no other peer; nil if it does, or was not tried yet.
func (s *seed) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

const (
	lookupEvery = time.Minute     // at least, while a seed leads to other peers; else at each attempt
	lookupWait  = 5 * time.Second // for all lookups of one
	// greetedAtOnce is how many addresses of a seed are tried in one round, drawn at
	// random: a thousand peers behind one name do not each greet a thousand.
	greetedAtOnce = 16
)

// errNobody is why a seed leads to no other peer when nothing went wrong.
var errNobody = fmt.Errorf("%w: no address but this peer's own", ErrUnreachable)

// resolver looks up names. [net.Resolver] is one, and a [Network] may be.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

func (n *Node) resolver() resolver {
	if r, ok := n.cfg.Network.(resolver); ok {
		return r
	}
	return net.DefaultResolver
}

// srvName returns the name of SRV records that an entry of Config.Join stands for.
// A host called srv may still be joined: a name of digits only is its port.
func srvName(entry string) (string, bool) {
	name, ok := strings.CutPrefix(entry, "srv:")
	return name, ok && (name == "" || strings.Trim(name, "0123456789") != "")
}

// CheckJoin returns what is wrong with an entry of [Config.Join].
func CheckJoin(entry string) error {
	if name, ok := srvName(entry); ok {
		if name == "" || strings.ContainsAny(name, ": \t/@?#[]") {
			return fmt.Errorf("%q is no name of SRV records: want srv:NAME without a port, such as srv:_gossip._tcp.cache.example.com", name)
		}
		return nil
	}
	if err := checkHostPort(entry); err != nil {
		return err
	}
	switch host, port, _ := net.SplitHostPort(entry); {
	case host == "":
		return errors.New("no host")
	case strings.Trim(port, "0") == "":
		return errors.New("port 0, at which nobody can be reached")
	}
	return nil
}

// resolve returns all addresses that an entry of Config.Join stands for.
func (n *Node) resolve(ctx context.Context, entry string) ([]netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupWait)
	defer cancel()
	name, ok := srvName(entry)
	if !ok {
		host, port, _ := net.SplitHostPort(entry)
		number, _ := strconv.ParseUint(port, 10, 16)
		return n.addresses(ctx, host, uint16(number))
	}
	_, records, err := n.resolver().LookupSRV(ctx, "", "", name)
	if err != nil {
		return nil, err
	}
	records = slices.Clone(records) // the resolver's, which may answer others from the same ones
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	records = records[:min(len(records), greetedAtOnce)]
	lists, errs := make([][]netip.AddrPort, len(records)), make([]error, len(records))
	var wg sync.WaitGroup
	for i, r := range records {
		wg.Go(func() { lists[i], errs[i] = n.addresses(ctx, r.Target, r.Port) })
	}
	wg.Wait()
	var all []netip.AddrPort
	for _, list := range lists {
		all = append(all, list...)
	}
	if len(all) == 0 {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

func (n *Node) addresses(ctx context.Context, host string, port uint16) ([]netip.AddrPort, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), port)}, nil
	}
	ips, err := n.resolver().LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	out := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		out[i] = netip.AddrPortFrom(ip.Unmap(), port)
	}
	return out, nil
}

// try says hello to what a seed stands for and is no member, and returns the others
// that answered: none if one of them has this peer's name.
func (n *Node) try(ctx context.Context, s *seed) []greeted {
	s.mu.Lock()
	due := s.err != nil || time.Since(s.at) >= lookupEvery
	s.mu.Unlock()
	if due {
		found, err := n.resolve(ctx, s.text)
		s.mu.Lock()
		if err != nil && len(s.found) == 0 {
			s.err = unreachable(err)
			s.mu.Unlock()
			return nil
		}
		if err == nil { // else what was known is better than nothing
			s.found = found
		}
		s.at, s.answered = time.Now(), make(map[netip.AddrPort]string)
		s.mu.Unlock()
	}
	targets, known := n.targets(s)
	addrs := make([]string, len(targets))
	for i, a := range targets {
		addrs[i] = a.String()
	}
	var met []greeted
	var errs []error
	taken := false
	for i, g := range n.greetAll(ctx, addrs) {
		switch {
		case g.err == nil && g.welcome.Name == n.cfg.Name: // this peer, at another address
		case g.err == nil:
			s.mu.Lock()
			s.answered[targets[i]] = g.welcome.Name
			s.mu.Unlock()
			met = append(met, g)
		default:
			taken = taken || errors.Is(g.err, ErrNameTaken)
			if g.addr != s.text {
				g.err = fmt.Errorf("%s: %w", g.addr, g.err)
			}
			errs = append(errs, g.err)
		}
	}
	err := errors.Join(errs...)
	switch {
	case taken:
		met = nil
	case known || len(met) > 0:
		n.complain(s.text, err)
		err = nil
	case err == nil:
		err = errNobody
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	return met
}

// targets returns some addresses of a seed that are worth a hello, and whether it has
// others: those of peers that know this one.
func (n *Node) targets(s *seed) (targets []netip.AddrPort, known bool) {
	table := *n.members.Load()
	at := make(map[netip.AddrPort]bool) // live members
	mutual := false                     // one of them knows this peer
	for _, m := range table {
		if m.up.Load() {
			at[m.info.Load().addr] = true
			mutual = mutual || m.knows.Load()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.found {
		m := table[s.answered[a]]
		switch {
		case a == n.advertise:
		case at[a] && mutual, m != nil && m.up.Load() && m.knows.Load():
			known = true
		default:
			targets = append(targets, a)
		}
	}
	rand.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	return targets[:min(len(targets), greetedAtOnce)], known
}

// Alone returns nil if another peer is alive, or if Config.Join is empty. Else it says
// what came of the last attempt to join through each of its entries: [*JoinError]s,
// joined. It does not wait.
func (n *Node) Alone() error {
	for _, m := range *n.members.Load() {
		if m.up.Load() {
			return nil
		}
	}
	var errs []error
	for _, s := range n.seeds {
		err := s.failure()
		if err == nil {
			err = fmt.Errorf("%w: no answer yet", ErrUnreachable)
		}
		errs = append(errs, &JoinError{s.text, err})
	}
	return errors.Join(errs...)
}
