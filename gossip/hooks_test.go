package gossip

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestHooksInOrder: calls of hooks that wait for a slow one all follow, in order, up to a backlog.
func TestHooksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := &host{group: &group{base: &base{ctx: ctx}}, hooks: make(chan func(), hookBacklog)}
		go n.callHooks()
		slow := make(chan struct{})
		n.hook(func() { <-slow })
		synctest.Wait()
		var called, want []int
		for i := range hookBacklog + 10 {
			n.hook(func() { called = append(called, i) })
			if i < hookBacklog {
				want = append(want, i)
			}
		}
		close(slow)
		synctest.Wait()
		if !slices.Equal(called, want) {
			t.Errorf("of %d hooks these were called: %v", len(want), called)
		}
		cancel()
	})
}

// TestCloseClosesAll: connections that a node keeps for later requests are closed with it.
func TestCloseClosesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.startMany(3)
		for _, n := range c.nodes {
			for i := range 2000 { // more than a datagram carries
				n.cfg.Holdings.Keys().Add(key(n.cfg.Name, i))
			}
		}
		within(t, settling, c.inStep)
		kept := 0
		for name, n := range c.nodes {
			n.pool.mu.Lock()
			idle := slices.Clone(n.pool.idle)
			n.pool.mu.Unlock()
			kept += len(idle)
			n.Close()
			for _, w := range idle {
				if _, err := w.wire.Write([]byte{0}); err == nil {
					t.Errorf("a connection of %s to %s is open after Close", name, w.addr)
				}
			}
		}
		if kept == 0 {
			t.Error("no node kept a connection")
		}
		time.Sleep(time.Minute) // what is on the way arrives
	})
}
