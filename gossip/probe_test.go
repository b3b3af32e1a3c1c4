package gossip

import (
	"testing"
	"testing/synctest"
	"time"
)

// A probe returns at once on an idle node and on a closed one, and waits while the loop is blocked.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(1)
		n := c.nodes["p1"]
		for name, part := range map[string]struct {
			probe func()
			loop  chan func()
		}{"exchange": {n.Inside().ProbeExchange, n.calls}, "publishing": {n.Inside().ProbePublishing, n.publisher}} {
			begun := time.Now()
			part.probe()
			if took := time.Since(begun); took > time.Second {
				t.Errorf("%s: an idle node was probed for %v", name, took)
			}
			held := make(chan struct{})
			part.loop <- func() { <-held }
			synctest.Wait()
			returned := make(chan struct{})
			go func() { part.probe(); close(returned) }()
			select {
			case <-returned:
				t.Errorf("%s: the probe returns though the part is held up", name)
			case <-time.After(time.Minute):
			}
			close(held)
			<-returned
		}
		n.Close()
		n.Inside().ProbeExchange()
		n.Inside().ProbePublishing()
	})
}
