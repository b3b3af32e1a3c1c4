package exchange

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/wire"
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
	lookAgain     = 16       // see Asker.order
	otherZone     = 100      // added to the distance of a full peer
)

// An Asker is the part of a light peer that asks full ones who has an object: it decides which one is asked, how long an
// answer is waited for, when another one is asked, and who is believed. It has no sockets and no clock, and is not safe
// for concurrent use.
type Asker struct {
	Count  Questions // the caller counts Answered and Deferred
	self   ID
	random *rand.Rand
}

// NewAsker returns the asker of the peer self. The numbers of its questions come from random.
func NewAsker(self ID, random rand.Source) *Asker {
	return &Asker{self: self, random: rand.New(random)}
}

// A FullPeer is what an [Asker] knows about a full peer, by its answers.
type FullPeer struct {
	ID  ID
	Far bool // it is not in the asker's zone

	trip        time.Duration // recent average; 0 = unknown
	silentUntil time.Time
	silent      int       // times without an answer, in a row; questions that wait together are one
	silentSince time.Time // when silent last went up
	outcomes    float64   // of peers that it named; older ones have less weight
	falseHits   float64   // of these, false hits beyond those that the digests' rates explain
}

// mistrusted reports whether another full peer is to be asked as well.
func (f *FullPeer) mistrusted() bool {
	return f.outcomes >= namedLeast && f.falseHits > falseMargin*f.outcomes
}

// patience is how long to wait for an answer.
func (f *FullPeer) patience() time.Duration {
	if f.trip == 0 {
		return mostPatience / 2
	}
	return min(max(2*f.trip, leastPatience), mostPatience)
}

// distance is in half octaves of trips; those of other zones are far.
func (f *FullPeer) distance() int {
	d := int(2 * math.Log2(float64(max(f.trip, leastTrip))/float64(leastTrip)))
	if f.Far {
		d += otherZone
	}
	return d
}

// order sorts full peers as they are asked: those that were silent last; those of this peer's zone first, then the
// nearest; of those as near as each other, different peers ask different ones. The nearest goes first again half a second
// after a single silence, which may be a lost datagram; if it was silent twice or more, or was not, in which case another
// of the zone may be nearer by now, in one of lookAgain lookups. Those that were silent three times are left out for a
// time: when all have died, lookups wait for nobody.
func (a *Asker) order(now time.Time, full []*FullPeer) []*FullPeer {
	own := uint64(a.self)
	near := func(a, b *FullPeer) int {
		return cmp.Or(cmp.Compare(a.distance(), b.distance()),
			cmp.Compare(wire.Mix(uint64(a.ID)^own), wire.Mix(uint64(b.ID)^own)))
	}
	last := func(f *FullPeer) int { return min(f.silent, 1) + int(max(0, f.silentUntil.Sub(now))) }
	full = slices.DeleteFunc(full, func(f *FullPeer) bool { return f.silent > 2 && now.Before(f.silentUntil) })
	slices.SortFunc(full, func(a, b *FullPeer) int { return cmp.Or(cmp.Compare(last(a), last(b)), near(a, b)) })
	if len(full) < 2 {
		return full
	}
	i := slices.Index(full, slices.MinFunc(full, near))
	if full[i].silent != 1 && a.random.IntN(lookAgain) > 0 {
		return full
	}
	if i == 0 {
		i = 1 + a.random.IntN(len(full)-1)
	}
	if f := full[i]; !now.Before(f.silentUntil) && f.distance()/otherZone <= full[0].distance()/otherZone {
		full = slices.Insert(slices.Delete(full, i, i+1), 0, f)
	}
	return full
}

// Judge says whether a peer that f named, by a digest of that rate of false positives, had the object. A full peer that
// names too many that do not is not believed alone.
func (a *Asker) Judge(f *FullPeer, falsePositives float64, has bool) {
	a.Count.Named++
	explained := min(1, falseFactor*falsePositives/(falsePositives+priorHeld))
	f.outcomes, f.falseHits = 1+namedFade*f.outcomes, namedFade*f.falseHits-explained
	if !has {
		a.Count.False++
		f.falseHits++
	}
}

// A Lookup asks full peers about keys, until one has answered; two, if the first is mistrusted. The caller sends the
// [Question] to each peer that [Lookup.Next] returns, and says what comes back. When Next has returned nil, it waits for a
// reply until the time that [Lookup.Until] returns, unless the lookup is [Lookup.Done].
type Lookup struct {
	Question
	Replies []PeerReply // but those that say "not yet"

	asker      *Asker
	left       []*FullPeer // that can still be asked
	open       map[*FullPeer]sent
	asked      int // of most
	most, need int
	until      time.Time
	over       bool // nobody answered, and there is nobody else to ask
}

// sent is when a question was sent, and after which time without a reply the peer counts as silent.
type sent struct {
	at       time.Time
	patience time.Duration
}

// A PeerReply is a reply of a full peer.
type PeerReply struct {
	From *FullPeer
	Reply
}

// Begin returns a lookup, among the full peers that are live. It keeps the slice.
func (a *Asker) Begin(now time.Time, keys []digest.Key, full []*FullPeer) *Lookup {
	return &Lookup{
		Question: Question{Number: a.random.Uint32(), Keys: keys},
		asker:    a, left: a.order(now, full), open: make(map[*FullPeer]sent), most: 1, need: 1,
	}
}

// Next returns the peer that the question is sent to now; nil if none is.
func (l *Lookup) Next(now time.Time) *FullPeer {
	if l.asked == l.most || len(l.left) == 0 {
		return nil
	}
	f := l.left[0]
	l.left = l.left[1:]
	l.asked++
	l.asker.Count.Asked++
	patience := f.patience()
	l.open[f] = sent{now, patience}
	if l.asked == mostQuestions || len(l.left) == 0 {
		patience = max(patience, lastPatience) // there is nobody else to ask
	}
	l.until = now.Add(patience)
	if f.mistrusted() {
		l.most, l.need = mostQuestions, mostQuestions
	}
	return f
}

// Until returns when [Lookup.Late] is to be called, unless a reply arrives.
func (l *Lookup) Until() time.Time { return l.until }

// Done reports whether there is nothing to wait for, once [Lookup.Next] has returned nil.
func (l *Lookup) Done() bool {
	return l.over || len(l.Replies) >= l.need || len(l.open) == 0
}

// Heard takes a reply. It ignores one that nobody waits for.
func (l *Lookup) Heard(now time.Time, from *FullPeer, r Reply) {
	s, ok := l.open[from]
	if !ok || r.Number != l.Number {
		return
	}
	delete(l.open, from)
	took := now.Sub(s.at)
	if from.trip == 0 {
		from.trip = took
	}
	from.trip += (took - from.trip) / 8
	from.silent, from.silentUntil = 0, time.Time{}
	if r.NotYet {
		l.asker.Count.NotYet++
		from.silentUntil = now.Add(firstSilence)
		l.asked-- // another one is asked instead
		return
	}
	l.Replies = append(l.Replies, PeerReply{from, r})
}

// Late says that no reply came in time.
func (l *Lookup) Late() {
	if l.most == mostQuestions || len(l.left) == 0 {
		l.over = true
		return
	}
	l.most++
}

// End notes which of the peers asked did not answer in time, and returns them. More patience is had with them next time.
func (l *Lookup) End(now time.Time) (silent []*FullPeer) {
	for f, s := range l.open {
		if now.Sub(s.at) < s.patience {
			continue
		}
		l.asker.Count.Unanswered++
		if s.at.Before(f.silentSince) {
			continue // a moment in which a busy peer answers nobody is one silence, however many lookups met it
		}
		f.silentSince = now
		if f.silent > 0 { // a single one may be lost
			f.trip = min(f.patience(), mostPatience/2)
		}
		f.silentUntil = now.Add(min(firstSilence<<min(f.silent, 10), lastSilence))
		f.silent++
		silent = append(silent, f)
	}
	return silent
}
