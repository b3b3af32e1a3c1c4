package exchange

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A world runs engines against each other in virtual time, on a network that
// loses, delays, reorders, duplicates, corrupts and splits, with peers that crash
// and come back. Everything follows from its seed.
type world struct {
	rng    *rand.Rand
	now    time.Time
	events events
	number int
	peers  []*simPeer
	cut    map[[2]int]bool // one way
	loss   float64
	dup    float64
	delay  time.Duration // at most, of datagrams and of each way of a stream
	broken float64       // odds that an answer arrives corrupt, short, or is an old one
	breaks float64       // odds that a stream ends within an answer
	bug    string        // planted; see TestModelCatchesPlantedBugs
	failed error         // the first invariant that did not hold
	led    [replicaStates][replicaStates]int

	// published has a hash of the positions of every version that any peer ever
	// published, made independently of the digest's own state hash.
	published map[digest.Version]uint64
	old       [][]byte // some answers of the past, to be replayed
	checks    int
}

type simPeer struct {
	w      *world
	i      int
	name   string
	engine *Engine // nil while it is down
	life   int
	inc    uint64
	filter *digest.Set
	keys   []digest.Key
	saved  *digest.Filter   // some version that it published; outlives a crash
	index  []*digest.Filter // what lookups see of each other peer
	view   []uint64         // membership: the incarnation of each live peer, else 0
	last   []Version        // in index, to see that it never goes back
	slow   bool
	light  bool
	lights []bool // by what it has heard
	tickAt time.Time
	poll   bool               // a look at the filter is planned
	told   map[[2]uint64]bool // peer and version told once; for a planted bug
}

type event struct {
	at     time.Time
	number int
	do     func()
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].number < h[j].number
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

func (w *world) after(d time.Duration, do func()) {
	w.number++
	heap.Push(&w.events, event{w.now.Add(d), w.number, do})
}

// run lets time pass until a moment, or until an invariant breaks.
func (w *world) run(then time.Time) {
	for len(w.events) > 0 && w.failed == nil && !w.events[0].at.After(then) {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = then
}

func (w *world) fail(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf("at %v: "+format, append([]any{w.now.Sub(time.Unix(0, 0))}, args...)...)
	}
}

func (w *world) some(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d) + 1))
}

// start begins a life of p, with the filter it has.
func (p *simPeer) start(inc uint64) {
	n := len(p.w.peers)
	p.life++
	p.inc = inc
	p.index, p.view, p.last = make([]*digest.Filter, n), make([]uint64, n), make([]Version, n)
	p.lights = make([]bool, n)
	p.told = make(map[[2]uint64]bool)
	p.tickAt = time.Time{}
	p.engine = New(Config{Name: p.name, Incarnation: inc, Seed: p.w.rng.Uint64(), ReplicaLog: 2048, PublishedLog: 8192, Fetches: 4, Light: p.light}, p.w.now)
	p.engine.became = func(from, to replicaState) {
		p.w.led[from][to]++
		if !slices.Contains(leads[from], to) {
			p.w.fail("%s: a replica that was %v became %v", p.name, from, to)
		}
	}
	if p.saved != nil && p.w.rng.IntN(2) == 0 {
		p.goOn()
	}
	p.publish()
	p.do(p.w.some(probeInterval), p.probe)
}

const probeInterval = time.Second

// probe compares sums with another peer, as membership's probes do.
func (p *simPeer) probe() {
	p.do(probeInterval, p.probe)
	to := p.w.peers[p.w.rng.IntN(len(p.w.peers))]
	if to == p || p.view[to.i] == 0 || to.engine == nil ||
		p.w.cut[[2]int{p.i, to.i}] || p.w.rng.Float64() < p.w.loss || p.w.bug == "no anti-entropy" {
		return
	}
	p.w.after(p.w.some(p.w.delay), func() {
		if to.engine == nil || p.w.cut[[2]int{to.i, p.i}] {
			return
		}
		sum := to.engine.Sum()
		p.do(p.w.some(p.w.delay), func() {
			if own, ok := p.engine.SumWith(to.name); ok {
				p.engine.HandleSum(p.w.now, to.name, sum == own)
			}
			p.pump()
		})
	})
}

// goOn begins a life that continues the digest of the former one, with the keys in the store.
func (p *simPeer) goOn() {
	f, d, err := p.filter.Inside().Follow(p.saved)
	if err != nil {
		return // of another geometry
	}
	p.w.published[f.Version()] = hashOf(f)
	p.engine.Continue(p.w.now, p.saved, f, d)
}

// publish freezes the filter and records its contents.
func (p *simPeer) publish() {
	f, d := p.filter.Filter().AdvanceDelta()
	p.w.published[f.Version()] = hashOf(f)
	if p.saved == nil || p.w.rng.IntN(3) > 0 {
		p.saved = f
	}
	p.engine.Publish(p.w.now, f, d)
	p.pump()
}

func hashOf(f *digest.Filter) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, p := range f.AppendPositions(nil, 0, int(f.Ones())) {
		binary.LittleEndian.PutUint64(b[:], p)
		h.Write(b[:])
	}
	return h.Sum64()
}

// change adds and removes some keys, and plans their publication.
func (p *simPeer) change(n int) {
	for range n {
		if i := p.w.rng.IntN(120); i < len(p.keys) {
			p.filter.Remove(p.keys[i])
			p.keys = slices.Delete(p.keys, i, i+1)
		} else {
			k := digest.Key(p.w.rng.Uint64())
			p.filter.Add(k)
			p.keys = append(p.keys, k)
		}
	}
	p.look()
}

func (p *simPeer) look() {
	if p.engine == nil || p.poll || p.filter.Filter().Changed() == 0 {
		return
	}
	if p.engine.PublishIn(p.w.now, p.filter.Filter().Changed()) == 0 {
		p.publish()
		return
	}
	p.poll = true
	p.w.after(50*time.Millisecond, func() { p.poll = false; p.look() })
}

// do runs f after d, if p is then in the same life.
func (p *simPeer) do(d time.Duration, f func()) {
	life := p.life
	p.w.after(d, func() {
		if p.engine != nil && p.life == life {
			f()
		}
	})
}

// pump handles the outputs of p's engine, and plans its next tick.
func (p *simPeer) pump() {
	out := p.engine.Drain()
	for _, u := range out.Updates {
		p.updateIndex(u)
	}
	if p.light && len(out.Fetches)+len(p.engine.want) > 0 {
		p.w.fail("%s is light and fetches a digest", p.name)
	}
	for _, d := range out.Datagrams {
		if to := p.w.byName(d.To); p.lights[to.i] && d.Data[0]&0xf != byte(echo) && d.Data[0]&0x7 != byte(receipt) {
			p.w.fail("%s sends an advert to %s, which is light", p.name, d.To)
		}
		p.w.datagram(p, p.w.byName(d.To), d.Data)
	}
	for _, f := range out.Fetches {
		p.w.fetch(p, p.w.byName(f.Source), f)
	}
	for _, s := range out.Syncs {
		p.w.sync(p, p.w.byName(s.Peer), s)
	}
	if out.Incarnation != 0 {
		p.inc = out.Incarnation
		p.w.membershipChanged()
	}
	p.checkBounds()
	next := p.engine.Next()
	if next.IsZero() || !p.tickAt.IsZero() && !next.Before(p.tickAt) {
		return
	}
	p.tickAt = next
	p.do(max(0, next.Sub(p.w.now)), func() {
		if p.w.now.Equal(p.tickAt) || p.w.now.After(p.tickAt) {
			p.tickAt = time.Time{}
		}
		p.engine.Tick(p.w.now)
		p.pump()
	})
}

func (w *world) byName(name string) *simPeer {
	for _, p := range w.peers {
		if p.name == name {
			return p
		}
	}
	panic("no peer " + name)
}

// streams reports whether a and b can have a stream: both ways must be open.
func (w *world) streams(a, b *simPeer) bool {
	return a.engine != nil && b.engine != nil && !w.cut[[2]int{a.i, b.i}] && !w.cut[[2]int{b.i, a.i}]
}

func (w *world) datagram(from, to *simPeer, data []byte) {
	if w.bug == "no anti-entropy" {
		n, _ := decodeNote(data)
		v := [2]uint64{uint64(to.i), headIn(data).State}
		if n.Kind != 0 || from.told[v] && v[1] != 0 {
			return
		}
		from.told[v] = true
	}
	n := 1
	if w.rng.Float64() < w.dup {
		n = 2
	}
	for range n {
		if w.cut[[2]int{from.i, to.i}] || w.rng.Float64() < w.loss {
			continue
		}
		w.after(w.some(w.delay), func() {
			if to.engine != nil {
				to.engine.HandleDatagram(w.now, w.tamperStep(data))
				to.pump()
			}
		})
	}
}

// headIn returns the head of a datagram.
func headIn(data []byte) Head {
	a, _ := DecodeAdvert(data)
	return a.Head
}

// tamperStep returns the datagram that arrives instead of b: perhaps another change, if it is a step.
func (w *world) tamperStep(data []byte) []byte {
	s, err := DecodeStep(data)
	if err != nil || w.rng.Float64() >= w.broken {
		return data
	}
	if w.rng.IntN(2) == 0 {
		s.Change = s.Change[:1+w.rng.IntN(len(s.Change))]
	} else {
		s.Change[w.rng.IntN(len(s.Change))] ^= 1 << w.rng.IntN(8)
	}
	return s.AppendTo(nil)
}

var errGone = errors.New("no connection")

// round carries a request to a peer and its answer back. Either may fail.
func (w *world) round(from, to *simPeer, serve func() []byte, done func([]byte)) {
	life := to.life
	if !w.streams(from, to) {
		from.do(w.some(2*time.Second), func() { done(nil) })
		return
	}
	w.after(w.some(w.delay), func() {
		if !w.streams(from, to) || to.life != life {
			from.do(w.some(2*time.Second), func() { done(nil) })
			return
		}
		answer := serve()
		wait := w.some(w.delay)
		if to.slow {
			wait += w.some(time.Second)
		}
		from.do(wait, func() {
			if !w.streams(from, to) || to.life != life {
				answer = nil
			}
			done(answer)
		})
	})
}

func (w *world) fetch(p, source *simPeer, f Fetch) {
	if f.Step != nil {
		r := DecodeChange(f, digest.Limits{})
		if w.bug == "wrong base" && r.Delta != nil && w.rng.Float64() < 0.1 {
			r.Filter = f.Base
		}
		p.do(w.some(20*time.Millisecond), func() {
			p.engine.FetchDone(w.now, f.Number, r)
			p.pump()
		})
		return
	}
	w.round(p, source, func() []byte {
		get, err := DecodeGet(f.Get.AppendTo(nil)[FrameHeader:])
		if err != nil {
			w.fail("%s sent a get that does not decode: %v", p.name, err)
		}
		frame := source.engine.HandleGet(p.name, get).AppendTo(nil)
		source.engine.Served(FrameType(frame[0]))
		source.pump()
		return w.tamper(frame)
	}, func(frame []byte) {
		r := Result{Err: errGone}
		switch {
		case frame == nil:
		case w.rng.Float64() < w.breaks && len(frame) > FrameHeader:
		default:
			r = DecodeAnswer(f, FrameType(frame[0]), frame[FrameHeader:], digest.Limits{})
		}
		if w.bug == "wrong base" && r.Delta != nil && w.rng.Float64() < 0.1 {
			r.Filter = f.Base
		}
		p.engine.FetchDone(w.now, f.Number, r)
		p.pump()
	})
}

// tamper returns the bytes that arrive instead of an answer.
func (w *world) tamper(frame []byte) []byte {
	if len(w.old) < 64 {
		w.old = append(w.old, frame)
	} else {
		w.old[w.rng.IntN(64)] = frame
	}
	if w.rng.Float64() >= w.broken || len(frame) == FrameHeader {
		return frame
	}
	switch w.rng.IntN(3) {
	case 0: // of another time, and perhaps of another origin
		return w.old[w.rng.IntN(len(w.old))]
	case 1:
		return frame[:FrameHeader+w.rng.IntN(len(frame)-FrameHeader)]
	}
	frame = slices.Clone(frame)
	frame[FrameHeader+w.rng.IntN(len(frame)-FrameHeader)] ^= 1 << w.rng.IntN(8)
	return frame
}

func (w *world) sync(p, with *simPeer, s Sync) {
	if w.bug == "no anti-entropy" {
		return
	}
	w.round(p, with, func() []byte {
		heads, err := DecodeVector(AppendVector(nil, FrameSync, s.Heads)[FrameHeader:])
		if err != nil {
			w.fail("%s sent a vector that does not decode: %v", p.name, err)
		}
		reply := AppendVector(nil, FrameVector, with.engine.HandleSync(w.now, p.name, heads))
		with.pump()
		return reply
	}, func(frame []byte) {
		if frame == nil {
			p.engine.SyncDone(w.now, s.Peer, nil, errGone)
		} else {
			heads, err := DecodeVector(frame[FrameHeader:])
			p.engine.SyncDone(w.now, s.Peer, heads, err)
		}
		p.pump()
	})
}
