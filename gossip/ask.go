package gossip

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip/exchange"
)

// Digests says whether a node keeps the digests of others: PROTOCOL.md, section 16.
type Digests uint8

const (
	Keep Digests = iota // of all peers: lookups ask nobody. The node answers those that keep none.
	Ask                 // of none: lookups ask a peer that keeps them, so that others should do so
	Auto                // of all, while they take little memory (Advanced.IndexBytes); then a few peers of each zone do, and the rest ask
)

// asking is the part of a host for the questions of light peers: asked here, and answered.
type asking struct {
	members  atomic.Pointer[directory]
	complete atomic.Bool // see exchange.Engine.Complete

	mu      sync.Mutex                 // guards the rest, and member.full
	waiting map[uint32]chan<- answered // by the question's number
	asker   *exchange.Asker
}

// A directory has the live members as questions need them. It is made at the first one after a change.
type directory struct {
	once sync.Once
	full []*member
	byID map[exchange.ID]*member
	at   map[netip.AddrPort]*member
}

type answered struct {
	from  *member
	reply exchange.Reply
}

// directory returns the live members; none if there are no questions to be asked or answered.
func (h *host) directory() *directory {
	d := h.asking.members.Load()
	d.once.Do(func() {
		live := h.liveMembers()
		light := func(m *member) bool { return m.info.Load().meta.Light }
		if h.light.Load() || slices.ContainsFunc(live, light) {
			d.byID, d.at = make(map[exchange.ID]*member, len(live)), make(map[netip.AddrPort]*member, len(live))
			for _, m := range live {
				d.byID[m.id], d.at[m.info.Load().addr] = m, m
			}
			d.full = slices.DeleteFunc(live, light)
			h.asking.with(func() {
				for _, m := range d.full {
					m.full.ID, m.full.Far = m.id, m.info.Load().meta.Zone != h.cfg.Zone
				}
			})
		}
	})
	return d
}

// Ask returns, for each identity, what [Node.Candidates] would return if this peer kept digests. If it does, Ask returns nil
// at once: use Candidates. If it keeps none, or has only just begun to, it asks the nearest peer that keeps them, and one more if
// that does not answer. It waits for two tenths of a second at most, or as long as ctx allows, and asks for sixteen identities at most.
func (n *Node) Ask(ctx context.Context, identities []string) [][]Candidate {
	if n.made(); !n.light.Load() && (n.asking.complete.Load() || len(n.directory().full) == 0) {
		return nil
	}
	found := make([][]Candidate, len(identities))
	var keys []digest.Key
	seeds := n.digestSeeds()
	for _, id := range identities {
		for _, seed := range seeds {
			keys = append(keys, digest.KeyOfString(seed, id))
		}
		if len(keys)+len(seeds) > exchange.MaxKeys {
			break
		}
	}
	if len(keys) == 0 {
		return found
	}
	table, now := *n.members.Load(), time.Now()
	for _, a := range n.ask(ctx, keys) {
		for _, holder := range a.reply.Holders {
			m := n.directory().byID[holder.Peer]
			if m == nil || int(holder.Key) >= len(keys) {
				continue
			}
			k, to := keys[holder.Key], &found[int(holder.Key)/len(seeds)]
			c, ok := n.candidate(table, index.Match{Peer: m.name, FalsePositiveRate: holder.FalsePositiveRate()}, now, k)
			if c.Age, c.Via = holder.DigestAge(), a.from.name; ok && !slices.ContainsFunc(*to, func(o Candidate) bool { return o.Peer == c.Peer }) {
				*to = append(*to, c)
			}
		}
	}
	for _, to := range found {
		slices.SortFunc(to, func(a, b Candidate) int { return cmp.Compare(b.rank, a.rank) })
	}
	return found
}

// ask asks full peers for keys, and returns what they answer.
func (h *host) ask(ctx context.Context, keys []digest.Key) (got []answered) {
	a, d := &h.asking, h.directory()
	var full []*exchange.FullPeer
	for _, m := range d.full {
		if m.up.Load() {
			full = append(full, &m.full)
		}
	}
	var l *exchange.Lookup
	answers := make(chan answered, len(full))
	a.with(func() {
		l = a.asker.Begin(time.Now(), keys, full)
		a.waiting[l.Number] = answers
	})
	defer a.with(func() {
		delete(a.waiting, l.Number)
		for _, f := range l.End(time.Now()) {
			h.doubt(d.byID[f.ID].name)
		}
		for _, r := range l.Replies {
			got = append(got, answered{d.byID[r.From.ID], r.Reply})
		}
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var to *exchange.FullPeer
		done := false
		a.with(func() {
			to = l.Next(time.Now())
			done = to == nil && l.Done()
			timer.Reset(time.Until(l.Until()))
		})
		switch {
		case done:
			return nil
		case to != nil:
			if h.transport.write(l.Question.AppendTo(nil), d.byID[to.ID].info.Load().addr) == nil {
				h.meters.out.packet(kindRequests, exchange.QuestionBytes(len(keys)))
			}
			continue
		}
		select {
		case in := <-answers:
			a.with(func() { l.Heard(time.Now(), &in.from.full, in.reply) })
		case <-timer.C:
			a.with(l.Late)
		case <-ctx.Done():
			return nil
		case <-h.ctx.Done():
			return nil
		}
	}
}

func (a *asking) with(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// Judge says whether a candidate that [Node.Ask] returned had the object. A full peer that names too many that do not is not
// believed alone.
func (n *Node) Judge(c Candidate, has bool) {
	if m := n.made().live(c.Via); m != nil {
		n.asking.with(func() { n.asking.asker.Judge(&m.full, c.FalsePositiveRate, has) })
	}
}
