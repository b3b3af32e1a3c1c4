package gossip

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedDigestIsNoted: a peer whose digest others refuse logs it.
func TestRefusedDigestIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var log logBuffer
		cfg := c.config("p1", "10.0.0.1")
		cfg.Limits.DigestBytes = 4096
		cfg.Logger = log.logger()
		n := c.start(cfg)
		time.Sleep(5 * time.Second)
		const words = "the digest is too large"
		if log.has(words) {
			t.Fatal("an empty digest is too large")
		}
		for i := range 20_000 {
			n.cfg.Holdings.Keys().Add(key("p1", i))
		}
		time.Sleep(20 * time.Second)
		if !log.has(words, "4096 allowed") {
			t.Error("no log record that peers refuse a digest of 20,000 objects")
		}
	})
}
