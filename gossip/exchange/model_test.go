package exchange

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

var (
	modelRuns  = flag.Int("model.runs", 0, "schedules of the model test; 0 means a number that fits the test suite")
	modelFirst = flag.Int64("model.first", 1, "seed of the first schedule")
	modelSeed  = flag.Uint64("model.seed", 0, "run only the schedule of this seed")
)

const (
	// updateInterval is the longest time between two adverts to a peer that has
	// not reacted (PROTOCOL.md 6.2).
	updateInterval = 5 * time.Second
	faultTime      = 12 * time.Second
	detectionTime  = 3 * time.Second // at most, in the model
	returnTime     = 2 * time.Second // at most, until a peer that is back is a member
)

const replicaStates = int(wrong) + 1

var stateNames = [replicaStates]string{"nothing", "former", "trusted", "doubted", "wrong"}

func (s replicaState) String() string { return stateNames[s] }

// leads are the transitions that PROTOCOL.md, 6.6, draws.
var leads = [replicaStates][]replicaState{
	nothing: {trusted, former},
	former:  {trusted, wrong, nothing, former},
	trusted: {doubted, wrong, former, nothing, trusted},
	doubted: {trusted, wrong, former, nothing},
	wrong:   {trusted, nothing, wrong},
}

// newWorld draws a schedule at random: the peers, the faults and their times.
func newWorld(seed uint64, bug string) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 5)), now: time.Unix(0, 0), bug: bug,
		cut: make(map[[2]int]bool), published: make(map[digest.Version]uint64),
	}
	r := w.rng
	n := 3 + r.IntN(4)
	if r.IntN(20) == 0 {
		n = 3 + r.IntN(28)
	}
	w.loss, w.dup = 0.3*r.Float64(), 0.2*r.Float64()
	w.delay = w.some(200 * time.Millisecond)
	w.broken = 0.1 * r.Float64() * float64(r.IntN(2))
	w.breaks = 0.5 * r.Float64() * float64(r.IntN(2))
	w.peers = make([]*simPeer, n)
	for i := range w.peers {
		w.peers[i] = &simPeer{w: w, i: i, name: fmt.Sprintf("p%d", i), slow: r.IntN(8) == 0}
	}
	w.lighten(rand.New(rand.NewPCG(seed, 6)))
	for _, p := range w.peers {
		p.empty()
		p.change(r.IntN(100))
		p.start(NewIncarnation(w.now.Add(time.Hour), r.Uint64()))
	}
	w.membershipChanged()
	for range r.IntN(8) {
		w.after(w.some(faultTime), w.fault)
	}
	for range n * (1 + r.IntN(6)) {
		p := w.peers[r.IntN(n)]
		w.after(w.some(faultTime), func() { p.change(1 + r.IntN(20)) })
	}
	return w
}

// lighten makes some peers light in two of three schedules. Some of them are restarted as the other kind while there are faults.
func (w *world) lighten(r *rand.Rand) {
	if r.IntN(3) == 0 {
		return
	}
	for _, p := range w.peers {
		for range r.IntN(3) {
			p.light = r.IntN(2) == 0
			light := r.IntN(2) == 0
			w.after(time.Duration(r.Int64N(int64(faultTime))), func() {
				p.engine, p.light = nil, light
				w.membershipChanged()
				w.after(w.some(8*time.Second), p.restart)
			})
		}
	}
}

func (w *world) geometry() digest.Geometry {
	return digest.Geometry{Bits: 1 << (10 + w.rng.IntN(3)), Hashes: 1 + w.rng.IntN(2), Seed: 1}
}

// empty gives p a filter without keys, as a restart without a store does.
func (p *simPeer) empty() {
	p.filter, _ = digest.NewSet(p.w.geometry(), 1)
	p.keys = nil
}

// fault begins a fault, and plans its end.
func (w *world) fault() {
	r := w.rng
	a, b := w.peers[r.IntN(len(w.peers))], w.peers[r.IntN(len(w.peers))]
	length := w.some(8 * time.Second)
	switch r.IntN(5) {
	case 0: // a crash, and a restart with or without what was stored
		if a.engine == nil {
			return
		}
		a.engine = nil
		w.membershipChanged()
		w.after(length, a.restart)
	case 1: // one link, one way
		if a != b {
			w.sever([][2]int{{a.i, b.i}}, length)
		}
	case 2, 3: // two halves
		var links [][2]int
		for i := range w.peers {
			for j := range w.peers {
				if (i <= a.i) != (j <= a.i) {
					links = append(links, [2]int{i, j})
				}
			}
		}
		w.sever(links, length)
	case 4: // another geometry
		if a.engine == nil {
			return
		}
		if err := a.filter.Inside().Rebuild(w.geometry()); err != nil {
			w.fail("Rebuild: %v", err)
		}
		a.publish()
	}
}

func (w *world) sever(links [][2]int, length time.Duration) {
	for _, l := range links {
		w.cut[l] = true
	}
	w.membershipChanged()
	w.after(length, func() {
		for _, l := range links {
			delete(w.cut, l)
		}
		w.membershipChanged()
	})
}

func (p *simPeer) restart() {
	if p.engine != nil {
		return
	}
	r := p.w.rng
	if r.IntN(2) == 0 {
		p.empty()
	} else {
		p.filter, _ = digest.NewSet(p.filter.Geometry(), 1)
		for _, k := range p.keys {
			p.filter.Add(k)
		}
	}
	inc := NewIncarnation(p.w.now.Add(time.Hour), r.Uint64())
	switch {
	case p.w.bug == "same incarnation":
		inc = p.inc
	case r.IntN(4) == 0:
		inc = NewIncarnation(p.w.now.Add(time.Minute), r.Uint64()) // the clock went back
	}
	p.start(inc)
	p.w.membershipChanged()
}

// membershipChanged makes every peer learn the state of every other, after a random time.
func (w *world) membershipChanged() {
	for _, a := range w.peers {
		for _, b := range w.peers {
			if a == b || a.engine == nil {
				continue
			}
			delay := w.some(returnTime)
			if !a.sees(b) {
				delay = time.Second + w.some(detectionTime-time.Second)
			}
			a.do(delay, func() { a.believe(b) })
		}
	}
}

// sees is the result of a failure detector with indirect probes: only a link that is cut both ways, or
// a crash, makes a peer dead.
func (p *simPeer) sees(b *simPeer) bool {
	return b.engine != nil && !(p.w.cut[[2]int{p.i, b.i}] && p.w.cut[[2]int{b.i, p.i}])
}

func (p *simPeer) believe(b *simPeer) {
	changed := p.sees(b) && p.lights[b.i] != b.light
	if changed {
		p.lights[b.i] = b.light
		p.engine.PeerLight(p.w.now, b.name, b.light)
	}
	switch {
	case p.sees(b) && p.view[b.i] != b.inc:
		p.view[b.i] = b.inc
		p.last[b.i] = Version{}
		p.engine.PeerUp(p.w.now, b.name, b.inc)
	case !p.sees(b) && p.view[b.i] != 0:
		p.view[b.i] = 0
		p.engine.PeerDown(p.w.now, b.name)
	case !changed:
		return
	}
	p.pump()
	if p.view[b.i] == 0 && p.index[b.i] != nil {
		p.w.fail("%s has %s among its candidates, which is dead", p.name, b.name)
	}
}

// updateIndex checks that the filter for lookups is one that its origin published, and newer than the
// one before.
func (p *simPeer) updateIndex(u Update) {
	w, b := p.w, p.w.byName(u.Peer)
	if u.Filter == nil {
		if w.bug != "the dead are kept" {
			p.index[b.i] = nil
		}
		return
	}
	w.checks++
	want, ok := w.published[u.Filter.Version()]
	if !ok || hashOf(u.Filter) != want {
		w.fail("%s uses a digest of %s, %v, that was never published", p.name, u.Peer, u.Filter.Version())
	}
	if d := u.Delta; d != nil && (d.Target() != u.Filter.Version() || p.index[b.i] != nil && p.index[b.i].Version() != d.Base()) {
		w.fail("%s changes its digest of %s by a delta from %v to %v, not %v", p.name, u.Peer, d.Base(), d.Target(), u.Filter.Version())
	}
	p.index[b.i] = u.Filter
	r, _ := p.engine.Replica(u.Peer)
	if r.Filter == u.Filter {
		if r.Head.Version.Compare(p.last[b.i]) < 0 {
			w.fail("%s went back from %v to %v of %s", p.name, p.last[b.i], r.Head.Version, u.Peer)
		}
		p.last[b.i] = r.Head.Version
	}
}

// checkBounds checks what must not grow, and the sum.
func (p *simPeer) checkBounds() {
	e, n := p.engine, len(p.w.peers)
	known := uint64(0)
	for _, q := range e.live {
		h := Head{Origin: q.id, Version: Version{Incarnation: q.incarnation}}
		if q.holds() {
			h = q.held
		}
		known += h.sum()
	}
	if known != e.known {
		p.w.fail("%s: the sum of what it knows is %x, not %x", p.name, e.known, known)
	}
	if len(e.flights) > smallFetches*e.cfg.Fetches || e.snapshotFlights > e.cfg.Fetches || len(e.want)+len(e.waiting) > n || len(e.round.queue) > n || len(e.order) > n {
		p.w.fail("%s: %d flights, %d wants, %d adverts queued, %d peers",
			p.name, len(e.flights), len(e.want), len(e.round.queue), len(e.order))
	}
}

// settle ends all faults, waits two update intervals, and checks that all replicas equal their origins'
// digests.
func (w *world) settle() {
	w.run(time.Unix(0, 0).Add(faultTime + 8*time.Second + returnTime))
	w.loss, w.dup, w.broken, w.breaks = 0, 0, 0, 0
	w.run(w.now.Add(2 * updateInterval))
	for _, a := range w.peers {
		for _, b := range w.peers {
			if a == b || w.failed != nil {
				continue
			}
			want := b.filter.Filter().Current()
			got := a.index[b.i]
			if own, ok := a.engine.SumWith(b.name); ok && b.engine.Sum() != own {
				w.fail("%s compares %x with the sum of %s, which is %x", a.name, own, b.name, b.engine.Sum())
			}
			if a.light {
				if r, _ := a.engine.Replica(b.name); got != nil || r.Filter != nil {
					w.fail("%s is light and has a digest of %s", a.name, b.name)
				}
				continue
			}
			if slices.Contains(a.lights, true) && !a.engine.Complete() {
				w.fail("%s is full and not complete", a.name)
			}
			if got == nil || got.Version() != want.Version() || hashOf(got) != hashOf(want) {
				r, _ := a.engine.Replica(b.name)
				w.fail("%s holds of %s %v (usable %v, behind %v), not %v", a.name, b.name, r.Head, r.Usable, r.Behind, want.Version())
			}
		}
	}
}

func runModel(seed uint64, bug string) (*world, error) {
	w := newWorld(seed, bug)
	w.settle()
	return w, w.failed
}

func TestModel(t *testing.T) {
	if *modelSeed != 0 {
		if _, err := runModel(*modelSeed, ""); err != nil {
			t.Fatal(err)
		}
		return
	}
	runs := *modelRuns
	if runs == 0 {
		runs = defaultModelRuns
	}
	var next, failures, checks, divergences, adopted atomic.Int64
	var led [replicaStates][replicaStates]atomic.Int64
	next.Store(*modelFirst - 1)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1)
				if seed >= *modelFirst+int64(runs) {
					return
				}
				w, err := runModel(uint64(seed), "")
				checks.Add(int64(w.checks))
				for from := range led {
					for to := range led {
						led[from][to].Add(int64(w.led[from][to]))
					}
				}
				for _, p := range w.peers {
					if p.engine != nil {
						divergences.Add(p.engine.Stats().Divergences)
						adopted.Add(p.engine.Stats().Adopted)
					}
				}
				if err != nil && failures.Add(1) <= 3 {
					t.Errorf("-model.seed=%d: %v", seed, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d schedules, %d failures; %d updates checked, %d divergences found, %d of former lives adopted",
		runs, failures.Load(), checks.Load(), divergences.Load(), adopted.Load())
	for from, list := range leads {
		for _, to := range list {
			t.Logf("%v to %v: %d times", replicaState(from), to, led[from][to].Load())
		}
	}
	if adopted.Load() == 0 {
		t.Error("no schedule adopted a digest")
	}
}

func TestModelCatchesPlantedBugs(t *testing.T) {
	for _, bug := range []string{"wrong base", "the dead are kept", "same incarnation", "no anti-entropy"} {
		t.Run(bug, func(t *testing.T) {
			for seed := uint64(1); seed <= 100; seed++ {
				if _, err := runModel(seed, bug); err != nil {
					t.Logf("caught by seed %d: %v", seed, err)
					return
				}
			}
			t.Error("100 schedules did not notice")
		})
	}
}

func TestModelReplays(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, _ := runModel(seed, "")
		b, _ := runModel(seed, "")
		if a.number != b.number || a.checks != b.checks {
			t.Errorf("seed %d gave %d events and %d checks, then %d and %d", seed, a.number, a.checks, b.number, b.checks)
		}
	}
}
