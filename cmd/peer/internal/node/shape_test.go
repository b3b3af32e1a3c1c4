package node

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestReplan: a peer that holds more objects than planned plans a new digest, and meanwhile no
// lookup of another peer misses an object that was there before.
func TestReplan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const few, many = 300, 2500 // around the thousand that the digests are planned for
		sizes := make(map[string]int64)
		target := func(i int) string { return fmt.Sprintf("/object/%d", i) }
		for i := range many {
			sizes[target(i)] = 100
		}
		v := newVirtual(t, 2, sizes)
		defer v.stop()
		fetch := func(from, to int) {
			for i := from; i < to; i++ {
				if err := v.get(0, target(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		fetch(0, few)
		pause(10 * time.Second)

		before := v.nodes[0].Status().Digest
		if before.Keys != few || before.Planned != 1000 || before.Replans != 0 {
			t.Fatalf("the digest before: %+v", before)
		}
		var missed, looked atomic.Int64
		done, every := make(chan struct{}), 10*time.Millisecond
		if testing.Short() { // with the race detector
			every *= 10
		}
		watching := make(chan struct{})
		go func() {
			defer close(watching)
			for {
				select {
				case <-done:
					return
				case <-time.After(every):
				}
				for i := range few {
					looked.Add(1)
					if len(v.nodes[1].siblings.Candidates(nil, "GET "+originURL+target(i))) == 0 {
						missed.Add(1)
					}
				}
			}
		}()
		fetch(few, many)
		pause(20 * time.Second)
		close(done)
		<-watching

		after := v.nodes[0].Status()
		if d := after.Digest; d.Keys != many || d.Published != many || d.Planned < many || d.Replans == 0 || d.Replans > 2 ||
			d.Epoch <= before.Epoch || d.Bits <= before.Bits || d.FalsePositiveRate > 0.001 {
			t.Errorf("the digest after: %+v", d)
		}
		if missed.Load() > 0 || looked.Load() < 100*few {
			t.Errorf("%d of %d lookups missed", missed.Load(), looked.Load())
		}
		if err := v.get(1, target(many-1)); err != nil {
			t.Error(err)
		}
		if n := v.nodes[1].Status().Traffic; n.SiblingHits != 1 {
			t.Errorf("the other peer's traffic: %+v", n)
		}
	})
}
