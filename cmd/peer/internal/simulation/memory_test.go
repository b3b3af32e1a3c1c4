package simulation

import (
	"math/rand/v2"
	"slices"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// The processes of a schedule with a Limit have little memory, and at times the rest of the process
// holds most of it. Then a peer refuses what is new: a connection, a request, an object for its store,
// a tag, a digest, a stream of gossip.

// shortOfMemory gives the peers little memory, of which the rest of the process sometimes takes much. A
// member's digest may be too large for it.
func (s *schedule) shortOfMemory(rng *rand.Rand) {
	s.Limit = []int64{8 << 20, 10 << 20, 16 << 20, 48 << 20}[rng.IntN(4)]
	if !slices.ContainsFunc(s.Faults, func(f fault) bool { return f.Kind == "liar" }) && rng.IntN(2) == 0 {
		s.liar(rng)
	}
	if at, node := rng.IntN(s.Seconds*1000), rng.IntN(s.Peers); rng.IntN(2) == 0 { // connections without a request
		for i := range 60 {
			s.Requests = append(s.Requests, request{At: at + 10*i, Node: node, URL: s.First, Kind: "idle", N: int64(i)})
		}
	}
	if rng.IntN(2) == 0 {
		s.manyObjects(rng)
	}
	for range 1 + rng.IntN(4) {
		s.Faults = append(s.Faults, fault{Kind: "memory", At: rng.IntN(s.Seconds * 1000), For: 1000 + rng.IntN(s.Seconds*300), Node: rng.IntN(s.Peers),
			To: theOrigin, P: []float64{0.3, 0.7, 1}[rng.IntN(3)]})
	}
}

// manyObjects has clients ask for so many small pages that the index of the objects needs more than is reserved for it.
func (s *schedule) manyObjects(rng *rand.Rand) {
	const clients, each, pause = 6, 700, 10
	s.Limit = 8 << 20
	at, node := rng.IntN(s.Seconds*500), rng.IntN(s.Peers)
	for i := range clients {
		s.Requests = append(s.Requests, request{At: at, Node: node, Kind: "churn", URL: tinyURL + i*each, N: each, Pause: pause})
	}
	s.Faults = append(s.Faults, fault{Kind: "memory", At: at + 1000, For: 2000 + rng.IntN(5000), Node: node, To: theOrigin, P: 1})
}

// budget is that of a process which a peer's next node is; nil = it has no limit.
func (p *peer) newBudget() *budget.Budget {
	if p.w.s.Limit == 0 {
		return nil
	}
	b := budget.New(p.w.s.Limit)
	p.mu.Lock()
	p.budget, p.rest = b, b.Open("the rest", 0, 0)
	p.mu.Unlock()
	return b
}

// squeeze lets the rest of the process hold a share of the budget for a time.
func (p *peer) squeeze(f fault) {
	p.mu.Lock()
	b, rest := p.budget, p.rest
	p.mu.Unlock()
	if b == nil {
		return
	}
	n := int64(f.P * float64(b.Total()))
	rest.Must(n)
	p.w.wait(f.For)
	rest.Give(n)
}

// refusals returns how many connections and requests the peer's process has refused or ended to make room.
func (p *peer) refusals() int64 {
	n := p.now()
	if n == nil || p.w.s.Limit == 0 {
		return 0
	}
	s := n.Status()
	return s.Clients.Refused + s.Clients.Dropped
}

// refused reports whether the peer has refused or ended anything since a request began.
func (w *world) refused(r *result) bool { return w.peers[r.Node].refusals() > r.refusals }

// judgeMemory checks that a process gives back what its connections and requests held. at is when.
func (w *world) judgeMemory(p *peer, at string, accounts ...string) {
	p.mu.Lock()
	b := p.budget
	p.mu.Unlock()
	if b == nil {
		return
	}
	for _, u := range b.Usage() {
		for _, name := range accounts {
			if u.Name == name && u.Held != 0 {
				w.fail("leak", nil, "p%d: %d bytes of %s are held %s", p.index, u.Held, name, at)
			}
		}
		if u.Refused > 0 {
			w.sometimes("memory refused to " + u.Name)
		}
	}
}
