package gossip

import (
	"testing"
	"testing/synctest"
	"time"
)

// Updates of the metadata go one after the other: of two concurrent ones, the one that began with the older metadata
// could announce last.
func TestConcurrentMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(2)
		time.Sleep(settled)
		p1, p2 := c.nodes["p1"], c.nodes["p2"]
		known := func() int { return len((*p2.members.Load())["p1"].info.Load().meta.Secrets) }
		p1.updating <- struct{}{} // another update is under way
		done := make(chan error, 1)
		go func() { done <- p1.SetSecrets(testSecret, []byte("another secret of the cluster")) }()
		time.Sleep(settled)
		if n := known(); n != 1 {
			t.Errorf("at p2 p1 accepts %d secrets during another update, want 1 as before", n)
		}
		<-p1.updating
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		time.Sleep(settled)
		if n := known(); n != 2 {
			t.Errorf("at p2 p1 accepts %d secrets, want 2", n)
		}
	})
}
