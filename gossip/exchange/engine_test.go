package exchange

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// quietWorld has n peers with some keys each, which know each other, and no faults.
func quietWorld(t *testing.T, n int) *world {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	return namedWorld(t, names...)
}

// namedWorld is a quietWorld of peers with these names.
func namedWorld(t *testing.T, names ...string) *world {
	t.Helper()
	w := &world{
		rng: rand.New(rand.NewPCG(1, 2)), now: time.Unix(0, 0), delay: time.Millisecond,
		cut: make(map[[2]int]bool), published: make(map[digest.Version]uint64),
	}
	w.peers = make([]*simPeer, len(names))
	for i, name := range names {
		w.peers[i] = &simPeer{w: w, i: i, name: name}
	}
	for _, p := range w.peers {
		var err error
		if p.filter, err = digest.NewSet(digest.Geometry{Bits: 1 << 14, Hashes: 1}, 1); err != nil {
			t.Fatal(err)
		}
		p.change(500)
		p.start(NewIncarnation(w.now.Add(time.Hour), w.rng.Uint64()))
	}
	w.membershipChanged()
	w.run(w.now.Add(10 * time.Second))
	w.mustBeInStep(t)
	return w
}

func (w *world) mustBeInStep(t *testing.T) {
	t.Helper()
	w.run(w.now)
	for _, a := range w.peers {
		for _, b := range w.peers {
			if a == b {
				continue
			}
			if got, want := a.index[b.i], b.filter.Filter().Current(); got == nil || got.Version() != want.Version() {
				r, _ := a.engine.Replica(b.name)
				t.Fatalf("%s holds of %s %v, want %v", a.name, b.name, r.Head, want.Version())
			}
		}
	}
	if w.failed != nil {
		t.Fatal(w.failed)
	}
}

// replica returns a's replica of b's digest.
func (a *simPeer) replica(b *simPeer) *peer { return a.engine.peers[b.engine.id] }

func (a *simPeer) handleClaim(ad Advert) {
	a.engine.HandleDatagram(a.w.now, ad.AppendTo(nil))
	a.engine.Tick(a.w.now)
	a.pump()
}

func TestNothingIsSentWhenNothingChanges(t *testing.T) {
	w := quietWorld(t, 5)
	before := w.peers[0].engine.Stats()
	w.run(w.now.Add(time.Minute))
	after := w.peers[0].engine.Stats()
	if after.AdvertsSent != before.AdvertsSent || after.Fetches != before.Fetches || after.Published != before.Published {
		t.Errorf("in a quiet minute the stats went from %+v to %+v", before, after)
	}
	if after.Agreed < before.Agreed+20 || after.Syncs != before.Syncs {
		t.Errorf("in a quiet minute %d sums agreed, %d vectors were exchanged", after.Agreed-before.Agreed, after.Syncs-before.Syncs)
	}
}

func TestDivergenceIsFoundAndRepaired(t *testing.T) {
	w := quietWorld(t, 3)
	a, b := w.peers[1], w.peers[0]
	// A replica that was corrupted in memory: the version is right, the contents are not.
	p := a.replica(b)
	p.filter = w.peers[2].filter.Filter().Current()
	p.held.State = p.filter.Version().State
	a.engine.settle(p, nil)
	a.index[b.i] = p.filter
	w.run(w.now.Add(10 * time.Second))
	w.mustBeInStep(t)
	if s := a.engine.Stats(); s.Divergences != 1 {
		t.Errorf("%d divergences, want 1", s.Divergences)
	}
}

func TestForgedAdvertsChangeNothing(t *testing.T) {
	w := quietWorld(t, 3)
	a, b := w.peers[1], w.peers[0]
	before := a.engine.Stats()
	for i := range 1000 {
		h := b.engine.Self()
		h.State += uint64(i) + 1
		a.handleClaim(Advert{Announce, h})
		w.run(w.now.Add(10 * time.Millisecond))
		if a.index[b.i] == nil {
			t.Fatalf("forged advert %d took b out of a's index", i)
		}
	}
	w.mustBeInStep(t)
	s := a.engine.Stats()
	if got := s.Fetches - before.Fetches; got > 11 {
		t.Errorf("1000 forged adverts in ten seconds led to %d gets, want at most one a second", got)
	}
	if s.Divergences != 0 || s.Contested-before.Contested != 1000 {
		t.Errorf("%d divergences, %d contradictions, want 0 and 1000", s.Divergences, s.Contested-before.Contested)
	}
}

func TestForgedVersionIsDenied(t *testing.T) {
	w := quietWorld(t, 3)
	a, b := w.peers[1], w.peers[0]
	before := a.engine.Stats().Fetches
	h := b.engine.Self()
	h.Version.Sequence += 100
	a.handleClaim(Advert{Announce, h})
	w.run(w.now.Add(time.Minute))
	if got := a.engine.Stats().Fetches - before; got < 2 || got > denials+1 {
		t.Errorf("%d gets for a version that does not exist, want 2 to %d", got, denials+1)
	}
	if r, _ := a.engine.Replica(b.name); r.Behind {
		t.Error("a still believes in it")
	}
	b.change(5)
	w.run(w.now.Add(time.Second))
	w.mustBeInStep(t)
}

func TestEchoDisplacesALowerIncarnation(t *testing.T) {
	w := quietWorld(t, 3)
	p := w.peers[0]
	high := p.inc + 1000
	p.handleClaim(Advert{echo, Head{Origin: p.engine.id, Version: Version{Incarnation: high}}})
	taken := p.engine.Incarnation()
	if taken <= high || taken > high+1<<20 {
		t.Fatalf("Incarnation = %x, want 1 to 2^20 above %x", taken, high)
	}
	w.run(w.now.Add(5 * time.Second))
	w.mustBeInStep(t)
	if r, _ := w.peers[1].engine.Replica("p0"); r.Head.Version.Incarnation != taken {
		t.Errorf("p1 holds %v of p0, want incarnation %x", r.Head.Version, taken)
	}
	p.handleClaim(Advert{echo, Head{Origin: p.engine.id, Version: Version{Incarnation: ^uint64(0)}}})
	if got := p.engine.Incarnation(); got != taken {
		t.Errorf("after an echo of the greatest number Incarnation = %x, want %x", got, taken)
	}
}

func TestFloodIsThrottledAndNamed(t *testing.T) {
	w := quietWorld(t, 3)
	liar, a, honest := w.peers[0], w.peers[1], w.peers[2]
	before := a.engine.Stats()
	for i := range 10_000 { // ten seconds
		liar.filter.Inside().Rebuild(digest.Geometry{Bits: 1<<14 + uint64(i), Hashes: 1})
		liar.publish()
		if i%1000 == 0 {
			honest.change(3)
		}
		w.run(w.now.Add(time.Millisecond))
	}
	s := a.engine.Stats()
	// Eight at once, then one a second, and slower.
	if got := s.SnapshotsReceived - before.SnapshotsReceived; got > snapshotBurst+10 {
		t.Errorf("fetched %d snapshots of a peer that had 10000 in ten seconds", got)
	}
	if s.Floods == before.Floods {
		t.Error("the liar was not named")
	}
	honest.change(1)
	w.run(w.now.Add(time.Second))
	if got, want := a.index[2], honest.filter.Filter().Current(); got.Version() != want.Version() {
		t.Errorf("of an honest peer a holds %v, want %v", got.Version(), want.Version())
	}
	w.run(w.now.Add(3 * time.Minute))
	w.mustBeInStep(t)
}

func TestGapIsOneDelta(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	w.cut[[2]int{0, 1}], w.cut[[2]int{1, 0}] = true, true
	for range 20 {
		b.change(2)
		w.run(w.now.Add(150 * time.Millisecond))
	}
	clear(w.cut)
	before := a.engine.Stats()
	w.run(w.now.Add(6 * time.Second))
	w.mustBeInStep(t)
	s := a.engine.Stats()
	if d, h := s.DeltasReceived-before.DeltasReceived, s.SnapshotsReceived-before.SnapshotsReceived; d != 1 || h != 0 {
		t.Errorf("a gap of 20 versions took %d deltas and %d snapshots, want one delta", d, h)
	}
	if s.Gaps == before.Gaps {
		t.Error("the gap was not counted")
	}
}

func TestBeyondTheLogIsASnapshot(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	w.cut[[2]int{0, 1}], w.cut[[2]int{1, 0}] = true, true
	for range 60 { // each delta of some 60 flips: more than the log of 8 KiB holds
		b.change(60)
		w.run(w.now.Add(150 * time.Millisecond))
	}
	clear(w.cut)
	before := a.engine.Stats()
	w.run(w.now.Add(6 * time.Second))
	w.mustBeInStep(t)
	if s := a.engine.Stats(); s.SnapshotsReceived-before.SnapshotsReceived != 1 {
		t.Errorf("%d snapshots, want 1", s.SnapshotsReceived-before.SnapshotsReceived)
	}
}

func TestDeadThatAdvertiseAreNamed(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	hear := func(incarnation uint64) []string {
		h := b.engine.Self()
		h.Version.Incarnation = incarnation
		a.engine.HandleDatagram(w.now, Advert{Announce, h}.AppendTo(nil))
		return a.engine.Drain().NotDead
	}
	life := b.engine.Incarnation()
	if got := hear(life); got != nil {
		t.Errorf("while it lives: %v", got)
	}
	a.engine.PeerDown(w.now, b.name)
	if got := hear(life); !slices.Equal(got, []string{b.name}) {
		t.Errorf("when it is dead: %v", got)
	}
	if got := hear(life - 1); got != nil {
		t.Errorf("in a former life: %v", got)
	}
	a.engine.PeerUp(w.now, b.name, life)
	if got := hear(life); got != nil {
		t.Errorf("when it is back: %v", got)
	}
}

func TestRoundIsPaced(t *testing.T) {
	now := time.Unix(0, 0)
	e := New(Config{Name: "origin", Incarnation: 1}, now)
	const n = 1000
	for i := range n {
		e.PeerUp(now, fmt.Sprintf("p%d", i), 1)
	}
	c, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 10, Hashes: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Add(1)
	e.Drain()
	e.Publish(now, c.Advance(), nil)
	told := make(map[string]time.Duration)
	most := 0
	for at := now; len(told) < n; at = e.Next() {
		if at.Sub(now) > 2*time.Second {
			t.Fatalf("after two seconds only %d of %d peers had an advert", len(told), n)
		}
		e.Tick(at)
		out := e.Drain()
		most = max(most, len(out.Datagrams))
		for _, d := range out.Datagrams {
			if _, again := told[d.To]; !again {
				told[d.To] = at.Sub(now)
			}
		}
		for _, f := range out.Fetches {
			e.FetchDone(at, f.Number, Result{Err: errGone})
		}
	}
	last := time.Duration(0)
	for _, d := range told {
		last = max(last, d)
	}
	if last > roundTime {
		t.Errorf("the last of %d peers had an advert after %v, want at most %v", n, last, roundTime)
	}
	// This includes adverts repeated to peers that have not reacted.
	if most > 200 {
		t.Errorf("%d adverts were sent at once", most)
	}
}

// TestDeadPeersAreForgotten lets two peers die a minute apart, and time pass until both are forgotten.
func TestDeadPeersAreForgotten(t *testing.T) {
	w := quietWorld(t, 3)
	e, first, second, died := w.peers[0].engine, w.peers[1].name, w.peers[2].name, w.now
	e.PeerDown(died, first)
	e.PeerDown(died.Add(time.Minute), second)
	for _, tc := range []struct {
		after         time.Duration
		first, second bool
	}{{keepDead - time.Second, true, true}, {keepDead, false, true}, {keepDead + time.Minute, false, false}} {
		e.Tick(died.Add(tc.after))
		_, one := e.Replica(first)
		_, other := e.Replica(second)
		if one != tc.first || other != tc.second {
			t.Errorf("%v after the first death: known %v and %v, want %v and %v", tc.after, one, other, tc.first, tc.second)
		}
	}
	if len(e.peers)+len(e.order) != 0 || len(e.tags) != 1 || !e.expireAt.IsZero() {
		t.Errorf("%d peers, %d in order, %d tags left; expire is due at %v", len(e.peers), len(e.order), len(e.tags), e.expireAt)
	}
	e.PeerUp(died.Add(time.Hour), first, 1<<40)
	if r, ok := e.Replica(first); !ok || r.Filter != nil {
		t.Errorf("the peer that is back is known %v, with the replica %+v", ok, r)
	}
}

func TestUnusableDigestIsLeftAlone(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	b.change(1)
	w.run(w.now.Add(120 * time.Millisecond))
	before := a.engine.Stats()
	tooLarge := Result{Err: fmt.Errorf("test: %w", digest.ErrTooLarge)}
	p := a.replica(b)
	asked := 0
	now := w.now
	h := b.engine.Self()
	h.Version.Sequence += 5
	a.engine.HandleDatagram(now, Advert{Announce, h}.AppendTo(nil))
	for end := now.Add(3 * time.Minute); now.Before(end); now = now.Add(50 * time.Millisecond) {
		a.engine.Tick(now)
		for _, f := range a.engine.Drain().Fetches {
			asked++
			a.engine.FetchDone(now, f.Number, tooLarge)
		}
	}
	if asked != unusables {
		t.Errorf("%d gets in three minutes for a digest that is too large, want %d", asked, unusables)
	}
	if s := a.engine.Stats(); s.Rejected-before.Rejected != int64(asked) {
		t.Errorf("%d rejections counted, want %d", s.Rejected-before.Rejected, asked)
	}
	h.Version.Epoch++
	a.engine.HandleDatagram(now, Advert{Announce, h}.AppendTo(nil))
	a.engine.Tick(now)
	if p.flight == nil {
		t.Error("there is no get after a new epoch")
	}
}

// TestRestartedIsNotRejected: an origin answers a get in a life of which membership has not heard yet, or in one that has just ended. That
// is asked again, and neither counted nor logged as a wrong answer.
func TestRestartedIsNotRejected(t *testing.T) {
	w := quietWorld(t, 2)
	a, b := w.peers[1], w.peers[0]
	h := b.engine.Self()
	h.Version.Sequence += 5
	a.engine.HandleDatagram(w.now, Advert{Announce, h}.AppendTo(nil))
	a.engine.Tick(w.now)
	before, asked := a.engine.Stats().Rejected, 0
	for _, f := range a.engine.Drain().Fetches {
		asked++
		h.Version.Incarnation++
		a.engine.FetchDone(w.now, f.Number, Result{Kind: FrameSnapshot, Head: h, Filter: b.filter.Filter().Current()})
	}
	if p := a.replica(b); asked != 1 || a.engine.Stats().Rejected != before || p.retry.Row == 0 {
		t.Errorf("%d gets, %d rejections, %d attempts that failed, want 1, none and 1", asked, a.engine.Stats().Rejected-before, p.retry.Row)
	}
}

func TestNewPanicsWithoutAName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New without a name did not panic")
		}
	}()
	New(Config{Incarnation: 1}, time.Unix(0, 0))
}

func TestFormatErrorSaysWhere(t *testing.T) {
	_, err := DecodeAdvert([]byte{0x11, 1, 2})
	var fe *wire.FormatError
	if !errors.As(err, &fe) || err.Error() != "gossip: advert: origin at byte 1: malformed message" {
		t.Errorf("DecodeAdvert = %v", err)
	}
}
