package sibling

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
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
	first := int(mix(key) % uint64(len(w.list)))
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
	return func(key uint64) bool { return float64(mix(mix(seed+1)^key))/(1<<64) < share }
}

// TestLyingDigests: members that have nothing of what their digests claim cost few requests,
// however many they are, and whether their digests admit that they claim everything or not.
func TestLyingDigests(t *testing.T) {
	const misses = 3000
	for name, tt := range map[string]struct {
		members int
		rate    float64
		claims  float64 // share of the keys asked for
	}{
		"all ones":                          {1, 1, 1},
		"overfull":                          {1, 0.18, 1},
		"the keys that are asked for":       {1, 0.001, 1},
		"ten of all ones":                   {10, 1, 1},
		"a hundred of all ones":             {100, 1, 1},
		"a hundred with the keys asked for": {100, 0.001, 1},
		"a hundred at random":               {100, 0.01, 0.01},
		"a thousand, overfull":              {1000, 0.18, 0.18},
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
					if asked[0] > 100 || sum > 100+5*(tt.members-1) {
						t.Errorf("%d requests for one name, %d for all; want at most 100, and 5 for each further name", asked[0], sum)
					}
					if sum > misses/20 {
						t.Errorf("%d requests for %d misses, want at most 5 %%", sum, misses)
					}
					if tt.members >= 100 && asked[1] > 5 {
						t.Errorf("%v requests for some names, want at most 5 for each but one", asked[:5])
					}
				})
			})
		}
	}
}
