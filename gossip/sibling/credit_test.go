package sibling

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/wire"
)

// claimants are the siblings of one client, and the network to them, in virtual time.
type claimants struct {
	client *Client
	list   []*claimant
	byName map[string]*claimant
	origin int // requests to it
	lost   int // lookups that would have found the object, had fewer claims been ignored
	hits   int
}

// A claimant is a sibling: what its digest claims, and what it has.
type claimant struct {
	name        string
	claims, has func(key uint64) bool
	rate        float64 // of false positives in its digest
	asked       int
}

const claimantTrip, originTrip = time.Millisecond, 20 * time.Millisecond

func newClaimants(t *testing.T) *claimants {
	w := &claimants{byName: make(map[string]*claimant)}
	var err error
	if w.client, err = New(Config{Name: "me", Locator: w, HTTP: roundTripper(w.answer)}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *claimants) add(c claimant) *claimant {
	c.name = fmt.Sprint("p", len(w.list))
	w.list = append(w.list, &c)
	w.byName[c.name] = &c
	return &c
}

// Candidates orders the claimants at random, but in the same way for the same key.
func (w *claimants) Candidates(dst []Candidate, identity string) []Candidate {
	key, _ := strconv.ParseUint(identity, 10, 64)
	first := int(wire.Mix(key) % uint64(len(w.list)))
	for i := range w.list {
		c := w.list[(first+i)%len(w.list)]
		if c.claims(key) {
			dst = append(dst, Candidate{Peer: c.name, Service: c.name, FalsePositiveRate: c.rate})
		}
	}
	return dst
}

func (w *claimants) Distrust(string) {}

func (w *claimants) answer(r *http.Request) (*http.Response, error) {
	time.Sleep(claimantTrip)
	c := w.byName[r.URL.Host]
	c.asked++
	u, err := url.Parse(r.URL.Opaque)
	if err != nil {
		return nil, err
	}
	if key, err := strconv.ParseUint(u.Path[1:], 10, 64); err != nil || !c.has(key) {
		return notHere(r, c.name), err
	}
	h := http.Header{}
	markHit(h, c.name)
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody, Request: r}, nil
}

// miss looks for a key at the siblings and then at the origin.
func (w *claimants) miss(t *testing.T, key uint64) {
	identity := strconv.FormatUint(key, 10)
	in := w.client.Lookup(LookupRequest{URL: &url.URL{Scheme: "http", Host: "site.test", Path: "/" + identity},
		Header: http.Header{"Cache-Control": {"only-if-cached"}}, Identities: []string{identity},
		Origin: func(context.Context, http.Header) (*http.Response, error) {
			time.Sleep(originTrip)
			w.origin++
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}})
	a, err := in.Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	switch {
	case a.Peer != "":
		w.hits++
	case in.Asked < mostAsked && slices.ContainsFunc(w.list, func(c *claimant) bool { return c.claims(key) && c.has(key) }):
		w.lost++
	}
}

func all(uint64) bool  { return true }
func none(uint64) bool { return false }

// some returns a function that is true for that share of keys, which differ from seed to seed.
func some(share float64, seed uint64) func(uint64) bool {
	return func(key uint64) bool { return float64(wire.Mix(wire.Mix(seed+1)^key))/(1<<64) < share }
}

// TestLyingDigests: members that have nothing of what their digests claim cost few requests,
// however many they are, and whether their digests admit that they claim everything or not.
func TestLyingDigests(t *testing.T) {
	const misses = 3000
	for name, tt := range map[string]struct {
		members int
		rate    float64
		claims  float64 // share of the keys asked for
		most    float64 // requests for each miss; 0 = 0.05
	}{
		"all ones":                          {members: 1, rate: 1, claims: 1},
		"overfull":                          {members: 1, rate: 0.18, claims: 1},
		"the keys that are asked for":       {members: 1, rate: 0.001, claims: 1},
		"ten of all ones":                   {members: 10, rate: 1, claims: 1},
		"a hundred of all ones":             {members: 100, rate: 1, claims: 1},
		"a hundred with the keys asked for": {members: 100, rate: 0.001, claims: 1},
		"a hundred at random":               {members: 100, rate: 0.01, claims: 0.01, most: 0.16}, // as members that have not had what was asked for
		"a thousand, overfull":              {members: 1000, rate: 0.18, claims: 0.18},
	} {
		for _, between := range []time.Duration{5 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprint(name, ", a miss every ", between), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newClaimants(t)
					for i := range tt.members {
						w.add(claimant{rate: tt.rate, claims: some(tt.claims, uint64(i)), has: none})
					}
					for key := range uint64(misses) {
						w.miss(t, key)
						time.Sleep(between)
					}
					var asked []int
					sum := 0
					for _, c := range w.list {
						asked, sum = append(asked, c.asked), sum+c.asked
					}
					slices.Sort(asked)
					slices.Reverse(asked)
					t.Logf("%d requests in %d misses; most of one name: %v", sum, misses, asked[:min(5, len(asked))])
					most := cmp.Or(tt.most, 0.05)
					if float64(sum) > mostOnTrust+most*misses {
						t.Errorf("%d requests for %d misses, want at most %v %%", sum, misses, 100*most)
					}
					if tt.most == 0 && sum > 100+5*(tt.members-1) {
						t.Errorf("%d requests for all, want at most 100, and 5 for each further name", sum)
					}
					if asked[0] > 100 || tt.members >= 100 && tt.most == 0 && asked[1] > 5 {
						t.Errorf("%v requests for some names, want at most 100 for one and 5 for others of many", asked[:min(5, len(asked))])
					}
				})
			})
		}
	}
}

// TestHonestDigests: members whose digests are as wrong as digests are lose almost no hits.
func TestHonestDigests(t *testing.T) {
	const misses = 6000
	for name, tt := range map[string]struct {
		members int
		rate    float64       // of false positives
		has     float64       // share of the keys asked for, of each
		wrong   float64       // share of what they have that was evicted since
		purged  time.Duration // every so often all that they have is removed, and listed for another second
		between time.Duration // two misses; 0 = 50 ms
		cold    uint64        // so many misses first, of keys that nobody has
	}{
		"few":                             {members: 4, rate: 0.001, has: 0.1},
		"few, small caches":               {members: 4, rate: 0.01, has: 0.002},
		"a hundred newcomers":             {members: 100, rate: 0.01, has: 0.005},
		"a hundred newcomers, as planned": {members: 100, rate: 0.0001, has: 0.001},
		"they evict fast":                 {members: 10, rate: 0.001, has: 0.05, wrong: 0.5},
		"purges":                          {members: 4, rate: 0.001, has: 0.2, purged: 20 * time.Second},
		"a purge of what is hot":          {members: 2, rate: 0.001, has: 0.3, purged: 25 * time.Second, between: 5 * time.Millisecond},
		"newcomers, purged at once":       {members: 100, rate: 0.01, has: 0.01, purged: 30 * time.Second},
		"a hundred, empty at first":       {members: 100, rate: 0.001, has: 0.01, cold: 2000},
		"two hundred, empty at first":     {members: 200, rate: 0.001, has: 0.005, cold: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newClaimants(t)
				start := time.Now()
				gone := func() bool {
					return tt.purged > 0 && (time.Since(start)+tt.purged-time.Second)%tt.purged < time.Second
				}
				for i := range tt.members {
					lists, wrong, evicted := some(tt.has, uint64(3*i)), some(tt.rate, uint64(3*i+1)), some(tt.wrong, uint64(3*i+2))
					w.add(claimant{rate: tt.rate, claims: func(k uint64) bool { return k >= tt.cold && lists(k) || wrong(k) },
						has: func(k uint64) bool { return k >= tt.cold && lists(k) && !evicted(k) && !gone() }})
				}
				for key := range uint64(misses) {
					w.miss(t, key)
					time.Sleep(cmp.Or(tt.between, 50*time.Millisecond))
				}
				asked := 0
				for _, c := range w.list {
					asked += c.asked
				}
				t.Logf("%d requests, %d hits, %d lost", asked, w.hits, w.lost)
				if w.hits < 40 || float64(w.lost) > 0.001*float64(w.hits) {
					t.Errorf("%d hits lost of %d, want at most 0.1 %%", w.lost, w.hits+w.lost)
				}
			})
		})
	}
}

// TestMistrustEnds: a sibling that lacked what its digest claims, and has it again, is asked within
// half an hour, and with its first hit as before.
func TestMistrustEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newClaimants(t)
		honest := all
		p := w.add(claimant{claims: all, has: func(k uint64) bool { return honest(k) }})
		key := uint64(0)
		for range 100 {
			w.miss(t, key)
			key++
		}
		if w.hits != 100 {
			t.Fatalf("%d hits of 100", w.hits)
		}
		honest, p.asked = none, 0
		for range 3 * 3600 {
			w.miss(t, key)
			key++
			time.Sleep(time.Second)
		}
		if p.asked > 100 || !w.client.cfg.Health.Of(p.name).Quarantined {
			t.Errorf("asked %d times in three hours, %+v", p.asked, w.client.cfg.Health.Of(p.name))
		}
		honest, w.hits = all, 0
		start := time.Now()
		for ; w.hits == 0 && time.Since(start) < time.Hour; key++ {
			w.miss(t, key)
			time.Sleep(time.Second)
		}
		if took := time.Since(start); took > 31*time.Minute || w.client.cfg.Health.Of(p.name).Quarantined {
			t.Errorf("honest again, it is asked after %v; %+v", took, w.client.cfg.Health.Of(p.name))
		}
		w.hits = 0
		for range 100 {
			w.miss(t, key)
			key++
		}
		if w.hits != 100 {
			t.Errorf("%d hits of 100 of a sibling that is honest again", w.hits)
		}
	})
}

// TestQuarantineIsReported: Distrust is called once a quarantine takes a minute, and a new life does
// not end it.
func TestQuarantineIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		defer w.close()
		p := w.sibling(lacks)
		start := time.Now()
		for w.distrusted == 0 && time.Since(start) < time.Hour {
			w.learn(1)
			time.Sleep(time.Second)
		}
		took := time.Since(start)
		w.known[0].Incarnation = 2
		if s := w.client.cfg.Health.Of(p); w.distrusted != 1 || took > 2*time.Minute+10*time.Second || !s.Quarantined || s.Suspended || len(w.plan()) != 0 {
			t.Errorf("distrusted %d times after %v, asks %v, %+v", w.distrusted, took, w.plan(), s)
		}
	})
}
