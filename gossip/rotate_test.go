package gossip

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip/internal/secrets"
)

// A tenant is a peer whose contents change while its cluster's secret does.
type tenant struct {
	node     *Node
	holdings *Holdings
	mu       sync.Mutex
	held     map[string]time.Time // since when
}

func identity(peer string, i int) string { return fmt.Sprintf("%s/%d", peer, i) }

// tenants starts n peers that hold many objects each.
func (c *cluster) tenants(n, many int, log *logBuffer) map[string]*tenant {
	out := make(map[string]*tenant)
	for i := 1; i <= n; i++ {
		cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
		cfg.Logger = log.logger()
		if i > 1 {
			cfg.Join = []string{"10.0.0.1:7946"}
		}
		p := &tenant{holdings: cfg.Holdings, held: make(map[string]time.Time)}
		for j := range many {
			p.add(identity(cfg.Name, j))
		}
		p.node = c.start(cfg)
		out[cfg.Name] = p
	}
	return out
}

func (p *tenant) add(id string) {
	p.mu.Lock()
	p.held[id] = time.Now()
	p.mu.Unlock()
	p.holdings.Add(id)
}

func (p *tenant) identities(yield func(string) bool) {
	p.mu.Lock()
	var all []string
	for id := range p.held {
		all = append(all, id)
	}
	p.mu.Unlock()
	for _, id := range all {
		time.Sleep(10 * time.Microsecond) // others write meanwhile
		if !yield(id) {
			return
		}
	}
}

// churn changes a peer's contents until stop is closed.
func (p *tenant) churn(stop chan struct{}, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(r.IntN(int(30 * time.Millisecond)))):
		}
		if r.IntN(2) == 0 {
			p.add(identity(p.node.Name(), 1_000_000+i))
			continue
		}
		p.mu.Lock()
		var id string
		for id = range p.held {
			break
		}
		delete(p.held, id)
		p.mu.Unlock()
		p.holdings.Remove(id)
	}
}

// settled is how long after an object was added all peers must find it.
const settled = 2 * time.Second

// look looks up other peers' objects at p until stop is closed, and reports those that it does not find.
// who are the peers whose objects must be found.
func (p *tenant) look(t *testing.T, all map[string]*tenant, who []string, stop chan struct{}, seed uint64) (asked int) {
	r := rand.New(rand.NewPCG(seed, 1))
	for {
		select {
		case <-stop:
			return asked
		case <-time.After(time.Duration(r.IntN(int(15 * time.Millisecond)))):
		}
		name := who[r.IntN(len(who))]
		o := all[name]
		if o == p {
			continue
		}
		o.mu.Lock()
		var id string
		for i, since := range o.held {
			if id = i; time.Since(since) > settled {
				break
			}
			id = ""
		}
		o.mu.Unlock()
		if id == "" {
			continue
		}
		asked++
		found := slices.ContainsFunc(p.node.Candidates(nil, id), func(c Candidate) bool { return c.Peer == name })
		o.mu.Lock()
		_, still := o.held[id]
		o.mu.Unlock()
		if !found && still && !p.wronged(name) {
			t.Errorf("%v: %s does not find %s", time.Now().Format("05.000"), p.node.Name(), id)
			return asked
		}
	}
}

// wronged reports whether p has lately been informed that a peer is dead, by a peer that was cut off from
// it, or that it is alive after all: within the time in which an object must be found.
func (p *tenant) wronged(name string) bool {
	return slices.ContainsFunc(p.node.Members(), func(m Member) bool {
		return m.Name == name && time.Since(m.Since) < settled
	})
}

// TestSecretChangesOnline moves a cluster to another secret and its seed, peer by peer, while objects come
// and go and every peer looks up the others' objects. No lookup fails, except for a peer that has just
// been declared dead. One peer omits the first step, one the second: the node names them before it cuts
// them off.
func TestSecretChangesOnline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		log := new(logBuffer)
		all := c.tenants(6, 300, log)
		follow, old, fresh := []string{"p1", "p2", "p3", "p4"}, testSecret, []byte("another secret of the cluster")
		time.Sleep(2 * settled)

		stop := make(chan struct{})
		var load sync.WaitGroup
		asked := 0
		var count sync.Mutex
		for i, name := range follow {
			p := all[name]
			load.Go(func() { p.churn(stop, uint64(i)) })
			for j := range 2 {
				load.Go(func() {
					n := p.look(t, all, follow, stop, uint64(10*i+j))
					count.Lock()
					asked += n
					count.Unlock()
				})
			}
		}
		step := func(what string, names []string, do func(p *tenant) error) {
			for _, name := range names {
				time.Sleep(700 * time.Millisecond)
				if err := do(all[name]); err != nil {
					t.Fatalf("%s, %s: %v", name, what, err)
				}
			}
			time.Sleep(3 * time.Second)
		}
		// A peer that missed another's metadata gets them by the next exchange of member lists: every half
		// minute, and the first up to a minute after the start.
		p1 := all["p1"].node
		expect := func(what string, want []string, use []byte, accept ...[]byte) {
			t.Helper()
			within(t, 75*time.Second, func() error {
				r, err := p1.ringOf(use, accept)
				if err != nil {
					return err
				}
				if got := p1.cutOff(r); !slices.Equal(got, want) {
					return fmt.Errorf("%s: cutOff = %v, want %v", what, got, want)
				}
				return nil
			})
		}
		expect("before", []string{"p2", "p3", "p4", "p5", "p6"}, fresh, old)
		step("accept", append(follow, "p5"), func(p *tenant) error { return p.node.SetSecrets(old, fresh) })
		expect("when they accept it", []string{"p6"}, fresh, old)
		if err := p1.SetSecrets(fresh); err == nil {
			t.Error("the secret of this peer's own digest could be dropped")
		}
		step("use", follow, func(p *tenant) error {
			if err := p.node.SetSecrets(fresh, old); err != nil {
				return err
			}
			return p.holdings.Reseed(p.node.Seed(), p.identities)
		})
		if !log.has("cut off by a change", "member=p6") {
			t.Error("the peer that did not make the first step was not named when it was cut off")
		}
		if !holdersOf(p1, identity("p5", 1))["p5"] {
			t.Error("objects of p5, which completed the first step, are not found after the second")
		}
		// p6 understands only p5 now. That may keep it in the cluster, or not.
		within(t, 75*time.Second, func() error {
			r, err := p1.ringOf(fresh, nil)
			if err != nil {
				return err
			}
			if got := p1.cutOff(r); !slices.Equal(got, []string{"p5"}) && !slices.Equal(got, []string{"p5", "p6"}) {
				return fmt.Errorf("when they use it: cutOff = %v, want p5, and perhaps p6", got)
			}
			return nil
		})
		step("drop", follow, func(p *tenant) error { return p.node.SetSecrets(fresh) })
		time.Sleep(20 * time.Second)
		close(stop)
		load.Wait()
		t.Logf("%d lookups", asked)
		if asked < 5_000 {
			t.Errorf("only %d lookups were made", asked)
		}

		time.Sleep(time.Minute)
		for _, name := range follow {
			n := all[name].node
			for _, m := range n.Members() {
				if m.Alive && !slices.Equal(m.Secrets, []string{secrets.Text(n.ring.Load().Secrets[0].ID)}) {
					t.Errorf("at %s %s accepts %v", name, m.Name, m.Secrets)
				}
				if gone := m.Name == "p5" || m.Name == "p6"; m.Alive == gone {
					t.Errorf("at %s: %s is alive: %v", name, m.Name, m.Alive)
				}
			}
			if got, want := n.digestSeeds(), digest.SeedFrom(fresh); len(got) != 1 || got[0] != want || n.Seed() != want {
				t.Errorf("%s uses the seeds %x, want %x", name, got, want)
			}
			if !log.has("peer="+name, "cut off by a change", "member=p5") {
				t.Errorf("%s did not name p5 when it cut it off", name)
			}
		}
		if !log.has("dropped packets under a secret that is not accepted", "member=p5") {
			t.Error("packets of p5 were dropped without naming it")
		}
		// The last one to have joined never knew the old secret.
		cfg := c.config("p7", "10.0.0.7")
		cfg.Secret, cfg.Join, cfg.Holdings = fresh, []string{"10.0.0.1:7946"}, NewHoldings(newFilter(t, fresh))
		n := c.start(cfg)
		within(t, 5*time.Second, func() error {
			if got := len(n.Candidates(nil, oldest(all["p2"]))); got == 0 {
				return fmt.Errorf("a newcomer finds nothing of p2")
			}
			return nil
		})
	})
}

func oldest(p *tenant) (id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := time.Now()
	for i, since := range p.held {
		if since.Before(best) {
			id, best = i, since
		}
	}
	return id
}

func holdersOf(n *Node, identity string) map[string]bool {
	out := make(map[string]bool)
	for _, c := range n.Candidates(nil, identity) {
		out[c.Peer] = true
	}
	return out
}

// TestSecretGoesBack abandons a change of secrets half way.
func TestSecretGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		all := c.tenants(3, 100, new(logBuffer))
		fresh := []byte("a secret that nobody will use")
		time.Sleep(settled)
		for _, step := range []func(p *tenant) error{
			func(p *tenant) error { return p.node.SetSecrets(testSecret, fresh) },
			func(p *tenant) error { return p.node.SetSecrets(fresh, testSecret) },
			func(p *tenant) error { return p.holdings.Reseed(p.node.Seed(), p.identities) },
			func(p *tenant) error { return p.node.SetSecrets(testSecret, fresh) },
			func(p *tenant) error { return p.holdings.Reseed(p.node.Seed(), p.identities) },
			func(p *tenant) error { return p.node.SetSecrets(testSecret) },
		} {
			for _, p := range all {
				if err := step(p); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				for at, a := range all {
					for name := range all {
						if at != name && !holdersOf(a.node, identity(name, 7))[name] {
							t.Fatalf("%s does not find what %s holds", at, name)
						}
					}
				}
			}
		}
		if s := all["p1"].node.Stats(); s.Behind != 0 || s.Replicas != 2 {
			t.Errorf("in the end %d replicas, %d behind", s.Replicas, s.Behind)
		}
	})
}

// TestUnusableDigests: a peer whose digest can no longer be used, or no longer fits, is a candidate for nothing, and
// again for all when it can.
func TestUnusableDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.startMany(2)
		k := key("p2", 1)
		c.nodes["p2"].cfg.Holdings.Keys().Add(k)
		within(t, settling, c.inStep)
		n := c.nodes["p1"]
		found := func() bool { return holders(n, k)["p2"] }
		if !found() {
			t.Fatal("p2 is not found")
		}
		seeds := n.digestSeeds()
		for range 3 {
			n.reindex([]uint64{digest.SeedFrom([]byte("another secret that nobody uses"))})
			if found() {
				t.Error("p2 is a candidate, and its digest is under a seed that is not in use")
			}
			n.reindex(seeds)
			if !found() {
				t.Error("p2 is no candidate any more, and its seed is in use again")
			}
		}
		c.close()
	})
}

func TestSetSecretsMistakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(1)
		n := c.nodes["p1"]
		other := func(i int) []byte { return fmt.Appendf(nil, "another secret, number %d", i) }
		for _, tc := range []struct {
			name    string
			primary []byte
			accept  [][]byte
		}{
			{"none", nil, nil},
			{"too short", []byte("short"), nil},
			{"too short to accept", testSecret, [][]byte{[]byte("short")}},
			{"too many", testSecret, [][]byte{other(1), other(2), other(3), other(4)}},
			{"the one of its digest dropped", other(1), nil},
		} {
			if err := n.SetSecrets(tc.primary, tc.accept...); err == nil {
				t.Errorf("%s: no error", tc.name)
			}
			if got := n.ring.Load().IDs(); len(got) != 1 || n.Seed() != digest.SeedFrom(testSecret) {
				t.Errorf("%s: it changed something", tc.name)
			}
		}
		if err := n.SetSecrets(testSecret, other(1), testSecret, other(1)); err != nil || len(n.digestSeeds()) != 2 {
			t.Errorf("secrets named twice: %v, %d seeds", err, len(n.digestSeeds()))
		}
		cfg := c.config("p2", "10.0.0.2")
		cfg.Secret, cfg.Holdings = nil, nil
		if err := c.start(cfg).SetSecrets(testSecret); err == nil {
			t.Error("a node without a secret could be given one")
		}
		n.Close()
		if err := n.SetSecrets(testSecret); err != ErrClosed {
			t.Errorf("of a closed node: %v", err)
		}
	})
}
