package gossip

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A change that half of the peers missed reaches them, although each finds another with the same sum.
func TestHalvesOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.startMany(4)
		time.Sleep(2 * time.Minute) // long after the last of what happens at the start
		for round := range 12 {     // whether all miss it is up to whom memberlist asks meanwhile
			c.net.Partition([]string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.3", "10.0.0.4"})
			want := [][]byte{[]byte("another secret of the cluster")}[:1-round%2]
			if err := c.nodes["p3"].SetSecrets(testSecret, want...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // memberlist has told it as often as it does
			c.net.Heal()
			within(t, 75*time.Second, func() error {
				for name, n := range c.nodes {
					for _, m := range n.Members() {
						if m.Name == "p3" && len(m.Secrets) != 1+len(want) {
							return fmt.Errorf("round %d: at %s p3 accepts %d secrets, want %d", round, name, len(m.Secrets), 1+len(want))
						}
					}
				}
				return nil
			})
		}
	})
}
