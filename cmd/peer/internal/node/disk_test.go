package node

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/diskstore/disktest"
)

// A peer whose disk is a tenth of its --store-size has hits, and says that it is degraded as long as that
// lasts, not longer.
func TestDegradedWhileTheDiskIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects, size = 60, 300_000
		sizes := make(map[string]int64)
		for i := range objects {
			sizes[fmt.Sprint("/", i)] = size
		}
		v := newVirtual(t, 0, sizes)
		defer v.stop()
		d := disktest.New()
		d.Limit(24 << 20)
		v.disk = d
		v.start(0, "/store")
		for range 2 {
			for i := range objects {
				if err := v.get(0, fmt.Sprint("/", i)); err != nil {
					t.Fatal(err)
				}
				pause(100 * time.Millisecond)
			}
		}
		if got := v.origin.Requests(); got != objects {
			t.Errorf("%d requests of the origin for %d objects of %d bytes on a disk of 24 MiB", got, objects, size)
		}
		degraded := func() (all []string) {
			for _, d := range v.nodes[0].Health().Degraded {
				if d.Part == "store" {
					all = append(all, d.Text)
				}
			}
			return all
		}
		for _, after := range []time.Duration{time.Second, 2 * time.Minute, time.Hour} {
			pause(after)
			if got := degraded(); len(got) != 1 || !strings.Contains(got[0], "it may use 256 MiB but has room for") {
				t.Errorf("after %v more: degraded %q", after, got)
			}
		}
		d.Limit(1 << 30)
		pause(10 * time.Second)
		if got := degraded(); len(got) != 0 {
			t.Errorf("with room again: degraded %q", got)
		}
	})
}
