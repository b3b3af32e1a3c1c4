package gossip

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// Given only a number of objects, New plans the filter and derives its seed. A later life has a later
// epoch.
func TestObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var epochs []uint64
		for range 2 {
			cfg := c.config("p1", "10.0.0.1")
			cfg.Holdings, cfg.Objects = nil, 1000
			n := c.start(cfg)
			g := n.Holdings().Keys().Filter().Geometry()
			if want, _ := digest.GeometryFor(1000, 0.001); g.Bits != want.Bits || g.Seed != digest.SeedFrom(testSecret) {
				t.Errorf("%d objects under %x have the geometry %+v", cfg.Objects, digest.SeedFrom(testSecret), g)
			}
			epochs = append(epochs, n.Holdings().Keys().Filter().Current().Version().Epoch)
			if len(epochs) == 1 {
				time.Sleep(time.Second)
				c.kill("p1")
			}
		}
		if epochs[1] <= epochs[0] {
			t.Errorf("the epochs of two lives are %v", epochs)
		}
		cfg := c.config("p2", "10.0.0.2")
		cfg.Holdings, cfg.Objects, cfg.Join = nil, 0, []string{"10.0.0.1:7946"}
		listener := c.start(cfg)
		if listener.Holdings() != nil {
			t.Error("a peer that only listens has holdings")
		}
		held := c.nodes["p1"].Holdings()
		for i := range 1000 {
			held.Add(fmt.Sprint(i))
		}
		time.Sleep(10 * time.Second)
		false1000 := 0
		for i := range 100_000 {
			if got := len(listener.Candidates(nil, fmt.Sprint(i))); i < 1000 && got != 1 {
				t.Fatalf("%d candidates for object %d", got, i)
			} else if i >= 1000 {
				false1000 += got
			}
		}
		if false1000 > 99+5*10 { // ten are a standard deviation
			t.Errorf("%d of 99,000 objects that no peer holds have a candidate, want one in 1000", false1000)
		}
	})
}

func TestObjectsAndHoldingsMisused(t *testing.T) {
	filter := newFilter(t, testSecret)
	for want, cfg := range map[string]Config{
		"-1 objects: want 0 to 1073741824":                        {Objects: -1},
		"1073741825 objects: want":                                {Objects: objectsMax + 1},
		"objects and holdings: want one of them":                  {Objects: 1, Holdings: NewHoldings(filter)},
		"holdings without a filter":                               {Holdings: new(Holdings)},
		"secret of 5 bytes: want at least 16\ngossip: -2 objects": {Objects: -2, Secret: []byte("short")},
	} {
		cfg.Name, cfg.Bind, cfg.Logger = "p", "127.0.0.1:0", testLog()
		if n, err := New(cfg); err == nil || !strings.Contains(err.Error(), "gossip: "+want) {
			t.Errorf("New = %v, want %q", err, want)
			if err == nil {
				n.Close()
			}
		}
	}
}
