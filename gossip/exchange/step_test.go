package exchange

import (
	"errors"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// TestSmallChangesComeAsSteps: a small change reaches all peers without a get.
func TestSmallChangesComeAsSteps(t *testing.T) {
	w := quietWorld(t, 4)
	b := w.peers[0]
	w.run(w.now.Add(10 * time.Second))
	before := make([]Stats, 4)
	for i, p := range w.peers {
		before[i] = p.engine.Stats()
	}
	b.filter.Add(77 << 56)
	b.publish()
	w.run(w.now.Add(300 * time.Millisecond))
	for i, p := range w.peers[1:] {
		s, was := p.engine.Stats(), before[i+1]
		if s.Fetches != was.Fetches || s.CarriedReceived != was.CarriedReceived+1 {
			t.Errorf("%s: %d gets and %d changes carried, want 0 and 1", p.name, s.Fetches-was.Fetches, s.CarriedReceived-was.CarriedReceived)
		}
	}
	w.mustBeInStep(t)
	// No peer reacted. The origin asks once whether it arrived, unless equal sums have shown it.
	w.run(w.now.Add(10 * time.Second))
	if n := b.engine.Stats().Repeats - before[0].Repeats; n > 3 {
		t.Errorf("%d repeats, want at most one to each of 3", n)
	}
}

// TestEqualTags: of three peers two have the same tag, and their small changes still come as steps, as do those of the third;
// a reminder of a lost step is answered by the peer that it is meant for.
func TestEqualTags(t *testing.T) {
	if a, b := IDOf("p5497"), IDOf("p8055"); a == b || a.tag() != b.tag() {
		t.Fatalf("the tags of %x and %x differ", a, b)
	}
	w := namedWorld(t, "p5497", "p8055", "p1")
	for i, origin := range w.peers {
		w.run(w.now.Add(10 * time.Second))
		before := make([]Stats, len(w.peers))
		for j, p := range w.peers {
			before[j] = p.engine.Stats()
		}
		origin.filter.Add(77 << 56)
		origin.publish()
		w.run(w.now.Add(300 * time.Millisecond))
		for j, p := range w.peers {
			s, was := p.engine.Stats(), before[j]
			if j != i && (s.Fetches != was.Fetches || s.CarriedReceived != was.CarriedReceived+1) {
				t.Errorf("%s of %s: %d gets and %d changes carried, want 0 and 1", p.name, origin.name, s.Fetches-was.Fetches, s.CarriedReceived-was.CarriedReceived)
			}
		}
		w.loss = 1
		origin.filter.Add(78 << 56)
		origin.publish()
		w.loss = 0
		w.run(w.now.Add(10 * time.Second))
		w.mustBeInStep(t)
		for _, p := range w.peers {
			if q := origin.engine.peers[p.engine.id]; q != nil && q.reacted != origin.engine.self.Version {
				t.Errorf("%s does not know that %s has its last version", origin.name, p.name)
			}
		}
	}
}

// TestLostStepShowsInTheNext loses a step between two.
func TestLostStepShowsInTheNext(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	w.run(w.now.Add(10 * time.Second))
	was := a.engine.Stats()
	w.loss = 1
	b.filter.Add(77 << 56)
	b.publish()
	w.loss = 0
	w.run(w.now.Add(100 * time.Millisecond))
	b.filter.Add(78 << 56)
	b.publish()
	w.run(w.now.Add(300 * time.Millisecond))
	w.mustBeInStep(t)
	if s := a.engine.Stats(); s.Gaps != was.Gaps+1 || s.DeltasReceived != was.DeltasReceived+1 {
		t.Errorf("%d gaps and %d deltas fetched, want 1 and 1", s.Gaps-was.Gaps, s.DeltasReceived-was.DeltasReceived)
	}
}

// TestNewVersionIsRepeatedSoon: however long a peer has not reacted to one version, it is soon reminded of the next.
func TestNewVersionIsRepeatedSoon(t *testing.T) {
	w := quietWorld(t, 2)
	b := w.peers[0]
	w.loss = 1
	for round := range 3 {
		for range 4 * MaxDatagram { // too large to be carried
			b.filter.Add(digest.Key(w.rng.Uint64()))
		}
		b.publish()
		before := b.engine.Stats().Repeats
		w.run(w.now.Add(2 * (repeatAfter[0] + repeatAfter[1])))
		if b.engine.Stats().Repeats == before {
			t.Errorf("round %d: no repeat within %v", round, 2*(repeatAfter[0]+repeatAfter[1]))
		}
		w.run(w.now.Add(time.Minute))
	}
}

func TestLargeChangesAreFetched(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	w.run(w.now.Add(10 * time.Second))
	was, wasB := a.engine.Stats(), b.engine.Stats()
	for range 4 * MaxDatagram {
		b.filter.Add(digest.Key(w.rng.Uint64()))
	}
	b.publish()
	w.run(w.now.Add(300 * time.Millisecond))
	w.mustBeInStep(t)
	if s := a.engine.Stats(); s.CarriedReceived != was.CarriedReceived || b.engine.Stats().CarriedSent != wasB.CarriedSent {
		t.Error("a change of kilobytes was carried")
	}
	for _, d := range b.engine.Drain().Datagrams {
		if len(d.Data) > MaxDatagram {
			t.Errorf("a datagram of %d bytes", len(d.Data))
		}
	}
}

// TestForgedStep forges changes in b's name.
func TestForgedStep(t *testing.T) {
	forged := func(t *testing.T, b *simPeer, step uint64) []byte {
		evil, err := digest.NewCountingFilter(b.filter.Geometry(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range b.keys {
			evil.Add(k)
		}
		evil.Advance()
		evil.Add(66 << 56)
		f, d := evil.AdvanceDelta()
		change, err := d.AppendBare(nil, f)
		if err != nil {
			t.Fatal(err)
		}
		h := b.engine.Self()
		h.Version.Sequence += step
		h.State, h.Keys = f.Version().State, f.Keys()
		b.w.published[h.Version.Digest(h.State)] = hashOf(f)
		return Step{
			Origin: h.Origin.tag(), From: uint8(h.Version.Sequence - step), Step: step,
			Keys: int64(h.Keys - b.engine.Self().Keys), Mark: h.mark(), Change: change,
		}.AppendTo(nil)
	}
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	w.run(w.now.Add(10 * time.Second))
	was := a.engine.Stats()
	a.engine.HandleDatagram(w.now, forged(t, b, 1000))
	a.pump()
	w.run(w.now.Add(100 * time.Millisecond))
	if a.engine.Stats().CarriedReceived == was.CarriedReceived {
		t.Error("the forged change was not taken, so nothing has to be repaired")
	}
	a.last[b.i] = Version{} // it will go back
	w.run(w.now.Add(3 * time.Second))
	b.filter.Add(78 << 56)
	b.publish()
	w.run(w.now.Add(5 * time.Second))
	w.mustBeInStep(t)
}

func TestDecodeChangeChecksEverything(t *testing.T) {
	c, _ := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 20, Hashes: 1}, 1)
	c.Add(1 << 60)
	base := c.Advance()
	c.Add(2 << 60)
	f, d := c.AdvanceDelta()
	change, _ := d.AppendBare(nil, base)
	h := headOf(IDOf("p"), 7, f)
	good := Step{From: uint8(h.Version.Sequence - 1), Step: 1, Mark: h.mark(), Keys: int64(h.Keys - base.Keys()), Change: change}
	have := h.Version
	have.Sequence--
	fetch := func(s Step) Fetch {
		return Fetch{Get: Get{Origin: h.Origin, Have: have}, Base: base, Step: &s}
	}
	if r := DecodeChange(fetch(good), digest.Limits{}); r.Err != nil || r.Filter.Version() != f.Version() || r.Head != h {
		t.Errorf("DecodeChange = %+v", r)
	}
	mark, broken := good, good
	mark.Mark++
	broken.Change = change[:len(change)-1]
	for name, bad := range map[string]Step{"one that leads elsewhere": mark, "a short change": broken} {
		if r := DecodeChange(fetch(bad), digest.Limits{}); !errors.Is(r.Err, digest.ErrCorrupt) || r.Filter != nil {
			t.Errorf("%s: %v, filter %v, want ErrCorrupt and none", name, r.Err, r.Filter)
		}
	}
}

// TestSetPublishing: the next wait is by the new interval.
func TestSetPublishing(t *testing.T) {
	w := quietWorld(t, 2)
	w.run(w.now.Add(10 * time.Second))
	e, now := w.peers[0].engine, w.now
	e.SetAsks(0)
	e.PublishIn(now, 0)
	for _, interval := range []time.Duration{time.Minute, time.Second, time.Hour} {
		e.SetPublishing(Publishing{Interval: interval})
		if got := e.PublishIn(now, 1); got != interval || e.Publishing().Interval != interval {
			t.Errorf("with an interval of %v one change waits %v", interval, got)
		}
	}
}
