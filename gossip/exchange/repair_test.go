package exchange

import (
	"errors"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// TestChangeAndBack has a peer miss a change and its undoing: the version is newer,
// the contents are the same, and a delta of no flips is all that is sent.
func TestChangeAndBack(t *testing.T) {
	w := quietWorld(t, 2)
	b := w.peers[0]
	before := w.peers[1].engine.Stats()
	w.cut[[2]int{0, 1}], w.cut[[2]int{1, 0}] = true, true
	for range 3 {
		b.filter.Add(77)
		b.publish()
		b.filter.Remove(77)
		b.publish()
	}
	clear(w.cut)
	w.run(w.now.Add(6 * time.Second))
	w.mustBeInStep(t)
	if after := w.peers[1].engine.Stats(); after.SnapshotsReceived != before.SnapshotsReceived || after.DeltasReceived == before.DeltasReceived {
		t.Errorf("%d snapshots and %d deltas were received", after.SnapshotsReceived-before.SnapshotsReceived, after.DeltasReceived-before.DeltasReceived)
	}
}

// TestBadDeltasEndInASnapshot corrupts every delta on its way.
func TestBadDeltasEndInASnapshot(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	before := a.engine.Stats()
	b.filter.Add(77)
	b.publish() // a hears of it
	now := w.now.Add(10 * time.Millisecond)
	a.engine.HandleDatagram(now, Advert{Announce, b.engine.Self()}.AppendTo(nil))
	deltas := 0
	for end := now.Add(time.Minute); now.Before(end); now = now.Add(10 * time.Millisecond) {
		a.engine.Tick(now)
		for _, f := range a.engine.Drain().Fetches {
			frame := b.engine.HandleGet("p1", f.Get).AppendTo(nil)
			if FrameType(frame[0]) == FrameDelta {
				deltas++
				frame[len(frame)-1] ^= 1
			}
			r := DecodeAnswer(f, FrameType(frame[0]), frame[FrameHeader:], digest.Limits{})
			if r.Kind == FrameDelta && !errors.Is(r.Err, digest.ErrCorrupt) {
				t.Errorf("a broken delta gives %v, want ErrCorrupt", r.Err)
			}
			a.engine.FetchDone(now, f.Number, r)
		}
	}
	s := a.engine.Stats()
	if deltas != unusables || s.SnapshotsReceived-before.SnapshotsReceived != 1 {
		t.Errorf("%d deltas and %d snapshots, want %d and 1", deltas, s.SnapshotsReceived-before.SnapshotsReceived, unusables)
	}
	if got, want := a.replica(b).held.Version, b.engine.Self().Version; got != want {
		t.Errorf("a holds %v, want %v", got, want)
	}
}
