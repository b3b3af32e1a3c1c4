package gossip

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/memnet"
)

func exactly(name string) invalidation.Target {
	return invalidation.Target{Kind: invalidation.Identity, Name: name}
}

// heard records the invalidations that a node gets.
type heard struct {
	mu  sync.Mutex
	all []string
}

func listenTo(n *Node) *heard {
	h := new(heard)
	n.OnInvalidation(func(t invalidation.Target) {
		h.mu.Lock()
		h.all = append(h.all, t.String())
		h.mu.Unlock()
	})
	return h
}

func (h *heard) has(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.all, name)
}

// TestInvalidateReachesAll: in a healthy cluster every member has applied an invalidation within a
// second, whichever member made it, even if there are many. Package invalidation has the same test for
// a hundred members.
func TestInvalidateReachesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 8
		c := newCluster(t)
		c.net.SetConditions(memnet.Conditions{Latency: 2 * time.Millisecond})
		defer c.close()
		c.startMany(size)
		time.Sleep(10 * time.Second)
		all := make(map[string]*heard)
		for name, n := range c.nodes {
			all[name] = listenTo(n)
		}
		worst := time.Duration(0)
		for round := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begun := time.Now()
			var both sync.WaitGroup
			for _, from := range []int{1 + round%size, 1 + (round+size/2)%size} {
				n := c.nodes[fmt.Sprintf("p%d", from)]
				both.Go(func() {
					if err := n.Invalidate(ctx, exactly(fmt.Sprint(n.Name(), "/", round)), exactly("both")); err != nil {
						t.Error(err)
					}
					for name, h := range all {
						if !h.has(fmt.Sprint(n.Name(), "/", round)) {
							t.Errorf("%s has not got the invalidation", name)
						}
					}
				})
			}
			both.Wait()
			cancel()
			worst = max(worst, time.Since(begun))
		}
		agreed := make(map[string]int64)
		for name, n := range c.nodes {
			agreed[name] = n.Stats().Exchange.Agreed
		}
		time.Sleep(time.Minute)
		for name, n := range c.nodes { // their sums have the invalidations
			if s := n.Stats().Exchange; s.Agreed == agreed[name] {
				t.Errorf("%s has had the same sum as another peer %d times, and not once since", name, s.Agreed)
			}
		}
		t.Logf("at most %v", worst)
		var pushes int64
		for _, n := range c.nodes {
			s := n.Stats()
			pushes += s.Invalidations.PushesOut
			if s.Invalidations.Bad+s.Invalidations.Everything > 0 || s.Out.Invalidations == 0 {
				t.Errorf("Stats = %+v", s.Invalidations)
			}
		}
		if want := int64(40 * (size - 1)); pushes != want { // two targets in one datagram
			t.Errorf("%d pushes for 40 calls, want %d", pushes, want)
		}
	})
}

// TestInvalidateNamesWhoIsMissing: the error of a call that cannot wait names the members.
func TestInvalidateNamesWhoIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(3)
		time.Sleep(3 * time.Second)
		h := listenTo(c.nodes["p2"])
		c.net.Partition([]string{c.ips["p1"], c.ips["p3"]}, []string{c.ips["p2"]})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.nodes["p1"].Invalidate(ctx, exactly("x"))
		var missing *UnreachedError
		if !errors.As(err, &missing) || !slices.Equal(missing.Members, []string{"p2"}) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Invalidate = %v", err)
		}
		// A call that waits longer returns when the member is declared dead.
		if err := c.nodes["p1"].Invalidate(t.Context(), exactly("y")); err != nil {
			t.Error(err)
		}
		c.net.Heal()
		within(t, 30*time.Second, func() error {
			if !h.has("x") || !h.has("y") {
				return errors.New("p2 has not got the invalidations since")
			}
			return nil
		})
		if err := c.nodes["p1"].Invalidate(t.Context(), invalidation.Target{}); err == nil || !strings.Contains(err.Error(), "kind 0") {
			t.Errorf("Invalidate of nothing = %v", err)
		}
		c.nodes["p3"].Close()
		if err := c.nodes["p3"].Invalidate(t.Context(), exactly("x")); err != ErrClosed {
			t.Errorf("Invalidate at a closed node = %v", err)
		}
	})
}

// TestJoinHearsOfInvalidations: when Join returns, the earlier invalidations are known, including those
// by members that are dead by now.
func TestJoinHearsOfInvalidations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(3)
		time.Sleep(3 * time.Second)
		for i := range 2000 {
			if err := c.nodes["p3"].Invalidate(t.Context(), exactly(fmt.Sprint("x", i)), exactly(strings.Repeat("long", 1000))); err != nil {
				t.Fatal(err)
			}
		}
		c.kill("p3")
		cfg := c.config("p4", "10.0.0.4")
		cfg.Join = []string{"10.0.0.2:7946"}
		cfg.HeldSince = time.Now().Add(-time.Minute)
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes["p4"], c.ips["p4"] = n, "10.0.0.4"
		h := listenTo(n)
		if err := n.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !h.has("x0") || !h.has("x1999") || h.has("everything") {
			t.Errorf("Join returned after %d invalidations, before the last", len(h.all))
		}
		ids, ok := n.Concerning("x7")
		if len(ids) != 1 || !ok || !c.nodes["p1"].Applied(ids...) || c.nodes["p1"].Applied(invalidation.ID{Log: ids[0].Log, Sequence: 1 << 40}) {
			t.Errorf("Concerning = %v, %v", ids, ok)
		}
	})
}

// TestAwayForTooLong: a member that was cut off while an invalidation came that is forgotten since is no
// candidate for a minute, since requests do not name the invalidation any more. Without one it is a
// candidate at once.
func TestAwayForTooLong(t *testing.T) {
	for name, tt := range map[string]struct {
		away        time.Duration
		invalidates bool
		want        bool // a candidate at once
	}{
		"forgotten":  {61 * time.Minute, true, false},
		"remembered": {20 * time.Minute, true, true},
		"none":       {10 * time.Minute, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				defer c.close()
				c.startMany(2)
				away := c.nodes["p2"]
				away.Holdings().Add("x")
				time.Sleep(5 * time.Second)
				is := func() bool { return len(c.nodes["p1"].Candidates(nil, "x")) == 1 }
				if !is() {
					t.Fatal("p2 is no candidate")
				}
				c.net.Partition([]string{c.ips["p1"]}, []string{c.ips["p2"]})
				time.Sleep(time.Minute)
				if is() {
					t.Fatal("p2 is a candidate while it is cut off")
				}
				if tt.invalidates {
					if err := c.nodes["p1"].Invalidate(t.Context(), exactly("x")); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(tt.away)
				c.net.Heal()
				alive := func() error {
					if m := c.nodes["p1"].Members(); len(m) == 0 || !m[0].Alive {
						return errors.New("p1 does not know that p2 is back")
					}
					return nil
				}
				within(t, time.Minute, alive)
				synctest.Wait() // until the index has its digest again
				if is() != tt.want {
					t.Errorf("as soon as p2 is back it is a candidate: %v, want %v", is(), tt.want)
				}
				time.Sleep(doubtfulFor - 10*time.Second)
				if is() != tt.want {
					t.Errorf("50 s later it is a candidate: %v, want %v", is(), tt.want)
				}
				time.Sleep(15 * time.Second)
				if !is() {
					t.Error("65 s later it is no candidate")
				}
			})
		})
	}
}

// A copier is a cache of one object, which it fetches from the others or the origin, as package sibling
// does.
type copier struct {
	n    *Node
	mu   sync.Mutex
	held bool
	v    int // version held
	era  int // how often it was invalidated
}

// world of copiers: the origin's version is whole.
type copiers struct {
	mu     sync.Mutex
	origin int
	all    map[string]*copier
}

func (w *copiers) attach(n *Node) *copier {
	c := &copier{n: n}
	n.OnInvalidation(func(invalidation.Target) {
		c.mu.Lock()
		c.held, c.era = false, c.era+1
		c.mu.Unlock()
	})
	w.mu.Lock()
	w.all[n.Name()] = c
	w.mu.Unlock()
	return c
}

// get returns the version that a client gets at c.
func (w *copiers) get(c *copier, r *rand.Rand) int {
	c.mu.Lock()
	held, v, era := c.held, c.v, c.era
	c.mu.Unlock()
	if held {
		return v
	}
	ids, ok := c.n.Concerning("x")
	v = -1
	w.mu.Lock()
	var others []*copier
	for _, name := range slices.Sorted(maps.Keys(w.all)) {
		if o := w.all[name]; o != c && r.IntN(2) == 0 {
			others = append(others, o)
		}
	}
	w.mu.Unlock()
	time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond) // a question's way
	for _, o := range others {
		o.mu.Lock()
		if o.held && ok && o.n.Applied(ids...) {
			v = o.v
		}
		o.mu.Unlock()
	}
	if v < 0 {
		w.mu.Lock()
		v = w.origin
		w.mu.Unlock()
	}
	time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond) // and the way back
	c.mu.Lock()
	if c.era == era {
		c.held, c.v = true, v
	}
	c.mu.Unlock()
	return v
}

// TestNothingOldComesBack checks the guarantee under loss, partitions and restarts: after an invalidation
// is acknowledged, no member that was alive and reachable serves an older object; after a split has
// ended, no member does.
func TestNothingOldComesBack(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { nothingOldComesBack(t, seed) })
		})
	}
}

func nothingOldComesBack(t *testing.T, seed uint64) {
	const size = 6
	r := rand.New(rand.NewPCG(seed, 15))
	c := newCluster(t)
	defer c.close()
	c.net.SetConditions(memnet.Conditions{Latency: 2 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.3})
	w := &copiers{all: make(map[string]*copier)}
	start := func(i int) {
		cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
		cfg.detect.suspicion = 8 // a third of all probes is lost
		for j := 1; j <= size; j++ {
			if j != i {
				cfg.Join = append(cfg.Join, fmt.Sprintf("10.0.0.%d:7946", j))
			}
		}
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.nodes[cfg.Name], c.ips[cfg.Name] = n, fmt.Sprintf("10.0.0.%d", i)
		w.attach(n)
		_ = n.Join(t.Context()) // the first finds nobody
	}
	for i := 1; i <= size; i++ {
		start(i)
	}
	whole := func() error {
		for name, n := range c.nodes {
			if s := n.Stats(); s.Peers != size-1 {
				return fmt.Errorf("%s knows %d peers", name, s.Peers)
			}
		}
		return nil
	}
	within(t, 2*time.Minute, whole)

	// Clients send requests all the time. Each answer is compared with the version that had been
	// acknowledged when the request was sent.
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var floor struct {
		sync.Mutex
		of map[string]int // least version that a member may give
	}
	floor.of = make(map[string]int)
	for i := range 3 * size {
		name, seed := fmt.Sprintf("p%d", 1+i%size), r.Uint64()
		clients.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(r.IntN(40)) * time.Millisecond):
				}
				w.mu.Lock()
				at := w.all[name]
				w.mu.Unlock()
				floor.Lock()
				least := floor.of[name]
				floor.Unlock()
				if at == nil {
					continue // it is dead
				}
				if v := w.get(at, r); v < least {
					t.Errorf("%s gave version %d, and %d had been acknowledged", name, v, least)
				}
			}
		})
	}
	// write is a write at p: the origin gets it, then p invalidates the object. With a loss of 30 %, p
	// declares a live member dead in one run of a hundred, and does not wait for it, since it cannot be
	// reached.
	write := func(p string, reached ...string) {
		w.mu.Lock()
		w.origin++
		v := w.origin
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := c.nodes[p].Invalidate(ctx, exactly("x"))
		var missing *UnreachedError
		if err != nil && !errors.As(err, &missing) {
			t.Error(err)
		}
		members := *c.nodes[p].members.Load()
		lives := func(name string) bool {
			m := members[name]
			return name == p || m != nil && m.up.Load()
		}
		floor.Lock()
		defer floor.Unlock()
		for _, name := range reached {
			if lives(name) && (missing == nil || !slices.Contains(missing.Members, name)) {
				floor.of[name] = max(floor.of[name], v)
			}
		}
	}
	everybody := []string{"p1", "p2", "p3", "p4", "p5", "p6"}
	for range 20 {
		write(everybody[r.IntN(size)], everybody...)
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	}
	// A split: each side writes, and gets its own invalidations.
	left, right := everybody[:3], everybody[3:]
	ipsOf := func(names []string) (ips []string) {
		for _, name := range names {
			ips = append(ips, c.ips[name])
		}
		return ips
	}
	c.net.Partition(ipsOf(left), ipsOf(right))
	for range 4 {
		write(left[r.IntN(3)], left...)
		write(right[r.IntN(3)], right...)
	}
	// A member that wrote on the right dies there. Its log must still reach all others when the split has
	// ended.
	write("p6", right...)
	w.mu.Lock()
	delete(w.all, "p6")
	w.mu.Unlock()
	c.net.Host(c.ips["p6"]).Kill()
	c.nodes["p6"].Close()
	w.mu.Lock()
	last := w.origin
	w.mu.Unlock()
	floor.Lock()
	delete(floor.of, "p6")
	floor.Unlock()
	time.Sleep(20 * time.Second)
	c.net.Heal()
	start(6)
	within(t, 2*time.Minute, whole)
	synctest.Wait()
	time.Sleep(3 * time.Second) // see the comparison of sums
	floor.Lock()
	for _, name := range everybody {
		floor.of[name] = last
	}
	floor.Unlock()
	for range 10 {
		write(everybody[r.IntN(size)], everybody...)
	}
	close(stop)
	clients.Wait()
	within(t, 30*time.Second, func() error {
		sums := make(map[uint32]bool)
		for _, n := range c.nodes {
			sums[n.removals.Sum()] = true
		}
		if len(sums) != 1 {
			return fmt.Errorf("%d sums", len(sums))
		}
		return nil
	})
}
