package gossip

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/gossip/internal/guard"
)

// TestOnlyAPeerChangesItsMetadata: a member claims another's address for siblings, key or restart, in a
// packet and in a list of members. The others do not believe it, not even for a moment. A change by
// the peer itself is known to them at once.
func TestOnlyAPeerChangesItsMetadata(t *testing.T) {
	for _, by := range []string{"packets", "lists"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, gone := plainCluster(t)
				defer c.close()
				packet, end := stranger(c)
				defer end()
				p3 := c.nodes["p3"]
				meta, err := exchange.DecodeMeta(delegate{p3.group}.NodeMeta(0))
				if err != nil {
					t.Fatal(err)
				}
				meta.Service, meta.Incarnation = "10.6.6.6:80", meta.Incarnation+1
				forged := guard.Claim{Name: "p3", Addr: p3.advertise, Meta: meta.AppendTo(nil), Versions: []byte{1, 5, 2, 0, 0, 0}}
				var believed atomic.Int64
				stop := make(chan struct{})
				go func() { // all the time
					for {
						select {
						case <-stop:
							return
						case <-time.After(10 * time.Millisecond):
							for _, to := range []string{"p1", "p2"} {
								for _, m := range c.nodes[to].Members() {
									if m.Service == meta.Service || m.Incarnation == meta.Incarnation {
										believed.Add(1)
									}
								}
							}
						}
					}
				}()
				for i := range 50 {
					forged.Incarnation = uint64(10 * i)
					for _, to := range []string{"p1", "p2"} {
						if by == "packets" {
							packet(guard.AliveMessage(forged), to)
							continue
						}
						conn, err := c.net.Host("10.6.6.6").Dial(t.Context(), c.nodes[to].Addr())
						if err != nil {
							t.Fatal(err)
						}
						conn.Write(listed(forged))
						time.AfterFunc(time.Second, func() { conn.Close() })
					}
					time.Sleep(100 * time.Millisecond)
				}
				close(stop)
				if n := believed.Load(); n != 0 {
					t.Errorf("a false claim was believed in %d of 1,000 checks", n)
				}
				if n := gone.Load(); n != 0 {
					t.Errorf("a live peer was down %d times", n)
				}
				p3.inLoop(func() { p3.incarnation.Add(1 << 20) })
				p3.updateMetadata()
				within(t, 2*time.Second, func() error {
					for _, to := range []string{"p1", "p2"} {
						if (*c.nodes[to].members.Load())["p3"].info.Load().meta.Incarnation != p3.incarnation.Load() {
							return errors.New(to + " does not know of the change")
						}
					}
					return nil
				})
			})
		})
	}
}

// listed returns a list of members with c only.
func listed(c guard.Claim) []byte {
	return append(promise(1, 0), guard.Pack(0, "Name", c.Name, "Addr", c.Addr.Addr().AsSlice(), "Port", c.Addr.Port(), "Meta", c.Meta,
		"Incarnation", uint16(c.Incarnation), "State", byte(memberlist.StateAlive), "Vsn", c.Versions)[1:]...)
}
