package gossip

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// realNode starts a peer on loopback with real sockets. If the seed is too busy to answer, the peer keeps
// trying.
func realNode(t testing.TB, name string, keys int, join ...string) *Node {
	t.Helper()
	f := newFilter(t, testSecret)
	for i := range keys {
		f.Add(key(name, i))
	}
	n, err := New(Config{
		Name: name, Bind: "127.0.0.1:0", Secret: testSecret, Service: "127.0.0.1:1",
		Join: join, Holdings: NewHoldings(f), Logger: testLog(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := n.Join(t.Context()); err != nil && !errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
	return n
}

// eventually waits, in real time, until check succeeds.
func eventually(t testing.TB, limit time.Duration, check func() error) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		err := check()
		if err == nil {
			break
		}
		if time.Since(start) > limit {
			t.Fatalf("after %v: %v", limit, err)
		}
	}
	return time.Since(start)
}

func replicas(n *Node, want int) func() error {
	return func() error {
		if s := n.Stats(); s.Replicas != want || s.Behind != 0 {
			return fmt.Errorf("%s has %d replicas, %d behind, want %d and 0", n.Name(), s.Replicas, s.Behind, want)
		}
		return nil
	}
}

func TestJoinerHasAllDigests(t *testing.T) {
	keys := 100_000
	if testing.Short() {
		keys = 10_000
	}
	p1 := realNode(t, "p1", keys)
	p2 := realNode(t, "p2", keys, p1.Addr())
	p3 := realNode(t, "p3", keys, p1.Addr())
	for _, n := range []*Node{p1, p2, p3} {
		eventually(t, 30*time.Second, replicas(n, 2))
	}
	start := time.Now()
	joiner := realNode(t, "p4", 0, p1.Addr())
	made := time.Since(start)
	took := eventually(t, 30*time.Second, replicas(joiner, 3))
	t.Logf("the joiner was made and joined in %v, and had three digests of %d keys %v later", made, keys, took)
	for _, name := range []string{"p1", "p2", "p3"} {
		for i := range keys {
			if i%97 == 0 && !holders(joiner, key(name, i))[name] {
				t.Fatalf("key %d of %s has no candidate", i, name)
			}
		}
	}
	p1.cfg.Holdings.Keys().Remove(key("p1", 0))
	p1.cfg.Holdings.Keys().Add(key("p1", keys))
	took = eventually(t, 30*time.Second, func() error {
		if !holders(joiner, key("p1", keys))["p1"] || holders(joiner, key("p1", 0))["p1"] {
			return fmt.Errorf("the joiner does not have the change")
		}
		return nil
	})
	t.Logf("a change was at the joiner after %v", took)
	if s := joiner.Stats().Exchange; s.DeltasReceived == 0 {
		t.Error("the change did not travel as a delta")
	}
}

var errNotYet = errors.New("not yet")
