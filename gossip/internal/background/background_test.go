package background

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// TestNoneAfterStop: goroutines begin while the group is stopped and waited for. Those of which Go says that they began
// have ended when Wait returns, and no other one runs. WaitGroup alone would be misused here: the race detector says so.
func TestNoneAfterStop(t *testing.T) {
	errEnd := errors.New("the end")
	for range 500 {
		g := New()
		var begun, ended atomic.Int64
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				for g.Go(func() { ended.Add(1) }) {
					begun.Add(1)
				}
			})
		}
		g.Stop(errEnd)
		g.Wait()
		all := ended.Load()
		callers.Wait()
		if n := begun.Load(); ended.Load() != all || n != all {
			t.Fatalf("%d of %d goroutines had ended when Wait returned, and %d in the end", all, n, ended.Load())
		}
		if context.Cause(g.Context()) != errEnd || g.Go(func() { t.Error("a goroutine of a stopped group runs") }) {
			t.Fatalf("the context of a stopped group ended by %v", context.Cause(g.Context()))
		}
	}
}
