package systems

import (
	"context"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/lab"
)

// TestLookupWays fills every way with the same caches. Ways with the same filters must give the
// same answers, and none may deny a key that a peer has.
func TestLookupWays(t *testing.T) {
	for _, how := range []contents{zipf, unequal, disjoint} {
		c := lookupCluster{peers: 20, keys: 500, contents: how}
		if testing.Short() {
			c.peers = 8
		}
		r := lookupRun{job: lab.Quiet(1), cluster: c, rate: candidatesPerLookup / float64(c.peers)}
		ways := map[string]*lookupWay{}
		for _, w := range lookupWays() {
			ways[w.name] = w
			if err := r.fill(context.Background(), w); err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
			if perKey := float64(w.bytes()) / float64(r.held); perKey < 0.5 || perKey > 40 {
				t.Errorf("%s, %s: %.2f bytes a key", how, w.name, perKey)
			}
		}
		holders := map[digest.Key]int{}
		for peer := range c.peers {
			for _, k := range c.keysOf(r.job, peer) {
				holders[k]++
			}
		}
		for k, n := range holders {
			for name, w := range ways {
				if got := w.lookup(k); got < n {
					t.Fatalf("%s, %s: %d peers may have a key that %d peers have", how, name, got, n)
				}
			}
			for name, of := range map[string]string{"index": "loop, sorted sets"} {
				if got, want := ways[name].lookup(k), ways[of].lookup(k); got != want {
					t.Fatalf("%s: %s finds %d, the loop over its filters %d", how, name, got, want)
				}
			}
		}
	}
}

func TestLookup(t *testing.T) {
	job := lab.Quiet(1)
	peers, clusters := []int{8, 16}, 2
	if raceEnabled {
		peers, clusters = []int{8}, 1
	}
	job.Short = true
	all, err := lookupClusters(peers, []int{500}, unequal)
	if err != nil {
		t.Fatal(err)
	}
	if err := runLookup(context.Background(), job, all); err != nil {
		t.Fatal(err)
	}
	if len(job.Tables) != 1 || len(job.Tables[0].Rows) != 3*clusters {
		t.Errorf("lookup gives %d tables, %d rows", len(job.Tables), len(job.Tables[0].Rows))
	}
	for _, args := range []string{
		"--peers 0", "--peers 10 --keys 5", "--peers ten",
		"--peers 10 --contents equal", "--peers 50000 --keys 100000",
	} {
		if code, _, errs := call(t, append([]string{"lookup"}, strings.Fields(args)...)...); code != 2 || !strings.Contains(errs, "want") {
			t.Errorf("lookup %s: %d, %q", args, code, errs)
		}
	}
}
