package exchange

import (
	"math/rand/v2"
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
