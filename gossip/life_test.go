package gossip

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// TestLeftIsNotDead makes one peer leave and another die.
func TestLeftIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		told := make(chan Member, 10)
		for i := 1; i <= 4; i++ {
			cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
			if i > 1 {
				cfg.Join = []string{"10.0.0.1:7946"}
			} else {
				cfg.Hooks.PeerDown = func(m Member) { told <- m }
			}
			c.start(cfg)
		}
		within(t, settling, c.inStep)
		if err := c.nodes["p4"].Leave(t.Context()); err != nil {
			t.Errorf("Leave = %v", err)
		}
		delete(c.nodes, "p4")
		c.kill("p3")
		time.Sleep(time.Minute)
		for range 2 {
			if m := <-told; m.Alive || m.Left != (m.Name == "p4") {
				t.Errorf("PeerDown is called with %s: alive %v, left %v", m.Name, m.Alive, m.Left)
			}
		}
		for _, name := range []string{"p1", "p2"} {
			for _, m := range c.nodes[name].Members() {
				if gone := m.Name == "p3" || m.Name == "p4"; m.Alive == gone || m.Left != (m.Name == "p4") {
					t.Errorf("at %s: %s is alive %v, left %v", name, m.Name, m.Alive, m.Left)
				}
			}
		}
		// A peer that is back has not left.
		cfg := c.config("p4", "10.0.0.4")
		cfg.Join = []string{"10.0.0.1:7946"}
		c.start(cfg)
		within(t, 30*time.Second, c.inStep)
		c.kill("p4")
		time.Sleep(time.Minute)
		for _, m := range c.nodes["p1"].Members() {
			if m.Name == "p4" && (m.Alive || m.Left) {
				t.Errorf("the second life of p4 is alive %v, left %v, want dead", m.Alive, m.Left)
			}
		}
	})
}

// TestLeavesAtOnce makes a peer leave before its loop has taken the members of the cluster.
func TestLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		told := make(chan Member, 10)
		cfg := c.config("p1", "10.0.0.1")
		cfg.Hooks.PeerDown = func(m Member) { told <- m }
		c.start(cfg)
		cfg = c.config("p2", "10.0.0.2")
		cfg.Join = []string{"10.0.0.1:7946"}
		p2, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		go p2.inLoop(func() { <-release })
		synctest.Wait()
		if err := p2.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := p2.Leave(t.Context()); err != nil {
				t.Errorf("Leave = %v", err)
			}
		}()
		synctest.Wait()
		close(release)
		if m := <-told; !m.Left {
			t.Error("p1 counts p2 as dead, which has left")
		}
	})
}

// TestMeetsAgainWhoIsNotDead makes a peer advertise to one that counts it as dead.
func TestMeetsAgainWhoIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(2)
		within(t, settling, c.inStep)
		p1, p2 := c.nodes["p1"], c.nodes["p2"]
		dead := func(left bool) {
			p1.inLoop(func() {
				m := (*p1.members.Load())["p2"]
				m.left.Store(0)
				if left {
					m.left.Store(p2.incarnation.Load())
				}
				gone := m.info.Load().memberEvent
				gone.up = false
				p1.inbox.Lock()
				p1.inbox.members["p2"] = gone
				p1.inbox.Unlock()
				p1.handleMemberEvents()
			})
			p1.met.Lock()
			clear(p1.met.at)
			p1.met.Unlock()
		}
		met := func() bool {
			p1.met.Lock()
			defer p1.met.Unlock()
			_, ok := p1.met.at[p2.Addr()]
			return ok
		}
		for i, left := range []bool{true, false} {
			dead(left)
			p2.Holdings().Add(fmt.Sprint(i))
			time.Sleep(5 * time.Second)
			if met() == left {
				t.Errorf("a peer that advertises, and has left %t, was met again: %t", left, met())
			}
		}
	})
}

// TestGeometryChangesOnline grows a digest while others look keys up in it.
func TestGeometryChangesOnline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(3)
		p1, p2 := c.nodes["p1"], c.nodes["p2"]
		keys := make([]digest.Key, 2000)
		for i := range keys {
			keys[i] = key("p1", i)
			p1.cfg.Holdings.Keys().Add(keys[i])
		}
		within(t, settling, c.inStep)
		stop, checks := make(chan struct{}), 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				if k := checks * 7 % len(keys); !holders(p2, keys[k])["p1"] {
					t.Errorf("after %d ms p2 does not find key %d at p1", checks, k)
					return
				}
				checks++
			}
		}()
		epoch := published(p1).Epoch
		for _, factor := range []uint64{4, 2, 8} {
			g := p1.cfg.Holdings.Keys().Filter().Geometry()
			g.Bits = factor * 1 << 16
			if err := p1.cfg.Holdings.Keys().Inside().Rebuild(g); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			p2.mu.Lock()
			r, _ := p2.engine.Replica("p1")
			p2.mu.Unlock()
			if r.Filter.Geometry().Bits != g.Bits {
				t.Errorf("p2 has a digest of %d bits, want %d", r.Filter.Geometry().Bits, g.Bits)
			}
		}
		close(stop)
		<-done
		if got := published(p1).Epoch; got != epoch+3 || checks < 5000 {
			t.Errorf("epoch %d after %d, %d lookups", got, epoch, checks)
		}
	})
}
