package exchange

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
)

func testKey(seed byte) ed25519.PrivateKey {
	b := make([]byte, ed25519.SeedSize)
	b[0] = seed
	return ed25519.NewKeyFromSeed(b)
}

// TestForgedRelayIsRefused makes a peer serve a digest that its origin, which signs, has not published.
func TestForgedRelayIsRefused(t *testing.T) {
	now := time.Unix(0, 0)
	key := testKey(1)
	filter := func(keys int) *digest.Filter {
		c, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 12, Hashes: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			c.Add(digest.Key(uint64(i+1) * 0x9e3779b97f4a7c15))
		}
		return c.Advance()
	}
	origin := New(Config{Name: "origin", Incarnation: 7, Key: key}, now)
	origin.Publish(now, filter(50), nil)
	get := Get{Origin: origin.id, Limit: 1 << 20}
	genuine := origin.HandleGet("x", get)
	fetch := Fetch{Origin: "origin", Source: "relay", Get: get, Key: key.Public().(ed25519.PublicKey)}

	other := genuine
	other.filter = filter(60)
	other.head = headOf(origin.id, 7, other.filter)
	signature := sign(key, genuine.head)
	for _, tc := range []struct {
		name   string
		answer Answer
		with   func(Answer) Answer
		want   error
	}{
		{"as published", genuine, func(a Answer) Answer { return a }, nil},
		{"passed on", genuine, func(a Answer) Answer { a.key, a.signed = nil, signature; return a }, nil},
		{"without a signature", genuine, func(a Answer) Answer { a.key = nil; return a }, ErrForged},
		{"other contents under the old signature", other, func(a Answer) Answer { a.key, a.signed = nil, signature; return a }, ErrForged},
		{"signed by another", other, func(a Answer) Answer { a.key = testKey(2); return a }, ErrForged},
	} {
		frame := tc.with(tc.answer).AppendTo(nil)
		r := DecodeAnswer(fetch, FrameType(frame[0]), frame[FrameHeader:], digest.Limits{})
		if !errors.Is(r.Err, tc.want) || tc.want == nil && r.Filter == nil {
			t.Errorf("%s: DecodeAnswer = %v, want %v", tc.name, r.Err, tc.want)
		}
	}
}

// TestSignatureTravelsWithRelays: a peer gets a digest through another peer.
func TestSignatureTravelsWithRelays(t *testing.T) {
	now := time.Unix(0, 0)
	key := testKey(1)
	public := key.Public().(ed25519.PublicKey)
	origin := New(Config{Name: "origin", Incarnation: 7, Key: key}, now)
	c, err := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 12, Hashes: 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	relay := New(Config{Name: "relay", Incarnation: 8}, now)
	relay.PeerUp(now, "origin", 7, public)
	last := New(Config{Name: "last", Incarnation: 9}, now)
	last.PeerUp(now, "relay", 8, nil)
	last.PeerUp(now, "origin", 7, public)
	// carry does e's fetches of the origin's digest at source.
	carry := func(e, source *Engine) Result {
		t.Helper()
		e.HandleDatagram(now, Advert{Announce, origin.Self()}.AppendTo(nil))
		now = now.Add(time.Minute)
		e.Tick(now)
		for _, f := range e.Drain().Fetches {
			if f.Origin != "origin" {
				continue
			}
			frame := source.HandleGet(e.cfg.Name, f.Get).AppendTo(nil)
			r := DecodeAnswer(f, FrameType(frame[0]), frame[FrameHeader:], digest.Limits{})
			e.FetchDone(now, f.Number, r)
			return r
		}
		t.Fatal("nothing is fetched")
		return Result{}
	}
	for i := range 3 {
		for j := range 200 {
			c.Add(digest.Key(uint64(200*i+j+1) * 0x9e3779b97f4a7c15))
		}
		f, d := c.AdvanceDelta()
		origin.Publish(now, f, d)
		if r := carry(relay, origin); r.Err != nil {
			t.Fatalf("version %d: the relay gets %v", i, r.Err)
		}
		r := carry(last, relay)
		if r.Err != nil || r.Filter == nil || r.Filter.Version() != f.Version() {
			t.Fatalf("version %d: the relay's answer was %v, %v", i, r.Kind, r.Err)
		}
	}
}
