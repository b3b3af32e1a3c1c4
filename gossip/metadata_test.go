package gossip

import (
	"crypto"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A lateKey blocks callers of Public until the key is given.
type lateKey struct {
	crypto.Signer
	asked, given chan struct{}
}

func (k *lateKey) Public() crypto.PublicKey {
	select {
	case k.asked <- struct{}{}: // the first
		<-k.given
	default:
	}
	return k.Signer.Public()
}

// Of two concurrent updates of the metadata, the one that began with the older metadata announces last.
// The newer metadata must be announced at the end.
func TestConcurrentMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		cfg := c.config("p1", "10.0.0.1")
		cfg.Sign = true
		p1 := c.start(cfg)
		cfg = c.config("p2", "10.0.0.2")
		cfg.Join = []string{"10.0.0.1:7946"}
		p2 := c.start(cfg)
		time.Sleep(settled)

		key := &lateKey{p1.signs, make(chan struct{}, 1), make(chan struct{})}
		p1.inLoop(func() { p1.signs = key })
		done := make(chan struct{}, 2)
		go func() { p1.updateMetadata(); done <- struct{}{} }()
		synctest.Wait() // it has looked at the secrets
		fresh := []byte("another secret of the cluster")
		go func() {
			if err := p1.SetSecrets(testSecret, fresh); err != nil {
				t.Error(err)
			}
			done <- struct{}{}
		}()
		time.Sleep(5 * time.Second)
		close(key.given)
		<-done
		<-done
		time.Sleep(settled)
		want := p1.ring.Load().IDs()
		for _, m := range p2.Members() {
			if got := (*p2.members.Load())["p1"].info.Load().meta.Secrets; m.Name == "p1" && (len(want) != 2 || !slices.Equal(got, want)) {
				t.Errorf("at p2 p1 accepts %x, want %x", got, want)
			}
		}
	})
}
