package exchange

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// TestSilenceIsCountedOnce: questions that wait for an answer at the same time are one silence of the peer, which is not left
// out before the third.
func TestSilenceIsCountedOnce(t *testing.T) {
	a, now := NewAsker(1, rand.NewPCG(1, 2)), time.Unix(1000, 0)
	full := &FullPeer{ID: 2}
	for round := range 3 {
		var open []*Lookup
		for range 8 {
			l := a.Begin(now, []digest.Key{1}, []*FullPeer{full})
			if l.Next(now) != full || l.Next(now) != nil || l.Done() {
				t.Fatalf("the only full peer is not asked once, after %d silences", round)
			}
			open = append(open, l)
		}
		now = open[0].Until()
		for _, l := range open {
			if l.Late(); !l.Done() {
				t.Error("a lookup goes on when nobody is left to ask")
			}
			l.End(now)
		}
		if full.silent != round+1 || a.Count.Unanswered != int64(8*(round+1)) {
			t.Errorf("%d silences, %d unanswered questions after %d rounds", full.silent, a.Count.Unanswered, round+1)
		}
		now = now.Add(time.Millisecond)
	}
	l := a.Begin(now, []digest.Key{1}, []*FullPeer{full})
	if l.Next(now) != nil || !l.Done() {
		t.Error("a peer that was silent three times is asked at once")
	}
	now = now.Add(lastSilence)
	l = a.Begin(now, []digest.Key{1}, []*FullPeer{full})
	if l.Next(now) != full {
		t.Error("a peer that was silent three times is never asked again")
	}
	l.Heard(now, full, Reply{Number: l.Number + 1})
	if l.Done() {
		t.Error("a reply to another question is an answer")
	}
	l.Heard(now, full, Reply{Number: l.Number})
	if !l.Done() || len(l.Replies) != 1 || full.silent != 0 {
		t.Errorf("after a reply: done %v, %d replies, %d silences", l.Done(), len(l.Replies), full.silent)
	}
}

// TestAskerChooses: a lookup asks a peer of the own zone first, however slow it is; another one when that is late or does not
// have all digests yet; and two, whose replies it awaits, while the first is not believed alone.
func TestAskerChooses(t *testing.T) {
	a, now := NewAsker(1, rand.NewPCG(1, 2)), time.Unix(1000, 0)
	near, far := &FullPeer{ID: 2, trip: 80 * time.Millisecond}, &FullPeer{ID: 3, Far: true, trip: time.Millisecond}
	begin := func() *Lookup { return a.Begin(now, []digest.Key{1}, []*FullPeer{far, near}) }
	asks := func(l *Lookup, want ...*FullPeer) {
		t.Helper()
		for i, f := range append(want, nil) {
			if got := l.Next(now); got != f {
				t.Fatalf("the peer at %d is %+v, want %+v", i, got, f)
			}
		}
	}
	for range 100 {
		l := begin()
		asks(l, near)
		l.Heard(now.Add(80*time.Millisecond), near, Reply{Number: l.Number})
		asks(l)
		if !l.Done() || len(l.Replies) != 1 {
			t.Fatalf("after a reply: %+v", l)
		}
	}

	l := begin()
	asks(l, near)
	if l.Until() != now.Add(mostPatience) {
		t.Errorf("a peer that takes 80 ms may take %v", l.Until().Sub(now))
	}
	l.Late()
	asks(l, far)
	if l.Until() != now.Add(lastPatience) {
		t.Errorf("the last one may take %v", l.Until().Sub(now))
	}
	l.Late()
	if now = now.Add(2 * mostPatience); !l.Done() || len(l.End(now)) != 2 || a.Count.Unanswered != 2 {
		t.Errorf("when neither has answered: %+v, %+v", l, a.Count)
	}

	now = now.Add(time.Minute)
	l = begin()
	first := l.Next(now)
	l.Heard(now, first, Reply{Number: l.Number, NotYet: true})
	if second := l.Next(now); second == nil || second == first || l.Done() || a.Count.NotYet != 1 {
		t.Errorf("after \"not yet\" of %d, %+v is asked", first.ID, second)
	} else if l.Heard(now, second, Reply{Number: l.Number}); !l.Done() {
		t.Error("a lookup is not done with the reply of a second peer")
	}

	now = now.Add(time.Minute)
	near.silent, far.silent = 0, 0
	for range 2 * namedLeast {
		a.Judge(near, 0.001, false)
	}
	l = begin()
	asks(l, near, far)
	l.Heard(now, near, Reply{Number: l.Number})
	if l.Done() {
		t.Error("a peer that names those that lack the object is believed alone")
	}
	l.Heard(now, far, Reply{Number: l.Number})
	if !l.Done() || len(l.Replies) != 2 {
		t.Errorf("with two replies: %+v", l)
	}
	for range 100 {
		a.Judge(near, 0.001, true)
	}
	asks(begin(), near)
}

// TestNearestIsTriedAgain: one lookup of 16 asks another peer than the nearest first; one silence of the nearest costs it half a
// second, and no more.
func TestNearestIsTriedAgain(t *testing.T) {
	a, now := NewAsker(1, rand.NewPCG(1, 2)), time.Unix(1000, 0)
	near, other := &FullPeer{ID: 2, trip: time.Millisecond}, &FullPeer{ID: 3, trip: 40 * time.Millisecond}
	ofNear := func(lookups int) (n int) {
		for range lookups {
			if a.Begin(now, []digest.Key{1}, []*FullPeer{other, near}).Next(now) == near {
				n++
			}
		}
		return n
	}
	const lookups = 100 * lookAgain
	if others := lookups - ofNear(lookups); others < 60 || others > 140 { // four standard deviations
		t.Errorf("%d of %d lookups ask another peer than the nearest, want 100", others, lookups)
	}
	near.silent, near.silentUntil = 1, now.Add(firstSilence)
	if n := ofNear(100); n != 0 {
		t.Errorf("%d of 100 lookups ask a peer first that has just been silent", n)
	}
	if now = now.Add(firstSilence); ofNear(100) != 100 {
		t.Error("the nearest is not asked first again after one silence")
	}
	near.silent = 2
	if n := ofNear(lookups); n < 60 || n > 140 {
		t.Errorf("%d of %d lookups ask a peer first that was silent twice, want 100", n, lookups)
	}
}

// TestReplyNames: a reply names no more than fit, never the asker, those of its zone first, and to each asker others.
func TestReplyNames(t *testing.T) {
	q := Question{Number: 7, Keys: []digest.Key{1, 2}}
	named := func(dst []Named, k digest.Key) []Named {
		for i := range 100 {
			dst = append(dst, Named{Peer: ID(i), FalsePositives: 0.01, Far: i%10 != 0})
		}
		return dst
	}
	r := q.Reply(10, true, named)
	near := 0
	for _, h := range r.Holders {
		if h.Peer == 10 {
			t.Error("the asker is named")
		}
		if h.Peer%10 == 0 {
			near++
		}
	}
	if r.Number != 7 || r.NotYet || len(r.Holders) != MaxHolders || near != 2*9 {
		t.Errorf("%d holders, %d of the asker's zone, in %+v; want %d and 18", len(r.Holders), near, r, MaxHolders)
	}
	if slices.Equal(q.Reply(1000, true, named).Holders, q.Reply(1001, true, named).Holders) {
		t.Error("two askers are told the same holders")
	}
	if r := q.Reply(10, false, named); !r.NotYet || r.Holders != nil || r.Number != 7 {
		t.Errorf("one that lacks digests replies %+v", r)
	}
}
