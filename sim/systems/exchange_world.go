package systems

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
	engine "github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/sim/caches"
	"github.com/summarycache/summarycache/sim/lab"
)

const (
	startTime = time.Second // observed peers start within it, and the others within the next one
	pollEvery = 50 * time.Millisecond
)

func newExchange(o exchangeOptions, job *lab.Job) (*exchange, error) {
	w := &exchange{options: o, job: job, rng: rand.New(job.Source(uint64(o.peers), uint64(o.loss*1000))), now: exchangeStart}
	geometry, err := digest.GeometryFor(uint64(o.objects), caches.PlannedCandidates/float64(o.peers-1))
	if err != nil {
		return nil, err
	}
	geometry.Seed = lab.Mix64(job.Seed)
	for range o.contents {
		c, err := newContent(geometry, o.objects, rand.New(rand.NewPCG(w.rng.Uint64(), 1)))
		if err != nil {
			return nil, err
		}
		w.contents = append(w.contents, c)
	}
	w.publish = engine.Publishing{MinInterval: o.wait}.For(o.peers - 1)
	w.byName = make(map[string]*exchangePeer, o.peers)
	for i := range o.peers {
		p := &exchangePeer{at: i, name: fmt.Sprintf("peer%05d", i), content: w.contents[i%o.contents]}
		p.content.copies++
		w.peers = append(w.peers, p)
		w.byName[p.name] = p
		wait := w.upTo(startTime)
		if !p.observed(w) {
			wait += startTime
		}
		w.after(wait, func() { w.start(p) })
	}
	w.peers[0].index = index.New()
	w.links = make([]link, 2*o.peers*o.observed)
	w.publications = make([]publications, o.peers)
	return w, nil
}

// known returns the running peers that know p; p knows the same ones.
func (w *exchange) known(p *exchangePeer) (known []*exchangePeer) {
	all := w.peers
	if !p.observed(w) {
		all = w.peers[:w.options.observed]
	}
	for _, q := range all {
		if q != p && q.engine != nil {
			known = append(known, q)
		}
	}
	return known
}

// start starts the peer, which publishes all its contents.
func (w *exchange) start(p *exchangePeer) {
	c := engine.Config{
		Name: p.name, Incarnation: engine.NewIncarnation(w.now, w.rng.Uint64()), Seed: w.rng.Uint64(),
		Publish: w.publish, ReplicaLog: 16 << 10,
	}
	if !p.observed(w) {
		c.SyncInterval = 1000 * time.Hour
	}
	p.engine = engine.New(c, w.now)
	w.advance(p)
	known := w.known(p)
	for _, q := range known {
		p.engine.PeerUp(w.now, q.name, q.engine.Incarnation())
	}
	w.pump(p)
	for _, q := range known {
		q.engine.PeerUp(w.now, p.name, p.engine.Incarnation())
		w.pump(q)
	}
	w.after(w.upTo(pollEvery), func() { w.look(p) })
	if p.observed(w) {
		w.after(w.upTo(probeEvery), func() { w.probe(p) })
	}
}

// advance publishes the next version of p's content.
func (w *exchange) advance(p *exchangePeer) {
	replaced := int(p.owed)
	p.owed -= float64(replaced)
	before := p.took
	f, d := p.content.version(p.version, replaced)
	p.version++
	p.took = w.now
	p.engine.Publish(w.now, f, d)
	w.published(p, before)
}

// look publishes if the engine says that a publication is due, as package gossip does.
func (w *exchange) look(p *exchangePeer) {
	w.after(pollEvery, func() { w.look(p) })
	p.owed += w.options.churn / 60 * float64(w.options.objects) * pollEvery.Seconds()
	// A replaced object sets one position and, nearly always, clears one.
	if !w.settled() || p.engine.PublishIn(w.now, 2*int(p.owed)) > 0 {
		return
	}
	w.advance(p)
	w.pump(p)
}

// run executes the events until then.
func (w *exchange) run(then time.Time, what string) error {
	for steps := 0; len(w.events.events) > 0 && w.err == nil; steps++ {
		if steps%4096 == 0 {
			w.job.Progress("%d peers, loss %g %%: %s, %.1f virtual seconds", w.options.peers, 100*w.options.loss, what,
				w.now.Sub(exchangeStart).Seconds())
		}
		if w.events.events[0].at > then.Sub(exchangeStart) {
			break
		}
		e := w.events.pop()
		w.now = exchangeStart.Add(e.at)
		e.do()
	}
	w.now = then
	return w.err
}

const (
	joinTime  = 2 * time.Minute  // at most, until all peers have all digests
	settling  = 10 * time.Second // from then on, before anything is counted
	drainTime = 30 * time.Second // at most, until all peers have what was published
)

// measure waits until all peers have all digests, counts for the requested time, and waits
// until everything that was published in that time has arrived.
func (w *exchange) measure() error {
	for w.now.Sub(exchangeStart) < 2*startTime || !w.complete() {
		if w.now.Sub(exchangeStart) > joinTime {
			return fmt.Errorf("%d peers are not in step after %v", w.options.peers, joinTime)
		}
		if err := w.run(w.now.Add(100*time.Millisecond), "joining"); err != nil {
			return err
		}
	}
	w.joined = w.now.Sub(exchangeStart)
	if err := w.run(w.now.Add(settling), "settling"); err != nil {
		return err
	}
	w.counting = true
	if err := w.run(w.now.Add(w.options.time), "measuring"); err != nil {
		return err
	}
	w.counting = false
	for end := w.now.Add(drainTime); w.pending > 0 && w.now.Before(end); {
		if err := w.run(w.now.Add(100*time.Millisecond), "waiting for the last"); err != nil {
			return err
		}
	}
	if w.pending > 0 {
		return fmt.Errorf("%d publications did not reach all peers within %v", w.pending, drainTime)
	}
	return nil
}

// complete reports whether every peer has every digest that it should have.
func (w *exchange) complete() bool {
	for _, p := range w.peers {
		for _, q := range w.known(p) {
			if r, _ := p.engine.Replica(q.name); r.Filter == nil {
				return false
			}
		}
	}
	return true
}

// settled reports whether the contents may change, which they do once all peers have joined.
func (w *exchange) settled() bool { return w.joined > 0 }
