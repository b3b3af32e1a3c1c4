package node

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestChangeOfSecrets moves a cluster from one secret to the next by reloads,
// while lookups and commands continue.
func TestChangeOfSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 200
		sizes := make(map[string]int64)
		target := func(i int) string { return fmt.Sprintf("/object/%d", i) }
		for i := range objects {
			sizes[target(i)] = 100
		}
		v := newVirtual(t, 3, sizes)
		defer v.stop()
		for i := range objects {
			if err := v.get(0, target(i)); err != nil {
				t.Fatal(err)
			}
		}
		pause(10 * time.Second)
		old, fresh := v.nodes[0].config().Secret, []byte("fedcba9876543210")
		reload := func(n *Node, use []byte, accept ...[]byte) error {
			c := *n.config()
			c.Secret, c.AcceptSecrets = use, accept
			_, err := n.Apply(c, nil, false)
			return err
		}
		check := func(step string) {
			t.Helper()
			for i := range objects {
				if got := v.nodes[1].siblings.Candidates(nil, "GET "+originURL+target(i)); len(got) != 1 || got[0].Peer != "p0" {
					t.Fatalf("%s: candidates %v for an object that p0 has", step, got)
				}
			}
			for _, r := range v.nodes[2].Cluster(t.Context()).Peers {
				if r.State != "serving" {
					t.Fatalf("%s: %s does not answer p2's order: %s", step, r.Peer, r.Troubles)
				}
			}
		}
		check("before")
		if err := reload(v.nodes[0], fresh); err == nil || !strings.HasPrefix(err.Error(), "--secret-file: a step is left out") {
			t.Errorf("a change without the steps between: %v", err)
		}
		seed := v.nodes[0].holdings.Keys().Filter().Geometry().Seed
		for _, step := range []struct {
			name   string
			use    []byte
			accept [][]byte
		}{{"accepting", old, [][]byte{fresh}}, {"using", fresh, [][]byte{old}}, {"alone", fresh, nil}} {
			for i, n := range v.nodes {
				if err := reload(n, step.use, step.accept...); err != nil {
					t.Fatalf("%s, p%d: %v", step.name, i, err)
				}
				check(fmt.Sprintf("%s, p%d at once", step.name, i))
				pause(time.Second)
				check(fmt.Sprintf("%s, p%d later", step.name, i))
			}
			pause(time.Minute)
			check(step.name)
		}
		if v.nodes[0].holdings.Keys().Filter().Geometry().Seed == seed {
			t.Error("the keys are made under the old seed still")
		}
		if err := v.get(1, target(0)); err != nil {
			t.Fatal(err)
		}
		if n := v.nodes[1].Status().Traffic; n.SiblingHits != 1 {
			t.Errorf("p1's traffic: %+v", n)
		}
		without := *v.nodes[0].config()
		without.Secret, without.AcceptSecrets = nil, nil
		where := map[string]string{"secret-file": "--secret-file"}
		if _, err := v.nodes[0].Apply(without, where, false); err == nil || !strings.Contains(err.Error(), "--secret-file cannot change without a restart") {
			t.Errorf("a configuration without a secret: %v", err)
		}
	})
}
