package gossip

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// TestHooksInOrder: calls of hooks that wait for a slow one all follow, in order, up to a backlog.
func TestHooksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := &Node{ctx: ctx, hooks: make(chan func(), hookBacklog)}
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
