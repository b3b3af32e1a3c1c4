package gossip

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// TestProfiles: of peers with one secret, only those of the same profile believe each other's digests.
func TestProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		profiles := map[string]digest.Profile{"p1": digest.HTTP, "p2": digest.HTTP, "p3": digest.Numbers, "p4": digest.Opaque}
		for i := 1; i <= len(profiles); i++ {
			cfg := c.config(fmt.Sprintf("p%d", i), fmt.Sprintf("10.0.0.%d", i))
			cfg.Holdings, cfg.Objects = nil, 100
			cfg.Profile = profiles[cfg.Name]
			if i > 1 {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			c.start(cfg).Holdings().Add("an object")
		}
		time.Sleep(time.Minute)
		for name, n := range c.nodes {
			var want []string
			for other, p := range profiles {
				if other != name && p == profiles[name] {
					want = append(want, other)
				}
			}
			var got []string
			for _, found := range n.Candidates(nil, "an object") {
				got = append(got, found.Peer)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s finds %q, want %q", name, got, want)
			}
		}
	})
}
