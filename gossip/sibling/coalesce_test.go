package sibling

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/internal/wire"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/peering"
)

// A cluster passes requests to the handlers of its peers.
type crew struct {
	names      []string
	coalescers map[string]*coalescer // by address, which is the name and a port
	broken     bool
	late       time.Duration // by which answers are
}

func newCrew(peers int) *crew {
	c := &crew{coalescers: make(map[string]*coalescer)}
	for i := range peers {
		c.names = append(c.names, fmt.Sprint("p", i))
	}
	for _, name := range c.names {
		c.coalescers[name+":80"] = NewCoalescer(peering.CoalescerConfig{Name: name, HTTP: c,
			Key: func(identity string) uint64 { return uint64(len(identity)) * 0x9e3779b97f4a7c15 },
			Others: func() (list []Peer) {
				for _, other := range c.names {
					if other != name {
						list = append(list, Peer{Name: other, Addr: other + ":80"})
					}
				}
				return list
			}}, new(Health)).(*coalescer)
	}
	return c
}

func (c *crew) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.broken {
		return nil, errors.New("broken")
	}
	select {
	case <-r.Context().Done():
		time.Sleep(time.Millisecond) // a busy machine notices it late
		return nil, r.Context().Err()
	case <-time.After(c.late):
	}
	rec := httptest.NewRecorder()
	c.coalescers[r.URL.Host].ServeHTTP(rec, r)
	return rec.Result(), nil
}

func (c *crew) fetching(name, identity string) string {
	got, ok := c.coalescers[name+":80"].InFlight(context.Background(), identity, 0)
	if ok != (got.Name != "") || ok && got.Addr != got.Name+":80" {
		return fmt.Sprintf("%+v, %v", got, ok)
	}
	return got.Name
}

// For a while the owner names the first peer to all others, and nobody to the first, whichever peer
// the owner is.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(5)
		identity := ""
		for range 50 {
			identity += "x"
			for i, want := range []string{"", "p0", "p0", "p0", "p0"} {
				if got := c.fetching(c.names[i], identity); got != want {
					t.Fatalf("p%d is told of %q, want %q", i, got, want)
				}
			}
			if got := c.fetching("p0", identity); got != "" {
				t.Errorf("p0 is told of %q, want nobody", got)
			}
		}
		time.Sleep(fetchWait + coalesceFor)
		if got := c.fetching("p3", identity); got != "" {
			t.Errorf("told of %q, which is long ago", got)
		}
		if got := c.fetching("p0", identity); got != "p3" {
			t.Errorf("told of %q, want p3", got)
		}
	})
}

// TestOwnersOfProtocol: the owners are those of PROTOCOL.md, section 14, and the message is as long as
// it says.
func TestOwnersOfProtocol(t *testing.T) {
	doc, err := os.ReadFile("../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(4)
		c.names = c.names[1:] // p1, p2 and p3
		rows := regexp.MustCompile("(?m)^\\| `([0-9a-f]{16})` \\| `(p[123])` \\|$").FindAllSubmatch(doc, -1)
		if len(rows) != 3 {
			t.Errorf("PROTOCOL.md has %d owners, want 3", len(rows))
		}
		for _, row := range rows {
			key, _ := strconv.ParseUint(string(row[1]), 16, 64)
			if owner, ok := c.coalescers["p1:80"].owner(key); owner.Name != string(row[2]) || !ok {
				t.Errorf("owner(%x) = %v, %v, want %s", key, owner.Name, ok, row[2])
			}
		}
		const longest = 64
		var sent *http.Request
		one := c.coalescers["p1:80"]
		one.cfg.HTTP = roundTripper(func(r *http.Request) (*http.Response, error) { sent = r; return c.RoundTrip(r) })
		for _, fetch := range []time.Duration{0, time.Hour} {
			if _, err := one.ask(t.Context(), Peer{Name: "p2", Addr: "p2:80"}, math.MaxUint64, fetch); err != nil {
				t.Fatal(err)
			}
			if got := sent.URL.RequestURI(); len(got) > longest || fetch > 0 && len(got) < longest-1 {
				t.Errorf("%q has %d bytes, want at most %d", got, len(got), longest)
			}
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Keys are spread over the members. When a member leaves, only its own keys change their owner.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, peers = 10_000, 10
		c := newCrew(peers)
		one := c.coalescers["p0:80"]
		before, count := make([]string, keys), make(map[string]int)
		for k := range keys {
			owner, _ := one.owner(wire.Mix(uint64(k)))
			before[k] = owner.Name
			count[owner.Name]++
		}
		sigma := math.Sqrt(keys / peers * (1 - 1.0/peers))
		for name, n := range count {
			if math.Abs(float64(n-keys/peers)) > 5*sigma {
				t.Errorf("%s owns %d keys of %d", name, n, keys)
			}
		}
		c.names = c.names[:peers-1]
		time.Sleep(membersFor)
		for k := range keys {
			if owner, _ := one.owner(wire.Mix(uint64(k))); owner.Name != before[k] && before[k] != "p9" {
				t.Fatalf("key %d has gone from %s to %s", k, before[k], owner.Name)
			}
		}
	})
}

// BenchmarkOwner measures finding the owner of a key among many members.
func BenchmarkOwner(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint("members=", n), func(b *testing.B) {
			o := make(owners, n)
			for i := range o {
				o[i].hash = wire.Mix(uint64(i))
			}
			for key := uint64(0); b.Loop(); key++ {
				o.of(key)
			}
		})
	}
}

// An owner that does not answer delays a request only briefly.
func TestOwnerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(2)
		c.broken = true
		one := c.coalescers["p0:80"]
		for range 200 {
			if got := c.fetching("p0", "x"); got != "" {
				t.Errorf("told of %q", got)
			}
			if got := c.fetching("p1", "x"); got != "" {
				t.Errorf("told of %q", got)
			}
		}
		if asked := one.asked.Load() + c.coalescers["p1:80"].asked.Load(); asked != 201 {
			t.Errorf("asked %d times, want once and 200 times at the owner", asked)
		}
		c.broken = false
		time.Sleep(fetchWait + coalesceFor)
		c.fetching("p0", "x")
		if got := c.fetching("p1", "x"); got != "p0" {
			t.Errorf("then told of %q", got)
		}
	})
}

// An owner that is late once is asked again. One that is late three times is left alone for a while.
func TestOwnerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(2)
		asker, asks := c.coalescers["p0:80"], 0
		for key := uint64(1); asks < 7; key++ {
			if owner, _ := asker.owner(key); owner.Name == "p0" {
				continue
			}
			asker.cfg.Key = func(string) uint64 { return key }
			c.late = 0
			if asks == 1 || asks >= 4 {
				c.late = time.Second
			}
			before := asker.sent.Load()
			asker.InFlight(t.Context(), "x", time.Second)
			if asker.sent.Load() == before {
				t.Errorf("the owner is not asked the %d. time", asks+1)
			}
			asks++
		}
		if asker.health.Of("p1").Suspended {
			t.Error("an owner that is late three times in a row is suspended as a sibling")
		}
		leftAlone := func() bool {
			for key := uint64(1); ; key++ {
				if owner, ok := asker.owner(key); owner.Name == "p1" {
					return !ok
				}
			}
		}
		if !leftAlone() {
			t.Error("an owner that is late three times in a row is asked again at once")
		}
		if time.Sleep(4 * firstSuspension); leftAlone() {
			t.Errorf("it is left alone for longer than %v", 4*firstSuspension)
		}
	})
}

// An owner that is suspended as a sibling is not asked, and one that fails is suspended as a
// sibling.
func TestOwnersHealthIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(2)
		ownerOf := func(name string) bool {
			_, ok := c.coalescers[name+":80"].owner(c.coalescers["p0:80"].cfg.Key("x"))
			return ok
		}
		for name, other := range map[string]string{"p0": "p1", "p1": "p0"} {
			h := c.coalescers[name+":80"].health
			h.record(outcome{peer: other, kind: question, result: failed})
			best, _ := c.coalescers[name+":80"].owner(c.coalescers["p0:80"].cfg.Key("x"))
			if ownerOf(name) != (best.Name == name) {
				t.Errorf("%s would ask %s, which is suspended", name, best.Name)
			}
		}
		time.Sleep(time.Second)
		c.broken = true
		c.fetching("p0", "x")
		c.fetching("p1", "x")
		if c.coalescers["p0:80"].health.Of("p1").Suspended == c.coalescers["p1:80"].health.Of("p0").Suspended {
			t.Error("of two, not just the one that asked the other in vain suspends it")
		}
	})
}

// An owner that does not know yet that this peer has joined refuses to answer. It stays a sibling.
func TestOwnerKnowsNothingOfNewcomer(t *testing.T) {
	for status, suspended := range map[int]bool{http.StatusNoContent: false, http.StatusForbidden: false, http.StatusInternalServerError: true} {
		c := newCrew(2)
		asker, key := c.coalescers["p0:80"], uint64(1)
		for owner, _ := asker.owner(key); owner.Name != "p1"; owner, _ = asker.owner(key) {
			key++
		}
		asker.cfg.Key = func(string) uint64 { return key }
		switch status {
		case http.StatusForbidden:
			c.coalescers["p1:80"].cfg.Others = func() []Peer { return nil }
		case http.StatusInternalServerError:
			asker.cfg.HTTP = roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: status, Status: "500 Internal Server Error", Body: http.NoBody}, nil
			})
		}
		got := c.fetching("p0", "x")
		if now := asker.health.Of("p1").Suspended; got != "" || now != suspended || asker.sent.Load() != 1 {
			t.Errorf("an owner that answers %d: InFlight() = %q, suspended: %v, want none and %v; %d messages", status, got, now, suspended, asker.sent.Load())
		}
	}
}

func TestCoalescerAlone(t *testing.T) {
	c := newCrew(1)
	if got := c.fetching("p0", "x"); got != "" || c.coalescers["p0:80"].asked.Load() != 0 {
		t.Errorf("told of %q", got)
	}
}

// Strangers get no answer, and have no effect.
func TestCoalescerForMembersOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		via, query string
		admit      error
		want       int
	}{
		"a member":       {"1.1 p1", "key=ff", nil, 204},
		"an impostor":    {"1.1 p1", "key=ff", errors.New("no"), 403},
		"a stranger":     {"1.1 edge", "key=ff", nil, 403},
		"nobody":         {"", "key=ff", nil, 403},
		"itself":         {"1.1 p0", "key=ff", nil, 403},
		"no key":         {"1.1 p1", "", nil, 403},
		"a key too long": {"1.1 p1", "key=11111111111111111", nil, 403},
	} {
		c := newCrew(2).coalescers["p0:80"]
		c.cfg.Admit = func(*http.Request, string) error { return tt.admit }
		r := httptest.NewRequest("GET", peering.CoalescePath+"?"+tt.query, nil)
		r.Header.Set("Via", tt.via)
		rec := httptest.NewRecorder()
		if c.ServeHTTP(rec, r); rec.Code != tt.want || (len(c.first) == 1) != (tt.want == 204) {
			t.Errorf("%s: %d, %d entries", name, rec.Code, len(c.first))
		}
	}
}

// An owner remembers a fetch until it is expected to have ended and its digest to have spread, but
// not beyond an invalidation of the object.
func TestOwnersMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		fetch, after time.Duration
		invalidates  invalidation.Target
		want         string
	}{
		"of unknown time":                  {0, fetchWait + coalesceFor - 1, invalidation.Target{}, "p1"},
		"of unknown time, later":           {0, fetchWait + coalesceFor, invalidation.Target{}, ""},
		"a slow one":                       {4 * time.Second, 9 * time.Second, invalidation.Target{}, "p1"},
		"a slow one, later":                {4 * time.Second, 10 * time.Second, invalidation.Target{}, ""},
		"one that takes too long":          {time.Hour, peering.MaxWait + coalesceFor, invalidation.Target{}, ""},
		"invalidated":                      {0, 0, invalidation.Target{Kind: invalidation.Identity, Name: "x"}, ""},
		"invalidated by prefix":            {0, 0, invalidation.Target{Kind: invalidation.Prefix, Name: "a"}, ""},
		"when something else is, the same": {0, 0, invalidation.Target{Kind: invalidation.Identity, Name: "long"}, "p1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(3)
				for _, one := range c.coalescers {
					one.InFlight(t.Context(), "", tt.fetch) // so that all know a round trip
				}
				c.coalescers["p1:80"].InFlight(t.Context(), "x", tt.fetch)
				time.Sleep(tt.after)
				for _, one := range c.coalescers {
					if tt.invalidates.Kind != 0 {
						one.Invalidated(tt.invalidates, 0)
					}
				}
				if got := c.fetching("p2", "x"); got != tt.want {
					t.Errorf("told of %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// The memory of an owner is bounded, and expired entries make room.
func TestCoalescerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(2).coalescers["p0:80"]
		for k := range maxInFlight + 1000 {
			c.enter(uint64(k), "p1", 0)
		}
		if len(c.first) != maxInFlight {
			t.Errorf("%d entries", len(c.first))
		}
		time.Sleep(fetchWait + coalesceFor)
		c.enter(1<<40, "p1", 0)
		if got := c.enter(1<<40, "p2", 0); got != "p1" || len(c.first) != 1 {
			t.Errorf("told of %q; %d entries", got, len(c.first))
		}
	})
}

// Owners are asked only while that pays. It pays again when others turn out to fetch the same
// objects.
func TestOwnersAreAskedWhileItPays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrew(2)
		c, other := w.coalescers["p0:80"], w.coalescers["p1:80"]
		first := "" // the peer that has fetched everything before
		const rounds = 1000
		asks := func() (n uint64) {
			before := c.asked.Load()
			for i := range rounds {
				key := uint64(i) * 0x9e3779b97f4a7c15
				c.cfg.Key = func(string) uint64 { return key }
				if first != "" {
					other.enter(key, first, 0)
				}
				if owner, _ := c.owner(key); owner.Name == "p0" {
					continue // costs no message
				}
				c.InFlight(t.Context(), fmt.Sprint(i), 20*time.Millisecond)
			}
			return c.asked.Load() - before
		}
		if n := asks(); n < 32 || n > 100 {
			t.Errorf("asked %d owners of which none knew of anybody", n)
		}
		if n := asks(); n < 1 || n > rounds/yieldProbe {
			t.Errorf("then still asked %d", n)
		}
		everything := invalidation.Target{Kind: invalidation.Everything}
		c.Invalidated(everything, 100)
		c.Invalidated(everything, 50)
		if n := asks(); n < 150 || n > 150+rounds/yieldProbe {
			t.Errorf("asked %d after 150 objects were removed everywhere, want 150 and some", n)
		}
		c.Invalidated(everything, 150)
		time.Sleep(removedFor)
		if n := asks(); n > rounds/yieldProbe {
			t.Errorf("asked %d after 150 objects were removed a minute ago", n)
		}
		first = "p1"
		if n := asks(); n < rounds/4 {
			t.Errorf("asked %d after others had fetched the same", n)
		}
	})
}
