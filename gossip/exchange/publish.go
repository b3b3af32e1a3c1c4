package exchange

import (
	"math"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// PublishIn returns how long the changes since the last publication may still wait for more: 0 if the
// digest should be frozen and given to [Engine.Publish] now. changed is the number of positions that
// flipped; without any, it returns the longest Duration. The wait counts from the call before the first
// with changes. Call it some times a second while there are changes, since more can end or shorten the wait.
func (e *Engine) PublishIn(now time.Time, changed int) time.Duration {
	looked := e.lookedAt
	e.lookedAt = now
	if changed == 0 {
		return math.MaxInt64
	}
	if e.publishedAt.IsZero() {
		return 0
	}
	if e.changedAt.IsZero() {
		e.changedAt = looked // or later
	}
	wait := e.publishedAt.Add(e.Publishing().MinInterval).Sub(now)
	if changed < enoughFlips {
		wait = max(wait, e.changedAt.Add(e.wait(now, changed)).Sub(now))
	}
	return max(wait, 0)
}

// enoughFlips are published without waiting for more. They take some 70 bytes, and the rest of the
// datagram, with the headers of IP and UDP, takes 40: a longer wait saves little, even if few changes are
// wanted soon.
const enoughFlips = 24

// Publish makes f the digest of this peer. d, if not nil, leads to f from the one before. A filter
// that equals the one before has no effect.
func (e *Engine) Publish(now time.Time, f *digest.Filter, d *digest.Delta) {
	old := e.history.Current()
	if old != nil && old.Version() == f.Version() {
		return
	}
	if d != nil && d.Len() > 0 {
		e.history.AdvanceDelta(f, d)
	} else {
		e.history.Advance(f)
	}
	if e.history.Current() != f {
		return // older than what is published
	}
	before := e.self
	e.self = headOf(e.id, e.Incarnation(), f)
	e.step = ownStep{}
	if d != nil && old != nil && d.Base() == old.Version() {
		e.step = e.stepTo(before, f, d)
	}
	if d != nil && !e.publishedAt.IsZero() {
		e.changes.add(float64(d.Len()), now.Sub(e.publishedAt).Seconds())
	}
	e.publishedAt, e.changedAt = now, time.Time{}
	e.stats.Published++
	e.beginRound(now)
}

func headOf(id ID, incarnation uint64, f *digest.Filter) Head {
	v := f.Version()
	return Head{
		Origin:  id,
		Version: Version{Incarnation: incarnation, Epoch: v.Epoch, Sequence: v.Sequence},
		State:   v.State,
		Keys:    f.Keys(),
	}
}

// displace takes an incarnation greater than that of a former life of this peer: by a random
// amount, since the same one may have displaced a third life.
func (e *Engine) displace(now time.Time, theirs uint64) {
	mine := theirs + 1 + e.rng.Uint64N(min(1<<20, ^uint64(0)-theirs))
	e.self.Version.Incarnation = mine
	e.step = ownStep{}
	e.outputs.Incarnation = mine
	e.emit(Event{Kind: Displaced, Peer: e.cfg.Name, Head: e.self})
	if e.published() {
		e.beginRound(now)
	}
}

func (e *Engine) published() bool { return e.history.Current() != nil }

// adverts is the state of advertising a publication to all peers.
type adverts struct {
	queue    []*peer // peers to which no advert has been sent yet, in order
	sendAt   time.Time
	pace     time.Duration // between two adverts
	repeatAt time.Time     // of the earliest repeat
}

const (
	roundTime = time.Second          // a round takes at most this
	freePeers = 32                   // adverts to at most this many peers are sent at once
	paceOf    = 2 * time.Millisecond // between adverts to more peers, if that fits a round
)

// repeatAfter are the waits before an advert is repeated to a peer that has not reacted. The last
// one recurs.
var repeatAfter = [...]time.Duration{
	400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 4 * time.Second,
}

// Every wholeRepeat-th repeat is an advert, in case the receiver knows two members with this peer's
// tag, and this peer does not know the other one yet.
const wholeRepeat = 4

// Bounds of the wait before a step is repeated. If one and a half times the shortest interval
// between publications is longer than mostStepWait, that is the upper bound.
const (
	leastStepWait = time.Second
	mostStepWait  = 4 * time.Second
)

// repeatGrain is the least time between two searches for due repeats.
const repeatGrain = 50 * time.Millisecond

func (r *adverts) next() time.Time {
	if len(r.queue) == 0 {
		return time.Time{}
	}
	return r.sendAt
}

// beginRound queues an advert to each live peer. Peers still in the queue keep their places, so
// that none waits for ever.
func (e *Engine) beginRound(now time.Time) {
	r := &e.round
	start := len(r.queue)
	for _, p := range e.live {
		if !p.pending && !p.light {
			p.pending = true
			r.queue = append(r.queue, p)
		}
	}
	fresh := r.queue[start:]
	e.rng.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
	n := len(r.queue)
	r.pace = e.cfg.Publish.round(n) / time.Duration(max(1, n))
	if start == 0 {
		r.sendAt = now
	}
	e.sendAdverts(now)
}

func (e *Engine) sendAdverts(now time.Time) {
	r := &e.round
	sent := 0
	for ; sent < len(r.queue) && !now.Before(r.sendAt); sent++ {
		p := r.queue[sent]
		p.pending = false
		if p.live {
			e.advertise(now, p)
		}
		r.sendAt = r.sendAt.Add(r.pace)
	}
	r.queue = r.queue[sent:]
	if len(r.queue) == 0 {
		r.queue = nil
	} else if now.Sub(r.sendAt) > roundTime {
		r.sendAt = now // the caller was late; do not send all delayed adverts in one burst
	}
}

// Leave returns the datagrams to send when this peer is about to leave, so that the others can
// distinguish that from a death. It has no other effect.
func (e *Engine) Leave() []Datagram {
	out := make([]Datagram, len(e.live))
	for i, p := range e.live {
		out[i] = Datagram{To: p.name, Data: Advert{Farewell, e.self}.AppendTo(nil)}
	}
	return out
}

// advertise advertises the current version to p, unless p is light, and plans the repeat. If the version before was
// advertised to p, it gets a step.
func (e *Engine) advertise(now time.Time, p *peer) {
	if !e.published() || p.light {
		return
	}
	p.stepped = e.step.data != nil && p.advertised == e.step.base
	if p.stepped {
		e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{p.name, e.step.data, e.step.change})
	} else {
		e.send(p, Advert{Announce, e.self})
	}
	p.advertised = e.self.Version
	p.repeats = 0
	e.planRepeat(now, p)
}

func (e *Engine) planRepeat(now time.Time, p *peer) {
	wait := repeatAfter[min(p.repeats, len(repeatAfter)-1)]
	if p.stepped {
		// Peers do not react to a step. The next publication shows them that it was lost, so it is
		// repeated only if there is none.
		policy := e.Publishing()
		wait = min(max(2*e.nextPublication(now), leastStepWait), max(mostStepWait, 3*(policy.MinInterval+policy.round(len(e.live)))/2))
	}
	p.repeatAt = now.Add(e.jitter(wait))
	e.round.repeatAt = earlier(e.round.repeatAt, p.repeatAt)
}

func (e *Engine) repeatAdverts(now time.Time) {
	r := &e.round
	if r.repeatAt.IsZero() || now.Before(r.repeatAt) {
		return
	}
	r.repeatAt = time.Time{}
	for _, p := range e.live {
		switch {
		case p.repeatAt.IsZero():
		case p.reacted == e.self.Version:
			p.repeatAt = time.Time{}
		case now.Before(p.repeatAt):
			r.repeatAt = earlier(r.repeatAt, p.repeatAt)
		default:
			e.stats.Repeats++
			if p.repeats%wholeRepeat != wholeRepeat-1 {
				e.note(p, reminder, e.self.mark())
			} else {
				e.send(p, Advert{Announce, e.self})
			}
			p.advertised, p.stepped = e.self.Version, false
			p.repeats++
			e.planRepeat(now, p)
		}
	}
	if soonest := now.Add(repeatGrain); !r.repeatAt.IsZero() && r.repeatAt.Before(soonest) {
		r.repeatAt = soonest
	}
}

func (e *Engine) send(p *peer, a Advert) {
	e.outputs.Datagrams = append(e.outputs.Datagrams, Datagram{To: p.name, Data: a.AppendTo(make([]byte, 0, MaxAdvert))})
}

// Sent counts a datagram that was sent: as an advert, and a step also as a delta.
func (e *Engine) Sent(d Datagram) {
	e.stats.AdvertsSent++
	e.stats.AdvertBytesSent += int64(len(d.Data) - d.change)
	if d.change > 0 {
		e.stats.CarriedSent++
		e.stats.CarriedBytesSent += int64(d.change)
		e.stats.DeltasSent++
	}
}
