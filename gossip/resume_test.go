package gossip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A fraying network breaks every stream that it dials after a number of bytes has been read.
type fraying struct {
	Network
	after int
	read  *atomic.Int64
}

type frayed struct {
	net.Conn
	left int
	read *atomic.Int64
}

func (f fraying) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := f.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &frayed{c, f.after, f.read}, nil
}

func (c *frayed) Read(b []byte) (int, error) {
	if c.left == 0 {
		c.Conn.Close()
		return 0, errors.New("the cable broke")
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	c.read.Add(int64(n))
	return n, err
}

// TestFetchGoesOnWhereItBroke lets a peer join by streams that break after 100 KB each, while the others'
// digests are several times as long and change.
func TestFetchGoesOnWhereItBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		sparse := func(cfg Config) Config {
			f, err := digest.NewSet(digest.Geometry{Bits: 1 << 26, Hashes: 1, Seed: digest.SeedFrom(testSecret)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Holdings = NewHoldings(f)
			return cfg
		}
		r := rand.New(rand.NewPCG(1, 1))
		bodies := 0
		for i := range 3 {
			cfg := sparse(c.config(fmt.Sprintf("p%d", i+1), fmt.Sprintf("10.0.0.%d", i+1)))
			if i > 0 {
				cfg.Join = []string{"10.0.0.1:7946"}
			}
			n := c.start(cfg)
			for range 200_000 {
				n.cfg.Holdings.Keys().Add(digest.Key(r.Uint64()))
			}
		}
		within(t, settling, c.inStep)
		for _, n := range c.nodes {
			bodies += len(n.cfg.Holdings.Filter().Current().AppendTo(nil))
		}
		var read atomic.Int64
		cfg := sparse(c.config("p4", "10.0.0.4"))
		cfg.Join = []string{"10.0.0.1:7946"}
		cfg.Network = fraying{cfg.Network, 100 << 10, &read}
		c.start(cfg)
		for range 20 {
			c.nodes["p1"].cfg.Holdings.Keys().Add(digest.Key(r.Uint64()))
			time.Sleep(100 * time.Millisecond)
		}
		took := within(t, 20*time.Second, c.inStep)
		s := c.nodes["p4"].Stats().Exchange
		t.Logf("digests of %d bytes arrived in %d over streams of 100 KB, %d of them kept across a break; up to date after %v more",
			bodies, read.Load(), s.ResumedBytes, took)
		if s.Resumed != 3 || s.SnapshotsReceived != 3 || read.Load() > int64(bodies)*5/4 {
			t.Errorf("%d of %d digests were resumed, and %d bytes read for %d", s.Resumed, s.SnapshotsReceived, read.Load(), bodies)
		}
	})
}
