package gossip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/summarycache/summarycache/gossip/invalidation"
)

// TestTooManyMembers: of more peers than there may be members, each is refused by name, and an invalidation
// that cannot reach it is not reported complete. The peer itself learns it from Join, logs it, and counts it. When there are fewer again, they are members, and it is.
func TestTooManyMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		var log, refused logBuffer
		for i := range 6 {
			cfg := c.config(fmt.Sprint("p", i+1), fmt.Sprint("10.0.0.", i+1))
			cfg.Limits.Members = 3
			if i > 0 {
				cfg.Join = []string{"10.0.0.1:7946"}
			} else {
				cfg.Logger = log.logger()
			}
			if i < 4 {
				c.start(cfg)
			} else {
				cfg.Logger = refused.logger()
				n, err := New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				c.nodes[cfg.Name], c.ips[cfg.Name] = n, fmt.Sprint("10.0.0.", i+1)
				if err := n.Join(t.Context()); !errors.Is(err, ErrMembers) || len(n.Members()) > 0 {
					t.Errorf("Join of a peer too many returns %v; it has %d members", err, len(n.Members()))
				}
			}
			time.Sleep(10 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		first := c.nodes["p1"]
		purge := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return first.Invalidate(ctx, invalidation.Target{Kind: invalidation.Everything})
		}
		var members []string
		for _, m := range first.Members() {
			members = append(members, m.Name)
		}
		if !slices.Equal(members, []string{"p2", "p3", "p4"}) {
			t.Fatalf("the members are %v", members)
		}
		var unreached *UnreachedError
		if err := purge(); !errors.As(err, &unreached) || !errors.Is(err, ErrMembers) || strings.Join(unreached.Members, " ") != "p5 p6" {
			t.Errorf("with two peers too many an invalidation returns %v", err)
		}
		for _, name := range []string{"p5", "p6"} {
			if s := c.nodes[name].Stats(); s.JoinsRefused < 10 || !refused.has("could not join", ErrMembers.Error()) {
				t.Errorf("%s counts %d refusals to join; logged: %v", name, s.JoinsRefused, refused.has("could not join"))
			}
			if !log.has("refused a member", "member="+name) {
				t.Errorf("no log record that %s is refused", name)
			}
		}
		for _, name := range []string{"p2", "p3"} {
			c.nodes[name].Close()
			delete(c.nodes, name)
		}
		time.Sleep(refusedFor + 10*time.Minute)
		if err := purge(); err != nil {
			t.Errorf("with as many members as there may be an invalidation returns %v", err)
		}
		for name, n := range c.nodes {
			if peers := n.Stats().Peers; peers != 3 {
				t.Errorf("%s has %d members in the end, want 3", name, peers)
			}
		}
	})
}
