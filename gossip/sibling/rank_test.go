package sibling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// Candidates are asked in the order of round trip over odds, and in the Locator's order if these
// are similar.
func TestRank(t *testing.T) {
	type past struct {
		trip      time.Duration
		good, bad int
	}
	for name, tt := range map[string]struct {
		past  map[string]past
		known []Candidate
		want  string
	}{
		"nothing known":         {nil, []Candidate{{Peer: "b"}, {Peer: "a"}}, "b a"},
		"nearer":                {map[string]past{"a": {2 * time.Millisecond, 9, 0}, "b": {20 * time.Millisecond, 9, 0}}, []Candidate{{Peer: "b"}, {Peer: "a"}}, "a b"},
		"both near":             {map[string]past{"a": {100 * time.Microsecond, 9, 0}, "b": {900 * time.Microsecond, 9, 0}}, []Candidate{{Peer: "b"}, {Peer: "a"}}, "b a"},
		"near, often wrong":     {map[string]past{"a": {2 * time.Millisecond, 1, 60}, "b": {5 * time.Millisecond, 60, 0}}, []Candidate{{Peer: "a"}, {Peer: "b"}}, "b a"},
		"far, always right":     {map[string]past{"a": {2 * time.Millisecond, 60, 20}, "b": {50 * time.Millisecond, 60, 0}}, []Candidate{{Peer: "b"}, {Peer: "a"}}, "a b"},
		"an old digest":         {nil, []Candidate{{Peer: "a", Age: time.Hour}, {Peer: "b", Age: time.Second}}, "b a"},
		"a bad digest":          {nil, []Candidate{{Peer: "a", FalsePositiveRate: 0.09}, {Peer: "b", FalsePositiveRate: 0.001}}, "b a"},
		"an unknown is average": {map[string]past{"a": {10 * time.Millisecond, 9, 0}, "c": {400 * time.Millisecond, 9, 0}}, []Candidate{{Peer: "c"}, {Peer: "b"}, {Peer: "a"}}, "a b c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := New(Config{Name: "me", Locator: &world{known: tt.known}})
			if err != nil {
				t.Fatal(err)
			}
			c.most = 9
			for peer, p := range tt.past {
				for i := range p.good + p.bad {
					c.cfg.Health.record(outcome{peer: peer, kind: other, result: map[bool]result{true: hit, false: tooOld}[i < p.good], took: p.trip})
				}
			}
			got := ""
			for _, s := range c.Inside().Plan(LookupRequest{Identities: []string{"x"}}) {
				got += " " + s.Peer
			}
			if got != " "+tt.want {
				t.Errorf("%s: asked%s, want %s: %+v", name, got, tt.want, c.Inside().Plan(LookupRequest{Identities: []string{"x"}}))
			}
		})
	}
}

// A zoned cluster has three zones of as many siblings each, and each object is at five of them.
type zoned struct {
	siblings int
	far      time.Duration // round trip to another zone
	rng      *rand.Rand
	holders  []Candidate // of the next lookup
	plain    bool        // this peer has no zone
}

func (z *zoned) Candidates(dst []Candidate, _ string) []Candidate { return append(dst, z.holders...) }
func (z *zoned) Distrust(string)                                  {}

// draw chooses who has the next object, and returns how many of them are in this peer's zone.
func (z *zoned) draw() (near int) {
	z.holders = z.holders[:0]
	for _, i := range z.rng.Perm(z.siblings)[:5] {
		c := Candidate{Peer: fmt.Sprint("p", i), Zone: string(rune('a' + i%3)), FalsePositiveRate: 0.001}
		c.Near = c.Zone == "a" && !z.plain
		if i%3 == 0 {
			near++
		}
		z.holders = append(z.holders, c)
	}
	return near
}

// trip returns the time to an answer of a sibling, which varies by a third.
func (z *zoned) trip(zone string) time.Duration {
	trip := z.far
	if zone == "a" {
		trip = 300 * time.Microsecond
	}
	return trip + time.Duration(z.rng.Int64N(int64(trip)/3))
}

// TestZones: of the objects that are held in the own zone, nearly all are asked for there first, however many
// siblings there are and however near another zone is. Without zones it is much the same as by chance where
// round trips do not show the zone.
func TestZones(t *testing.T) {
	sizes := []int{9, 90, 900, 3000}
	for _, siblings := range sizes {
		for _, far := range []time.Duration{800 * time.Microsecond, 3 * time.Millisecond, 20 * time.Millisecond} {
			for _, plain := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					z := &zoned{siblings: siblings, far: far, plain: plain, rng: rand.New(rand.NewPCG(1, uint64(siblings)))}
					c, err := New(Config{Name: "me", Locator: z})
					if err != nil {
						t.Fatal(err)
					}
					possible, first := 0, 0
					for range 2000 {
						near := z.draw()
						asked := c.Inside().Plan(LookupRequest{Identities: []string{"x"}})[0]
						if near > 0 {
							possible++
							if asked.Zone == "a" {
								first++
							}
						}
						c.cfg.Health.record(outcome{peer: asked.Peer, result: hit, took: z.trip(asked.Zone)})
						time.Sleep(60 * time.Millisecond)
					}
					share := float64(first) / float64(possible)
					t.Logf("%d siblings, far %v, without a zone %v: %.1f %% of %d", siblings, far, plain, 100*share, possible)
					if !plain && share < 0.97 || plain && far < time.Millisecond && share > 0.5 {
						t.Errorf("%d siblings, far %v, without a zone %v: %.1f %% asked in the own zone first", siblings, far, plain, 100*share)
					}
				})
			}
		}
	}
}

// TestOwnZoneFirst: the own zone goes first unless its candidate is likely to lack the object or far slower. A
// sibling of which nothing is known is as far away as its zone.
func TestOwnZoneFirst(t *testing.T) {
	near := Candidate{Peer: "near", Zone: "a", Near: true}
	far := Candidate{Peer: "far", Zone: "b"}
	unknown := Candidate{Peer: "unknown", Zone: "b"}
	for name, tt := range map[string]struct {
		trips map[string]time.Duration
		bad   int // answers of near that were false hits, of 40
		known []Candidate
		want  string
	}{
		"equally near":       {map[string]time.Duration{"near": time.Millisecond, "far": time.Millisecond}, 0, []Candidate{far, near}, "near far"},
		"somewhat slower":    {map[string]time.Duration{"near": 40 * time.Millisecond, "far": time.Millisecond}, 0, []Candidate{far, near}, "near far"},
		"far slower":         {map[string]time.Duration{"near": 80 * time.Millisecond, "far": time.Millisecond}, 0, []Candidate{far, near}, "far near"},
		"sometimes wrong":    {map[string]time.Duration{"near": time.Millisecond, "far": time.Millisecond}, 10, []Candidate{far, near}, "near far"},
		"often wrong":        {map[string]time.Duration{"near": time.Millisecond, "far": time.Millisecond}, 30, []Candidate{far, near}, "far near"},
		"as far as its zone": {map[string]time.Duration{"near": 2 * time.Millisecond, "far": 90 * time.Millisecond}, 0, []Candidate{unknown, {Peer: "stranger"}}, "stranger unknown"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{known: []Candidate{near, far}}
			c, err := New(Config{Name: "me", Locator: w})
			if err != nil {
				t.Fatal(err)
			}
			c.Inside().Plan(LookupRequest{Identities: []string{"x"}}) // its zones are known from here on
			for i := range 40 {
				for peer, trip := range tt.trips {
					c.cfg.Health.record(outcome{peer: peer, kind: other, result: map[bool]result{true: hit, false: tooOld}[peer != "near" || i >= tt.bad], took: trip})
				}
			}
			w.known = tt.known
			got := ""
			for _, s := range c.Inside().Plan(LookupRequest{Identities: []string{"x"}}) {
				got += " " + s.Peer
			}
			if got != " "+tt.want {
				t.Errorf("%s: asked%s, want %s", name, got, tt.want)
			}
		})
	}
}

// A sibling that was slow once is tried again.
func TestSlowOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		r.trip.add(0.4)
		r.last = time.Now()
		others := average{0.002, true}
		for _, want := range []time.Duration{400 * time.Millisecond, 201 * time.Millisecond, 101500 * time.Microsecond} {
			if got := r.roundTrip(others, time.Now()); math.Abs(float64(got-want)) > float64(time.Microsecond) {
				t.Errorf("roundTrip = %v, want %v", got, want)
			}
			time.Sleep(30 * time.Second)
		}
	})
}

// TestZoneCost: an origin that is no faster than a sibling of another zone goes first once that zone costs enough. This is so from the
// next request on, and for siblings of the own zone never.
func TestZoneCost(t *testing.T) {
	c, err := New(Config{Name: "a", Locator: &world{}, ZoneCost: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c.cfg.Health.record(outcome{peer: "b", kind: other, result: answered, took: 10 * time.Millisecond})
	c.origins.record(outcome{peer: "origin.test", kind: other, result: answered, took: 10 * time.Millisecond})
	for _, step := range []struct {
		zone string
		near bool
		cost time.Duration
		want bool
	}{{"z", false, time.Second, true}, {"z", true, time.Second, false}, {"", false, time.Second, false}, {"z", false, 0, false}, {"z", false, time.Second, true}} {
		c.Inside().SetZoneCost(step.cost)
		s := Ranked{Candidate: Candidate{Peer: "b", Zone: step.zone, Near: step.near}, Cost: 10 * time.Millisecond}
		if got := c.originIsFaster("origin.test", s); got != step.want {
			t.Errorf("%+v: the origin goes first: %v", step, got)
		}
	}
}
