package exchange

import (
	"fmt"
	"testing"
	"time"
)

// TestComplete checks when a full peer can answer for all: not before it has what the members have, and not only
// when it has what cannot be had.
func TestComplete(t *testing.T) {
	now := time.Unix(1000, 0)
	e := New(Config{Name: "self", Incarnation: 1}, now)
	later := func(d time.Duration) { now = now.Add(d); e.Tick(now) }
	want := func(complete bool, when string) {
		t.Helper()
		if e.Complete() != complete {
			t.Errorf("Complete() = %v %s", !complete, when)
		}
	}
	fetched := func(err error) {
		for _, f := range e.Drain().Fetches {
			e.FetchDone(now, f.Number, Result{Kind: FrameSame, Err: err, Head: Head{Origin: IDOf(f.Origin), Version: Version{Incarnation: 1}}})
		}
	}
	later(time.Minute)
	want(false, "without members")
	e.PeerUp(now, "full", 1)
	e.PeerLight(now, "light", true)
	e.PeerUp(now, "light", 1)
	later(time.Millisecond)
	fetched(nil)
	later(time.Millisecond)
	want(false, "before others can have joined")
	e.PeerUp(now, "broken", 1)
	later(settleWait)
	for i := range givenUp + 1 {
		want(false, fmt.Sprint("after so many failed fetches: ", i))
		later(time.Minute / 10)
		fetched(errGone)
	}
	later(settleWait)
	want(true, "when the rest cannot be had")
	e.PeerUp(now, "newcomer", 1)
	later(0)
	want(true, "with a member that has just joined")
	e = New(Config{Name: "self", Incarnation: 1, Light: true}, now)
	e.PeerUp(now, "full", 1)
	later(time.Minute)
	want(false, "as a light peer")
}
