package crowd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// A cluster carries requests to its peers' handlers.
type cluster struct {
	names  []string
	crowds map[string]*Crowd // by address, which is the name and a port
	broken bool
}

func newCluster(peers int) *cluster {
	c := &cluster{crowds: make(map[string]*Crowd)}
	for i := range peers {
		c.names = append(c.names, fmt.Sprint("p", i))
	}
	for _, name := range c.names {
		c.crowds[name+":80"] = New(Config{Name: name, HTTP: c, Wait: time.Second, Health: &sibling.Health{},
			Key: func(identity string) uint64 { return uint64(len(identity)) * 0x9e3779b97f4a7c15 },
			Others: func() (list []Member) {
				for _, other := range c.names {
					if other != name {
						list = append(list, Member{other, other + ":80"})
					}
				}
				return list
			}})
	}
	return c
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.broken {
		return nil, errors.New("broken")
	}
	rec := httptest.NewRecorder()
	c.crowds[r.URL.Host].ServeHTTP(rec, r)
	return rec.Result(), nil
}

func (c *cluster) fetching(name, identity string) string {
	got, ok := c.crowds[name+":80"].Fetching(context.Background(), identity)
	if ok != (got.Peer != "") || ok && (got.Addr != got.Peer+":80" || got.Wait != time.Second) {
		return fmt.Sprintf("%+v, %v", got, ok)
	}
	return got.Peer
}

// The first to ask is told of nobody, the others of the first, for a while,
// whoever the home is.
func TestFetching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(5)
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
		time.Sleep(Remember)
		if got := c.fetching("p3", identity); got != "" {
			t.Errorf("told of %q, which is long ago", got)
		}
		if got := c.fetching("p0", identity); got != "p3" {
			t.Errorf("told of %q, want p3", got)
		}
	})
}

// Keys are spread over the members, and only a member's own change their home when
// it goes.
func TestHomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, peers = 10_000, 10
		c := newCluster(peers)
		one := c.crowds["p0:80"]
		before, count := make([]string, keys), make(map[string]int)
		for k := range keys {
			home, _ := one.home(mix(uint64(k)))
			before[k] = home.Name
			count[home.Name]++
		}
		sigma := math.Sqrt(keys / peers * (1 - 1.0/peers))
		for name, n := range count {
			if math.Abs(float64(n-keys/peers)) > 5*sigma {
				t.Errorf("%s is home to %d keys of %d", name, n, keys)
			}
		}
		c.names = c.names[:peers-1]
		time.Sleep(membersFor)
		for k := range keys {
			if home, _ := one.home(mix(uint64(k))); home.Name != before[k] && before[k] != "p9" {
				t.Fatalf("key %d has gone from %s to %s", k, before[k], home.Name)
			}
		}
	})
}

// A home that does not answer holds nobody up for long.
func TestHomeIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2)
		c.broken = true
		one := c.crowds["p0:80"]
		for range 200 {
			if got := c.fetching("p0", "x"); got != "" {
				t.Errorf("told of %q", got)
			}
			if got := c.fetching("p1", "x"); got != "" {
				t.Errorf("told of %q", got)
			}
		}
		if asked := one.Asked.Load() + c.crowds["p1:80"].Asked.Load(); asked != 201 {
			t.Errorf("asked %d times, want once and 200 times at home", asked)
		}
		c.broken = false
		time.Sleep(Remember)
		c.fetching("p0", "x")
		if got := c.fetching("p1", "x"); got != "p0" {
			t.Errorf("then told of %q", got)
		}
	})
}

// A home that is suspended as a sibling is not asked, and one that fails is suspended as
// a sibling.
func TestHealthIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2)
		homeOf := func(name string) bool {
			_, ok := c.crowds[name+":80"].home(c.crowds["p0:80"].cfg.Key("x"))
			return ok
		}
		for name, other := range map[string]string{"p0": "p1", "p1": "p0"} {
			h := c.crowds[name+":80"].cfg.Health
			h.Asked(other, 0, errors.New("refused"))
			best, _ := c.crowds[name+":80"].home(c.crowds["p0:80"].cfg.Key("x"))
			if homeOf(name) != (best.Name == name) {
				t.Errorf("%s would ask %s, which is suspended", name, best.Name)
			}
		}
		time.Sleep(time.Second)
		c.broken = true
		c.fetching("p0", "x")
		c.fetching("p1", "x")
		if c.crowds["p0:80"].cfg.Health.Of("p1").Suspended == c.crowds["p1:80"].cfg.Health.Of("p0").Suspended {
			t.Error("of two, not just the one that asked the other in vain suspends it")
		}
	})
}

func TestAlone(t *testing.T) {
	c := newCluster(1)
	if got := c.fetching("p0", "x"); got != "" || c.crowds["p0:80"].Asked.Load() != 0 {
		t.Errorf("told of %q", got)
	}
}

// Strangers are told nothing, and can say nothing.
func TestForMembersOnly(t *testing.T) {
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
		c := newCluster(2).crowds["p0:80"]
		c.cfg.Admit = func(*http.Request, string) error { return tt.admit }
		r := httptest.NewRequest("GET", Path+"?"+tt.query, nil)
		r.Header.Set("Via", tt.via)
		rec := httptest.NewRecorder()
		if c.ServeHTTP(rec, r); rec.Code != tt.want || (len(c.first) == 1) != (tt.want == 204) {
			t.Errorf("%s: %d, %d entries", name, rec.Code, len(c.first))
		}
	}
}

// A home's memory is bounded, and what has run out makes room.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(2).crowds["p0:80"]
		for k := range maxEntries + 1000 {
			c.enter(uint64(k), "p1")
		}
		if len(c.first) != maxEntries {
			t.Errorf("%d entries", len(c.first))
		}
		time.Sleep(Remember)
		c.enter(1<<40, "p1")
		if got := c.enter(1<<40, "p2"); got != "p1" || len(c.first) != 1 {
			t.Errorf("told of %q; %d entries", got, len(c.first))
		}
	})
}
