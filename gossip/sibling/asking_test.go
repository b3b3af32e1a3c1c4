package sibling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/insider"
)

// keeping is a light peer's view of a cluster: claimants, some of which are keepers, that answer its questions.
type keeping struct {
	*claimants
	t       *testing.T
	keepers []*keeper
	mu      sync.Mutex // guards what follows
	asked   []string   // keepers, in order
	judged  map[insider.Worth]int
	blamed  map[string]int // mistrusted keepers
}

// A keeper names those that have an object, as says changes that.
type keeper struct {
	insider.Keeper
	trip time.Duration
	says func(truth []Candidate) ([]Candidate, error) // nil = the truth
}

func newKeeping(t *testing.T, keepers ...*keeper) *keeping {
	w := &keeping{claimants: newClaimants(t), t: t, keepers: keepers, judged: make(map[insider.Worth]int), blamed: make(map[string]int)}
	var err error
	if w.client, err = New(Config{Name: "me", Locator: w, HTTP: roundTripper(w.answer)}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *keeping) Candidates([]Candidate, string) []Candidate { panic("it has to be asked") }

func (w *keeping) Keepers() (all []insider.Keeper, asks bool) {
	for _, k := range w.keepers {
		all = append(all, k.Keeper)
	}
	return all, true
}

func (w *keeping) Ask(ctx context.Context, name string, identities []string) ([][]Candidate, error) {
	w.mu.Lock()
	w.asked = append(w.asked, name)
	w.mu.Unlock()
	k := w.keepers[slices.IndexFunc(w.keepers, func(k *keeper) bool { return k.Name == name })]
	select {
	case <-time.After(k.trip):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	found := make([][]Candidate, len(identities))
	for i, identity := range identities {
		truth := w.claimants.Candidates(nil, identity)
		if k.says != nil {
			var err error
			w.mu.Lock()
			truth, err = k.says(truth)
			w.mu.Unlock()
			if err != nil {
				return nil, err
			}
		}
		for _, c := range truth {
			c.Via = name
			found[i] = append(found[i], c)
		}
	}
	return found, nil
}

func (w *keeping) Judge(keeper string, worth insider.Worth, mistrusted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judged[worth]++
	if mistrusted {
		w.blamed[keeper]++
	}
}

// misses has the light peer look up keys, one after another.
func (w *keeping) misses(n int, between time.Duration) {
	for key := range uint64(n) {
		w.miss(w.t, key)
		time.Sleep(between)
	}
	time.Sleep(time.Minute)
}

// booked returns the false hits that the records of these have.
func (w *keeping) booked(names ...string) (n int64) {
	for _, name := range names {
		n += w.client.cfg.Health.Of(name).FalseHits
	}
	return n
}

// TestLyingKeepers: of three peers that keep digests the nearest lies about two honest siblings, which have a quarter of what
// is looked up. It costs little and is noticed, however it lies, and these siblings are not booked.
func TestLyingKeepers(t *testing.T) {
	const lookups, share = 3200, 0.125
	names := func(rate float64) func(truth []Candidate) ([]Candidate, error) {
		return func([]Candidate) (all []Candidate, _ error) {
			for _, p := range []string{"p0", "p1", "p2"} {
				all = append(all, Candidate{Peer: p, Service: p, FalsePositiveRate: rate})
			}
			return all, nil
		}
	}
	for name, says := range map[string]func([]Candidate) ([]Candidate, error){
		"the truth":              nil,
		"everybody":              names(0.001),
		"everybody, at 1/16":     names(1.0 / 16),
		"everybody, at any rate": names(1),
		"nobody":                 func([]Candidate) ([]Candidate, error) { return nil, nil },
	} {
		for _, between := range []time.Duration{5 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprint(name, ", a miss every ", between), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newKeeping(t, &keeper{insider.Keeper{Name: "a", Near: true}, 20 * time.Millisecond, nil},
						&keeper{insider.Keeper{Name: "b", Near: true}, 20 * time.Millisecond, nil},
						&keeper{insider.Keeper{Name: "liar", Near: true}, time.Millisecond, says})
					for i := range 2 {
						has := some(share, uint64(i))
						w.add(claimant{rate: 0.001, claims: has, has: has})
					}
					w.add(claimant{rate: 0.001, claims: none, has: none}) // the liar, as a sibling
					w.misses(lookups, between)
					held, requests := 0, 0
					for key := range uint64(lookups) {
						if w.list[0].has(key) || w.list[1].has(key) {
							held++
						}
					}
					for _, c := range w.list {
						requests += c.asked
					}
					wrong := requests - w.hits
					t.Logf("%d of %d found, %d false requests in %d misses, booked %d and %d; %d questions; judged %v; mistrusted %v", w.hits, held,
						wrong, lookups-held, w.booked("p0", "p1"), w.booked("p2"), len(w.asked), w.judged, w.blamed)
					if wrong > 100 || w.booked("p0", "p1") > 0 {
						t.Errorf("%d false requests, of which %d are booked on the honest; want at most 100, and none", wrong, w.booked("p0", "p1"))
					}
					if w.hits < held*90/100 || len(w.asked) > lookups*115/100 {
						t.Errorf("%d of %d found by %d questions for %d lookups", w.hits, held, len(w.asked), lookups)
					}
					if liar := w.blamed["liar"]; (liar > 0) != (says != nil) || len(w.blamed) > min(liar, 1) {
						t.Errorf("mistrusted: %v", w.blamed)
					}
				})
			})
		}
	}
}

// TestLyingDigestOfTwoKeepers: if keepers agree about a sibling that lacks what it is named for, its digest lies, and not they.
func TestLyingDigestOfTwoKeepers(t *testing.T) {
	for keepers := range 3 {
		synctest.Test(t, func(t *testing.T) {
			var all []*keeper
			for i := range keepers + 1 {
				all = append(all, &keeper{insider.Keeper{Name: fmt.Sprint("k", i)}, time.Millisecond, nil})
			}
			w := newKeeping(t, all...)
			w.add(claimant{rate: 0.001, claims: func(k uint64) bool { return true }, has: none})
			w.misses(3000, 5*time.Millisecond)
			if p := w.list[0]; p.asked > 100 || w.booked("p0") < trustAtFirst || len(w.blamed) > 0 {
				t.Errorf("with %d keepers: asked %d times, %d false hits booked, mistrusted %v", keepers+1, p.asked, w.booked("p0"), w.blamed)
			}
		})
	}
}

// TestOrderOfKeepers: keepers of the own zone go first, however slow; those that do not answer, or lack digests, after others; and
// when none answers, lookups wait for nobody.
func TestOrderOfKeepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far, other := &keeper{Keeper: insider.Keeper{Name: "near", Near: true}, trip: 30 * time.Millisecond},
			&keeper{Keeper: insider.Keeper{Name: "far"}, trip: time.Millisecond}, &keeper{Keeper: insider.Keeper{Name: "other"}, trip: 40 * time.Millisecond}
		w := newKeeping(t, other, far, near)
		w.add(claimant{claims: all, has: all})
		lookup := func(when string, want ...string) {
			t.Helper()
			w.asked = nil
			w.miss(t, 1)
			if !slices.Equal(w.asked, want) {
				t.Errorf("%s: asked %v, want %v", when, w.asked, want)
			}
		}
		for range 5 {
			lookup("at rest", "near")
		}
		near.says = func([]Candidate) ([]Candidate, error) { return nil, insider.ErrNotYet }
		w.asked = nil
		w.miss(t, 1)
		if len(w.asked) != 2 || w.asked[0] != "near" {
			t.Errorf("with one that has not all digests: asked %v", w.asked)
		}
		near.says = nil
		w.miss(t, 2) // the second of the others is measured
		far.trip, other.trip = time.Millisecond, 2*time.Millisecond
		time.Sleep(time.Second)
		lookup("half a second later", "near")
		near.trip, far.trip, other.trip = time.Hour, time.Hour, time.Hour
		start := time.Now()
		for i := range uint64(50) {
			w.miss(t, i)
		}
		if waited := time.Since(start) - 50*originTrip; waited > 10*askTimeout {
			t.Errorf("50 lookups waited %v for keepers that have all died", waited)
		}
		near.trip = time.Millisecond
		time.Sleep(lastSuspension)
		lookup("when it answers again", "near")
	})
}

// TestQuestionEndsWithItsRequest: a question that nobody waits for any more says nothing about a keeper.
func TestQuestionEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newKeeping(t, &keeper{Keeper: insider.Keeper{Name: "k"}, trip: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if found, denied := w.client.ask(&LookupRequest{Identities: []string{"1"}, Context: ctx}); len(found) != 1 || found[0] != nil || denied != "" {
			t.Errorf("found %v, denied by %q", found, denied)
		}
		if r, _ := w.client.cfg.Health.look("k"); r.silence.Row != 0 || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%+v", r.silence)
		}
	})
}
