package gossip

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
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

const (
	mostQuestions = 2 // full peers asked for a lookup, besides those that answer "not yet"
	leastPatience = 5 * time.Millisecond
	lastPatience  = 50 * time.Millisecond  // at least, with the last one that may be asked
	mostPatience  = 100 * time.Millisecond // for an answer: twice what the peer usually takes, within these bounds
	leastTrip     = time.Millisecond       // shorter trips count as this
	firstSilence  = 500 * time.Millisecond // for which a full peer that did not answer is not tried again, doubled each time
	lastSilence   = 30 * time.Second
	namedFade     = 0.98 // by which the weight of older outcomes is multiplied at each new one
	namedLeast    = 8    // outcomes before a full peer can be mistrusted
	falseFactor   = 2    // times the false hits that the digests' rates explain are a reason to
	falseMargin   = 0.1
	priorHeld     = 1.0 / 16 // assumed share of lookups for which a peer has the object
	lookAgain     = 16       // see fullPeers
	otherZone     = 100      // added to the distance of a full peer
)

// asking is the part of a host for the questions of light peers: asked here, and answered.
type asking struct {
	members  atomic.Pointer[directory]
	complete atomic.Bool // see exchange.Engine.Complete

	mu      sync.Mutex                 // guards the rest, and member.answers
	waiting map[uint32]chan<- answered // by the question's number
	count   exchange.Questions
}

// A directory has the live members as questions need them. It is made at the first one after a change.
type directory struct {
	once sync.Once
	full []*member
	byID map[exchange.ID]*member
	at   map[netip.AddrPort]*member
}

// A fullRecord is what is known about a full peer from its answers.
type fullRecord struct {
	trip        time.Duration // recent average; 0 = unknown
	silentUntil time.Time
	silent      int       // times without an answer, in a row; questions that wait together are one
	silentSince time.Time // when silent last went up
	outcomes    float64   // of peers that it named; older ones have less weight
	lies        float64   // of these, false hits beyond those that the digests' rates explain
}

// mistrusted reports whether another full peer is to be asked as well.
func (f *fullRecord) mistrusted() bool {
	return f.outcomes >= namedLeast && f.lies > falseMargin*f.outcomes
}

// patience is how long to wait for an answer.
func (f *fullRecord) patience() time.Duration {
	if f.trip == 0 {
		return mostPatience / 2
	}
	return min(max(2*f.trip, leastPatience), mostPatience)
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
				d.byID[exchange.ID(m.spread)], d.at[m.info.Load().addr] = m, m
			}
			d.full = slices.DeleteFunc(live, light)
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

// ask asks full peers for keys, until one has answered; two, if the first is mistrusted.
func (h *host) ask(ctx context.Context, keys []digest.Key) (got []answered) {
	a, left := &h.asking, h.fullPeers()
	q, answers := exchange.Question{Number: rand.Uint32(), Keys: keys}, make(chan answered, len(left))
	a.with(func() { a.waiting[q.Number] = answers })
	open := make(map[*member]time.Time)
	defer a.with(func() {
		delete(a.waiting, q.Number)
		h.silence(open)
	})
	timer := time.NewTimer(mostPatience)
	defer timer.Stop()
	for asked, most, need := 0, 1, 1; ; {
		for ; asked < most && len(left) > 0; asked++ {
			m := left[0]
			left, open[m] = left[1:], time.Now()
			if h.transport.write(q.AppendTo(nil), m.info.Load().addr) == nil {
				h.meters.out.packet(Requests, exchange.QuestionBytes(len(keys)))
			}
			a.with(func() {
				a.count.Asked++
				patience := m.answers.patience()
				if asked+1 == mostQuestions || len(left) == 0 {
					patience = max(patience, lastPatience) // there is nobody else to ask
				}
				timer.Reset(patience)
				if m.answers.mistrusted() {
					most, need = mostQuestions, mostQuestions
				}
			})
		}
		if len(got) >= need || len(open) == 0 {
			return got
		}
		select {
		case in := <-answers:
			if at, ok := open[in.from]; ok {
				delete(open, in.from)
				a.with(func() { a.heard(in, time.Since(at)) })
				if in.reply.NotYet {
					asked-- // another one is asked instead
				} else {
					got = append(got, in)
				}
			}
		case <-timer.C:
			if most == mostQuestions || len(left) == 0 {
				return got
			}
			most++
		case <-ctx.Done():
			return got
		case <-h.ctx.Done():
			return got
		}
	}
}

func (a *asking) with(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// heard notes an answer. a.mu is held.
func (a *asking) heard(in answered, took time.Duration) {
	r := &in.from.answers
	if r.trip == 0 {
		r.trip = took
	}
	r.trip += (took - r.trip) / 8
	r.silent, r.silentUntil = 0, time.Time{}
	if in.reply.NotYet {
		a.count.NotYet++
		r.silentUntil = time.Now().Add(firstSilence)
	}
}

// silence notes which of the peers asked did not answer in time. More patience is had with them next time. asking.mu
// is held.
func (h *host) silence(open map[*member]time.Time) {
	for m, at := range open {
		r, now := &m.answers, time.Now()
		if now.Sub(at) < r.patience() {
			continue
		}
		h.asking.count.Unanswered++
		if at.Before(r.silentSince) {
			continue // a moment in which a busy peer answers nobody is one silence, however many lookups met it
		}
		r.silentSince = now
		if r.silent > 0 { // a single one may be lost
			r.trip = min(r.patience(), mostPatience/2)
		}
		r.silentUntil = now.Add(min(firstSilence<<min(r.silent, 10), lastSilence))
		r.silent++
		h.doubt(m.name)
	}
}

// fullPeers returns the full peers in the order in which they are asked: those that were silent last; those of this peer's
// zone first, then the nearest; of those as near as each other, different peers ask different ones. The nearest goes first again
// half a second after a single silence, which may be a lost datagram; if it was silent twice or more, or was not, in which case
// another of the zone may be nearer by now, in one of lookAgain lookups. Those that were silent three times are left out for a time: when
// all have died, lookups wait for nobody.
func (h *host) fullPeers() []*member {
	order := slices.Clone(h.directory().full)
	order = slices.DeleteFunc(order, func(m *member) bool { return !m.up.Load() })
	own, now := uint64(exchange.IDOf(h.cfg.Name)), time.Now()
	near := func(a, b *member) int {
		return cmp.Or(cmp.Compare(h.distance(a), h.distance(b)), cmp.Compare(mix(a.spread^own), mix(b.spread^own)))
	}
	last := func(m *member) int { return min(m.answers.silent, 1) + int(max(0, m.answers.silentUntil.Sub(now))) }
	h.asking.with(func() {
		order = slices.DeleteFunc(order, func(m *member) bool { return m.answers.silent > 2 && now.Before(m.answers.silentUntil) })
		slices.SortFunc(order, func(a, b *member) int { return cmp.Or(cmp.Compare(last(a), last(b)), near(a, b)) })
		if len(order) < 2 {
			return
		}
		i := slices.Index(order, slices.MinFunc(order, near))
		if order[i].answers.silent != 1 && rand.IntN(lookAgain) > 0 {
			return
		}
		if i == 0 {
			i = 1 + rand.IntN(len(order)-1)
		}
		if m := order[i]; !now.Before(m.answers.silentUntil) && h.distance(m)/otherZone <= h.distance(order[0])/otherZone {
			order = slices.Insert(slices.Delete(order, i, i+1), 0, m)
		}
	})
	return order
}

// distance is in half octaves of trips; those of other zones are far. asking.mu is held.
func (h *host) distance(m *member) int {
	d := int(2 * math.Log2(float64(max(m.answers.trip, leastTrip))/float64(leastTrip)))
	if m.info.Load().meta.Zone != h.cfg.Zone {
		d += otherZone
	}
	return d
}

// Judge says whether a candidate that [Node.Ask] returned had the object. A full peer that names too many that do not is not
// believed alone.
func (n *Node) Judge(c Candidate, has bool) {
	m := n.made().live(c.Via)
	if m == nil {
		return
	}
	n.asking.with(func() {
		r := &m.answers
		n.asking.count.Named++
		r.outcomes, r.lies = 1+namedFade*r.outcomes, namedFade*r.lies-min(1, falseFactor*c.FalsePositiveRate/(c.FalsePositiveRate+priorHeld))
		if !has {
			n.asking.count.False++
			r.lies++
		}
	})
}
