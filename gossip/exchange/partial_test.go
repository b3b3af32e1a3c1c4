package exchange

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A breaking stream ends within each answer until it has let a number of bytes through.
type breaking struct {
	t       *testing.T
	now     time.Time
	to      *Engine
	sources map[string]*Engine
	every   int // bytes of a payload that come; 0 for all
	asked   []string
	got     []FrameType
	sent    int
}

// fetch handles the outputs of b.to until there have been none for a second.
func (b *breaking) fetch() {
	b.t.Helper()
	for range 200 {
		b.now = b.now.Add(100 * time.Millisecond)
		b.to.Tick(b.now)
		out := b.to.Drain()
		for _, f := range out.Fetches {
			get, err := DecodeGet(f.Get.AppendTo(nil)[FrameHeader:])
			if err != nil {
				b.t.Fatal(err)
			}
			frame := b.sources[f.Source].HandleGet(b.to.cfg.Name, get).AppendTo(nil)
			b.asked = append(b.asked, f.Source)
			b.got = append(b.got, FrameType(frame[0]))
			payload := frame[FrameHeader:]
			r := Result{}
			if b.every > 0 && len(payload) > b.every {
				payload = payload[:b.every]
				r = DecodeBroken(f, FrameType(frame[0]), payload)
			} else {
				r = DecodeAnswer(f, FrameType(frame[0]), payload, digest.Limits{})
			}
			b.sent += len(payload)
			b.to.FetchDone(b.now, f.Number, r)
		}
	}
}

// publisher returns an engine with a digest of n keys, and a function that changes it.
func publisher(t *testing.T, n int) (*Engine, func(keys int) *digest.Filter) {
	t.Helper()
	c, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 24, Hashes: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := New(Config{Name: "a", Incarnation: 5}, time.Unix(0, 0))
	r := rand.New(rand.NewPCG(1, 2))
	change := func(keys int) *digest.Filter {
		for range keys {
			c.Add(digest.Key(r.Uint64()))
		}
		f, d := c.AdvanceDelta()
		e.Publish(time.Unix(0, 0), f, d)
		return f
	}
	change(n)
	return e, change
}

// TestResume breaks the stream of a snapshot again and again. Each get requests the rest; no part of
// the body is sent twice.
func TestResume(t *testing.T) {
	a, change := publisher(t, 100_000)
	snapshot := a.HandleGet("b", Get{Origin: a.id, Limit: 1 << 26}).AppendTo(nil)
	b := &breaking{t: t, now: time.Unix(1, 0), sources: map[string]*Engine{"a": a}, every: 40_000}
	b.to = New(Config{Name: "b", Incarnation: 6}, b.now)
	b.to.PeerUp(b.now, "a", 5, nil)
	b.fetch()
	if r, _ := b.to.Replica("a"); r.Filter == nil || r.Head != a.Self() {
		t.Fatalf("b holds %v after %v, %+v, want %v", r.Head, b.got, b.to.Stats(), a.Self())
	}
	times := (len(snapshot) + 39_999) / 40_000
	if s := b.to.Stats(); b.sent > len(snapshot)+100*times+200 || s.Resumed != 1 || s.ResumedBytes < int64(40_000*(times-2)) {
		t.Errorf("%d bytes were sent for a digest of %d; %+v", b.sent, len(snapshot), s)
	}
	if b.got[0] != FrameSnapshot || slices.Contains(b.got[1:], FrameSnapshot) || b.got[len(b.got)-1] != FrameSame {
		t.Errorf("the answers were %v", b.got)
	}

	// The origin continues to publish while the stream breaks: it serves the rest of the first version
	// from its history, and then the changes.
	b.to = New(Config{Name: "b", Incarnation: 7}, b.now)
	b.to.PeerUp(b.now, "a", 5, nil)
	b.got, b.sent = nil, 0
	for i := range 5 {
		b.to.Tick(b.now)
		for _, f := range b.to.Drain().Fetches {
			frame := a.HandleGet("b", f.Get).AppendTo(nil)
			b.got = append(b.got, FrameType(frame[0]))
			b.to.FetchDone(b.now, f.Number, DecodeBroken(f, FrameType(frame[0]), frame[FrameHeader:20_000]))
		}
		change(10 + i)
		b.now = b.now.Add(time.Second)
	}
	b.every = 0
	b.fetch()
	if r, _ := b.to.Replica("a"); r.Head != a.Self() || b.to.Stats().Resumed != 1 {
		t.Errorf("b holds %v after %v, want %v", r.Head, b.got, a.Self())
	}
}

// TestResumeElsewhere begins with one peer and continues with another, which got the same version by
// deltas.
func TestResumeElsewhere(t *testing.T) {
	a, change := publisher(t, 50_000)
	now := time.Unix(1, 0)
	relay := &breaking{t: t, now: now, sources: map[string]*Engine{"a": a}}
	relay.to = New(Config{Name: "r", Incarnation: 6}, now)
	relay.to.PeerUp(now, "a", 5, nil)
	relay.fetch()
	for range 3 {
		change(200)
		relay.to.HandleDatagram(relay.now, Advert{Announce, a.Self()}.AppendTo(nil))
		relay.fetch()
	}
	held := relay.to.peers[a.id].held
	if held != a.Self() || relay.to.Stats().DeltasReceived != 3 {
		t.Fatalf("the relay holds %v after %+v", held, relay.to.Stats())
	}
	for _, newer := range []int{0, 300} { // the relay has gone on meanwhile, or has not
		f := Fetch{Get: Get{Origin: a.id, Limit: 1 << 26}, Source: "a"}
		frame := a.HandleGet("b", f.Get).AppendTo(nil)
		f.partial = DecodeBroken(f, FrameSnapshot, frame[FrameHeader:30_000]).partial
		f.Get.Resume = f.partial.resume()
		if newer > 0 {
			change(newer)
			relay.to.HandleDatagram(relay.now, Advert{Announce, a.Self()}.AppendTo(nil))
			relay.fetch()
		}
		rest := relay.to.HandleGet("b", f.Get).AppendTo(nil)
		r := DecodeAnswer(f, FrameType(rest[0]), rest[FrameHeader:], digest.Limits{})
		if rest[0] != byte(FrameRest) || r.Err != nil || r.Head != f.partial.Head || r.Resumed != len(f.partial.Body) {
			t.Fatalf("%d keys later: %v, %+v", newer, FrameType(rest[0]), r)
		}
		if again := r.Filter.AppendTo(nil); !bytes.HasSuffix(frame, again) {
			t.Errorf("%d keys later: the parts make other bytes than the snapshot", newer)
		}
		// Parts that do not fit are detected, whichever is wrong.
		for _, at := range []int{0, len(f.partial.Body) / 2} {
			bad := *f.partial
			bad.Body = bytes.Clone(bad.Body)
			bad.Body[at] ^= 1
			f := f
			f.partial = &bad
			if r := DecodeAnswer(f, FrameType(rest[0]), rest[FrameHeader:], digest.Limits{}); r.Err == nil {
				t.Error("a part with a wrong bit is accepted")
			}
		}
		bad := bytes.Clone(rest)
		bad[len(bad)-100] ^= 1
		if r := DecodeAnswer(f, FrameType(bad[0]), bad[FrameHeader:], digest.Limits{}); r.Err == nil {
			t.Error("a rest with a wrong bit is accepted")
		}
	}
}

// TestResumeIsBounded: the parts of broken streams take no more memory than one digest may, and are
// dropped if they are old, too short, or wrong.
func TestResumeIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	e := New(Config{Name: "e", Incarnation: 1, DigestBytes: 100_000}, now)
	start := func(name string) (Fetch, *peer) {
		e.PeerUp(now, name, 1, nil)
		p := e.peers[IDOf(name)]
		p.notBefore = now
		e.Tick(now)
		for _, f := range e.Drain().Fetches {
			if f.Origin == name {
				return f, p
			}
		}
		t.Fatalf("there is no get to %s", name)
		panic("unreachable")
	}
	broken := func(name string, bytes int) Result {
		h := Head{Origin: IDOf(name), Version: Version{1, 1, 9}, State: 3}
		return Result{Kind: FrameSnapshot, Err: ErrBroken, Bytes: bytes, partial: &partialBody{Head: h, Body: make([]byte, bytes)}}
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		f, p := start(name)
		now = now.Add(time.Second)
		e.FetchDone(now, f.Number, broken(name, 40_000))
		sum := 0
		for _, q := range e.order {
			if q.partial != nil {
				sum += len(q.partial.Body)
			}
		}
		if p.partial == nil || sum != min(i+1, 2)*40_000 {
			t.Errorf("after %s %d bytes are kept", name, sum)
		}
	}
	f, p := start("f")
	e.FetchDone(now, f.Number, broken("f", leastPartial-1))
	if p.partial != nil || p.attempts == 0 {
		t.Error("a part that is too short is kept")
	}
	f, p = start("g")
	e.FetchDone(now, f.Number, broken("g", 100_001))
	if p.partial != nil {
		t.Error("a part that is too long is kept")
	}
	f, p = start("h")
	e.FetchDone(now, f.Number, broken("h", 50_000))
	now = now.Add(time.Second)
	f, _ = start("h")
	if f.partial == nil || f.Get.Resume.Offset != 50_000 {
		t.Fatalf("the get is %+v", f.Get)
	}
	e.FetchDone(now, f.Number, Result{Kind: FrameSnapshot, Err: digest.ErrCorrupt})
	if p.partial != nil {
		t.Error("a part of a wrong digest is kept")
	}
	f, _ = start("i")
	e.FetchDone(now, f.Number, broken("i", 50_000))
	now = now.Add(partialAge + time.Second)
	if f, _ = start("i"); f.partial != nil || f.Get.Resume.Offset != 0 {
		t.Error("an old part is resumed")
	}
}
