package systems

import (
	"time"

	"github.com/summarycache/summarycache/digest/index"
	engine "github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/sim/cputime"
)

// link returns the record of two peers, at least one of which is observed.
func (w *exchange) link(origin, receiver *exchangePeer) *link {
	if receiver.observed(w) {
		return &w.links[receiver.at*w.options.peers+origin.at]
	}
	return &w.links[(w.options.observed+origin.at)*w.options.peers+receiver.at]
}

func (w *exchange) count(p *exchangePeer, direction, kind, n int) {
	if w.counting && p.observed(w) {
		w.bytes[direction][kind] += int64(n)
	}
}

// published records a publication and the times of its changes.
func (w *exchange) published(p *exchangePeer, before time.Time) {
	if !w.counting {
		return
	}
	list := &w.publications[p.at]
	if list.list == nil {
		list.first = uint32(p.engine.Self().Version.Sequence)
	}
	change := before.Add(w.upTo(w.now.Sub(before)))
	list.list = append(list.list, publication{oldest: before, change: change, lacking: w.options.peers - 1})
	w.intervals += w.now.Sub(before)
	w.counted++
	if p.observed(w) {
		w.pending++
	}
}

func (w *exchange) interval() float64 { return w.intervals.Seconds() / float64(max(1, w.counted)) }

// sent counts a datagram.
func (w *exchange) sent(from, to *exchangePeer, data []byte, lost bool) {
	news, rest := splitDatagram(data)
	kind := kindRepeat
	l := w.link(from, to)
	sequence := uint32(from.engine.Self().Version.Sequence)
	if news && sequence != l.sent {
		kind = kindAdvert
		l.sent = sequence
		if lost {
			l.missed = true
			if w.counting && to.observed(w) {
				w.missed++
			}
		}
	}
	w.count(from, out, kind, len(data)-rest)
	w.count(from, out, kindInline, rest)
}

// splitDatagram reports whether a datagram is an advert, and how many of its bytes are the
// change that it carries.
func splitDatagram(data []byte) (advert bool, change int) {
	if s, err := engine.DecodeStep(data); err == nil {
		return true, len(s.Change)
	}
	a, err := engine.DecodeAdvert(data)
	return err == nil && a.Kind == engine.Announce, 0
}

func (w *exchange) heard(from, to *exchangePeer, data []byte, sequence uint32) {
	news, rest := splitDatagram(data)
	kind := kindAdvert
	if l := w.link(from, to); !news || l.missed || sequence <= l.applied {
		kind = kindRepeat
		w.repair(to, len(data)-rest)
	}
	w.count(to, in, kind, len(data)-rest)
	w.count(to, in, kindInline, rest)
}

// repair counts bytes that a peer sent or received because it had missed an advert.
func (w *exchange) repair(p *exchangePeer, n int) {
	if w.counting && p.observed(w) {
		w.repairBytes += int64(n)
	}
}

func (w *exchange) asked(p, source *exchangePeer, f engine.Fetch) {
	n := len(f.Get.AppendTo(nil))
	w.count(p, out, kindGet, n)
	w.count(source, in, kindGet, n)
	if w.link(w.byName[f.Origin], p).missed {
		w.repair(p, n)
	}
}

func (w *exchange) served(p *exchangePeer, t engine.FrameType, n int) {
	w.count(p, out, kindOf(t), n)
}

func (w *exchange) answered(p *exchangePeer, f engine.Fetch, t engine.FrameType, n int) {
	w.count(p, in, kindOf(t), n)
	if w.link(w.byName[f.Origin], p).missed {
		w.repair(p, n)
	}
}

func kindOf(t engine.FrameType) int {
	switch t {
	case engine.FrameDelta:
		return kindDelta
	case engine.FrameSnapshot:
		return kindSnapshot
	}
	return kindAnswer
}

// compared counts an exchange of vectors.
func (w *exchange) compared(p, with *exchangePeer, there, back int) {
	w.count(p, out, kindVector, there)
	w.count(with, in, kindVector, there)
	w.count(with, out, kindVector, back)
	w.count(p, in, kindVector, back)
	w.repair(p, back)
	w.repair(with, there)
}

// computed counts what an observed peer decodes and applies. One peer also does the work again,
// to measure its CPU time. All peers get the same messages, so measuring at each of them would
// add nothing.
func (w *exchange) computed(p *exchangePeer, work func()) {
	if !w.counting || !p.observed(w) {
		return
	}
	w.decoded++
	if p.index == nil {
		return
	}
	begin := cputime.Used()
	work()
	w.computing += cputime.Used() - begin
	w.timed++
}

// mostIndexed is how many objects the index of the measuring peer has at most, in whole peers.
// With so many, no line of the index is in the processor's caches, so a change costs as much as
// with more. An index of 10⁹ objects would take minutes and gigabytes.
const mostIndexed = 100_000_000

// indexed returns how many peers are in the index.
func (o *exchangeOptions) indexed() int { return min(o.peers-1, mostIndexed/o.objects) }

// learn updates a peer's index, as package gossip does, and measures the CPU time of each
// change. It reads the clock only around changes, since reading it more often tripled the
// result.
func (w *exchange) learn(p *exchangePeer, updates []engine.Update) {
	for _, u := range updates {
		if w.byName[u.Peer].at > w.options.indexed() {
			continue // peer 0 is the one with the index
		}
		begin := cputime.Used()
		if err := p.index.Apply(index.Change{Peer: u.Peer, Delta: u.Delta, Next: u.Filter}); err != nil {
			w.err = err
		}
		if w.counting {
			w.indexing += cputime.Used() - begin
			w.learned++
		}
	}
}

// happened records that a peer applied a version.
func (w *exchange) happened(p *exchangePeer, ev engine.Event) {
	if ev.Kind != engine.Applied {
		return
	}
	origin := w.byName[ev.Peer]
	l := w.link(origin, p)
	sequence := uint32(ev.Head.Version.Sequence)
	if l.missed {
		l.missed = false
		if w.counting && p.observed(w) {
			w.repairs++
		}
	}
	list := &w.publications[origin.at]
	for s := max(l.applied+1, list.first); s <= sequence && int(s-list.first) < len(list.list); s++ {
		made := &list.list[s-list.first]
		w.lags.add(w.now.Sub(made.change), w.now.Sub(made.oldest))
		if made.lacking--; made.lacking == 0 && origin.observed(w) {
			w.everyone.add(w.now.Sub(made.change), w.now.Sub(made.oldest))
			w.pending--
		}
	}
	l.applied = max(l.applied, sequence)
}

// snapshotBytes is the mean length of a snapshot.
func (w *exchange) snapshotBytes() float64 {
	sum := 0
	for _, c := range w.contents {
		sum += len(c.filter.Current().AppendTo(nil))
	}
	return float64(sum) / float64(len(w.contents))
}
