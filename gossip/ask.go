package gossip

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/insider"
)

// asking is the part of a host for the questions of light peers: asked here, and answered.
type asking struct {
	members  atomic.Pointer[directory]
	complete atomic.Bool // see exchange.Engine.Complete

	mu      sync.Mutex // guards the rest
	waiting map[uint32]asked
	count   exchange.Questions
}

// asked is a question that waits for its reply.
type asked struct {
	keeper *member
	reply  chan<- exchange.Reply // has room for one
}

// A directory has the live members as questions need them. It is made at the first one after a change.
type directory struct {
	once    sync.Once
	keepers []insider.Keeper
	byID    map[exchange.ID]*member
	at      map[netip.AddrPort]*member
}

// directory returns the live members; none if there are no questions to be asked or answered.
func (h *host) directory() *directory {
	d := h.asking.members.Load()
	d.once.Do(func() {
		live := h.liveMembers()
		light := func(m *member) bool { return m.info.Load().meta.Light }
		if h.cfg.Light || slices.ContainsFunc(live, light) {
			d.byID, d.at = make(map[exchange.ID]*member, len(live)), make(map[netip.AddrPort]*member, len(live))
			for _, m := range live {
				d.byID[m.id], d.at[m.info.Load().addr] = m, m
				if !light(m) {
					d.keepers = append(d.keepers, insider.Keeper{Name: m.name, Near: m.info.Load().meta.Zone == h.cfg.Zone})
				}
			}
		}
	})
	return d
}

// Keepers returns the peers of which one has to be asked who has an object (Ask), since this peer keeps no
// digests, or has only just begun to; in no particular order. asks is false if [Node.Candidates] knows. The result must
// not be changed.
func (n inside) Keepers() (keepers []insider.Keeper, asks bool) {
	if n.made(); !n.cfg.Light && n.asking.complete.Load() {
		return nil, false
	}
	keepers = n.directory().keepers
	return keepers, n.cfg.Light || len(keepers) > 0
}

// Ask asks a peer that keeps digests who has some objects, in one datagram, and returns for each identity, of sixteen
// at most, what [Node.Candidates] returns there. It waits for the reply until ctx ends.
func (n inside) Ask(ctx context.Context, keeper string, identities []string) ([][]Candidate, error) {
	k := n.made().live(keeper)
	if k == nil {
		return nil, ErrUnreachable
	}
	found := make([][]Candidate, len(identities))
	var keys []digest.Key
	seeds := n.digestSeeds()
	for _, id := range identities[:min(len(identities), exchange.MaxKeys/len(seeds))] {
		for _, seed := range seeds {
			keys = append(keys, digest.KeyOfString(seed, id))
		}
	}
	if len(keys) == 0 {
		return found, nil
	}
	r, err := n.inquire(ctx, k, keys)
	if err != nil {
		return nil, err
	}
	table, now := *n.members.Load(), time.Now()
	for _, holder := range r.Holders {
		m := n.directory().byID[holder.Peer]
		if m == nil || int(holder.Key) >= len(keys) {
			continue
		}
		key, to := keys[holder.Key], &found[int(holder.Key)/len(seeds)]
		c, ok := n.candidate(table, index.Match{Peer: m.name, FalsePositiveRate: holder.FalsePositiveRate()}, now, key)
		c.Age, c.Via = holder.DigestAge(), keeper
		if ok && !slices.ContainsFunc(*to, func(o Candidate) bool { return o.Peer == c.Peer }) {
			*to = append(*to, c)
		}
	}
	for _, to := range found {
		slices.SortFunc(to, func(a, b Candidate) int { return cmp.Compare(b.rank, a.rank) })
	}
	return found, nil
}

// inquire sends a question to a peer, and returns its reply.
func (h *host) inquire(ctx context.Context, keeper *member, keys []digest.Key) (exchange.Reply, error) {
	a, q, reply := &h.asking, exchange.Question{Number: rand.Uint32(), Keys: keys}, make(chan exchange.Reply, 1)
	a.with(func() {
		a.count.Asked++
		a.waiting[q.Number] = asked{keeper, reply}
	})
	defer a.with(func() { delete(a.waiting, q.Number) })
	if h.transport.write(q.AppendTo(nil), keeper.info.Load().addr) == nil {
		h.meters.out.packet(kindRequests, exchange.QuestionBytes(len(keys)))
	}
	select {
	case r := <-reply:
		if r.NotYet {
			a.with(func() { a.count.NotYet++ })
			return r, insider.ErrNotYet
		}
		return r, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			a.with(func() { a.count.Unanswered++ })
		}
		return exchange.Reply{}, ctx.Err()
	case <-h.ctx.Done():
		return exchange.Reply{}, ErrUnreachable
	}
}

func (a *asking) with(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// Judge counts what an answer of a keeper was worth. mistrusted means that it is now asked after all others, for a
// while.
func (n inside) Judge(keeper string, w insider.Worth, mistrusted bool) {
	n.made().asking.with(func() {
		count := &n.asking.count
		if w == insider.Withheld {
			count.Withheld++
			return
		}
		count.Named++
		if w != insider.Right {
			count.False++
		}
		if w == insider.Misled {
			count.Misled++
		}
	})
	if mistrusted {
		what := "it names peers that lack the object, and that others do not name"
		if w == insider.Withheld {
			what = "it names nobody for what others have"
		}
		n.log.LogAttrs(n.ctx, slog.LevelWarn, "mistrusts a peer that keeps digests: "+what,
			slog.String("member", keeper))
	}
}
