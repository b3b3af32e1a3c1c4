package exchange

import (
	"fmt"
	"testing"
	"time"
)

// TestComplete checks when a full peer can answer for all: not before it has what another one lists, and not only
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
	vector := func(names ...string) (heads []Head) {
		for i, name := range names {
			heads = append(heads, Head{Origin: ID(i + 1), Version: Version{1, 1, 1}, Keys: 1})
			heads[i].Origin = IDOf(name)
		}
		return heads
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
	later(settleWait)
	want(false, "before a full peer has listed what it holds")
	e.SyncDone(now, "light", vector("light"), nil)
	later(0)
	want(false, "after a light peer's list")
	e.SyncDone(now, "full", vector("unknown"), nil)
	later(0)
	want(false, "while a full peer lists one that is no member")
	e.PeerUp(now, "unknown", 1)
	e.SyncDone(now, "full", vector("unknown"), nil)
	for i := range givenUp + 1 {
		want(false, fmt.Sprint("after so many failed fetches: ", i))
		later(time.Minute / 10)
		fetched(errGone)
	}
	later(0)
	want(true, "when the rest cannot be had")
	e.PeerUp(now, "newcomer", 1)
	later(0)
	want(true, "with a member that has just joined")
	e.SetLight(now, true)
	want(false, "as a light peer")
	e.SetLight(now, false)
	later(time.Minute)
	want(false, "when the digests are to be fetched again")
}
