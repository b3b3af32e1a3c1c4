package systems

import (
	"cmp"
	"time"

	"github.com/summarycache/summarycache/digest"
	engine "github.com/summarycache/summarycache/gossip/exchange"
)

// oneWay draws the delay of one packet.
func (w *exchange) oneWay() time.Duration {
	return w.options.delay/2 + w.upTo(w.options.delay)
}

const (
	firstResend = 200 * time.Millisecond
	mostResends = 5
)

// stream draws the one-way delay of a stream, which retransmits lost packets.
func (w *exchange) stream() time.Duration {
	d := w.oneWay()
	for i := 0; i < mostResends && w.rng.Float64() < w.options.loss; i++ {
		d += firstResend << i
	}
	return d
}

func (w *exchange) datagram(from, to *exchangePeer, data []byte) {
	lost := w.options.loss > 0 && w.rng.Float64() < w.options.loss
	w.sent(from, to, data, lost)
	if lost {
		return
	}
	sequence := uint32(from.engine.Self().Version.Sequence)
	w.after(w.oneWay(), func() {
		w.heard(from, to, data, sequence)
		to.engine.HandleDatagram(w.now, data)
		w.pump(to)
		w.tick(to)
	})
}

// fetch sends a get to its source. A peer that is not observed holds too few digests to
// relay them, so an observed peer takes its place.
func (w *exchange) fetch(p *exchangePeer, f engine.Fetch) {
	origin := w.byName[f.Origin]
	if f.Step != nil {
		r := w.bodies.carried(origin.content, f)
		w.computed(p, func() { engine.DecodeChange(f, digest.Limits{}) })
		w.err = cmp.Or(w.err, r.Err)
		w.after(0, func() { w.fetched(p, f, r) })
		return
	}
	source := w.byName[f.Source]
	if !source.observed(w) && f.Source != f.Origin {
		source = w.standIn(p, origin)
	}
	w.asked(p, source, f)
	w.after(w.stream(), func() { w.serve(source, p, f) })
}

func (w *exchange) standIn(not, nor *exchangePeer) *exchangePeer {
	for {
		if p := w.peers[w.rng.IntN(w.options.observed)]; p != not && (p != nor || w.options.observed == 2) {
			return p
		}
	}
}

func (w *exchange) serve(p, to *exchangePeer, f engine.Fetch) {
	a := p.engine.HandleGet(to.name, f.Get)
	r, frame, err := w.bodies.answer(w.byName[f.Origin].content, f, a)
	if err != nil {
		w.err = err
		return
	}
	n := len(frame)
	w.computed(to, func() { decode(f, frame) })
	p.engine.Served(r.Kind)
	w.served(p, r.Kind, n)
	w.after(w.stream(), func() {
		w.answered(to, f, r.Kind, n)
		w.fetched(to, f, r)
	})
	w.pump(p)
}

// fetched gives p the result of a fetch.
func (w *exchange) fetched(p *exchangePeer, f engine.Fetch, r engine.Result) {
	p.engine.FetchDone(w.now, f.Number, r)
	w.pump(p)
	w.tick(p)
}

// sync exchanges vectors between two observed peers, since other peers' vectors would be
// too short.
func (w *exchange) sync(p *exchangePeer, s engine.Sync) {
	with := w.byName[s.Peer]
	if !p.observed(w) {
		w.after(w.stream(), func() { w.synced(p, with, nil) })
		return
	}
	partner := w.partner(p, with)
	reply := partner.engine.HandleSync(w.now, p.name, s.Heads)
	w.compared(p, partner, len(engine.AppendVector(nil, engine.FrameSync, s.Heads)), len(engine.AppendVector(nil, engine.FrameVector, reply)))
	w.pump(partner)
	w.after(w.stream()+w.stream(), func() { w.synced(p, with, reply) })
}

func (w *exchange) synced(p, with *exchangePeer, heads []engine.Head) {
	p.engine.SyncDone(w.now, with.name, heads, nil)
	w.pump(p)
}

// partner returns with if it is observed, or else an observed peer that replaces it in a
// comparison.
func (w *exchange) partner(p, with *exchangePeer) *exchangePeer {
	if with.observed(w) {
		return with
	}
	return w.standIn(p, p)
}

// probe compares sums, as membership's probes do: once a second for each observed peer.
func (w *exchange) probe(p *exchangePeer) {
	w.after(probeEvery, func() { w.probe(p) })
	with := w.peers[w.rng.IntN(w.options.peers)]
	if with == p || with.engine == nil || w.options.observed < 2 {
		return
	}
	with = w.partner(p, with)
	if with.engine == nil || w.rng.Float64() < w.options.loss || w.rng.Float64() < w.options.loss {
		return
	}
	w.count(with, out, kindVector, sumBytes)
	w.count(p, in, kindVector, sumBytes)
	sum := with.engine.Sum()
	w.after(w.oneWay()+w.oneWay(), func() {
		p.engine.HandleSum(w.now, with.name, sum == p.engine.Sum())
		w.pump(p)
	})
}

const (
	probeEvery = time.Second
	sumBytes   = 4
)

// pump executes the outputs of p's engine, and schedules its next tick.
func (w *exchange) pump(p *exchangePeer) {
	out := p.engine.Drain()
	for _, ev := range out.Events {
		w.happened(p, ev)
	}
	if p.index != nil {
		w.learn(p, out.Updates)
	}
	for _, d := range out.Datagrams {
		w.datagram(p, w.byName[d.To], d.Data)
	}
	for _, f := range out.Fetches {
		w.fetch(p, f)
	}
	for _, s := range out.Syncs {
		w.sync(p, s)
	}
	next := p.engine.Next()
	if next.IsZero() || !p.tickAt.IsZero() && !next.Before(p.tickAt) {
		return
	}
	p.tickAt = next
	w.after(max(0, next.Sub(w.now)), func() {
		if p.tickAt.IsZero() || w.now.Before(p.tickAt) {
			return // a later one has replaced it
		}
		p.tickAt = time.Time{}
		w.tick(p)
	})
}

// tick runs the engine of p.
func (w *exchange) tick(p *exchangePeer) {
	p.engine.Tick(w.now)
	w.pump(p)
}

func (w *exchange) after(d time.Duration, do func()) {
	w.events.push(w.now.Sub(exchangeStart)+d, do)
}
