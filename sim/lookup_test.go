package main

import (
	"context"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

// TestLookupWays fills every way with the same caches: those of the same filters
// give the same answers, and none denies what a peer has.
func TestLookupWays(t *testing.T) {
	for _, how := range []contents{zipf, unequal, disjoint} {
		c := lookupCluster{peers: 20, keys: 500, contents: how}
		if testing.Short() {
			c.peers = 8
		}
		r := newLookupRun(context.Background(), testJob(1), nil, nil, c)
		ways := map[string]lookupWay{
			"index":       &indexWay{index: index.New(), geometry: r.sparse},
			"sorted sets": &loopWay{geometry: r.sparse},
			"rows":        &indexWay{index: index.New(), geometry: r.dense},
			"bitmaps":     &loopWay{geometry: r.dense},
		}
		if how != unequal {
			ways["postings"] = newPostings(r.sparse(c.keys), c.peers*c.keys)
		}
		for name, w := range ways {
			if err := r.fill(name, w); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if perKey := float64(w.bytes()) / float64(r.held); perKey < 0.5 || perKey > 40 {
				t.Errorf("%s, %s: %.2f bytes a key", how, name, perKey)
			}
		}
		holders := map[digest.Key]int{}
		for peer := range c.peers {
			for _, k := range c.keysOf(r.job, peer, new([]uint64)) {
				holders[k]++
			}
		}
		for k, n := range holders {
			for name, w := range ways {
				if got := w.lookup(k); got < n {
					t.Fatalf("%s, %s: %d peers may have a key that %d have", how, name, got, n)
				}
			}
			for name, of := range map[string]string{"index": "sorted sets", "rows": "bitmaps", "postings": "sorted sets"} {
				if w := ways[name]; w != nil && w.lookup(k) != ways[of].lookup(k) {
					t.Fatalf("%s: %s finds %d, the loop over its filters %d", how, name, w.lookup(k), ways[of].lookup(k))
				}
			}
		}
	}
}

func TestLookup(t *testing.T) {
	job := testJob(1)
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
	if len(job.tables) != 3 || len(job.tables[0].Rows) != 4*clusters || len(job.tables[1].Rows) != clusters {
		t.Errorf("lookup gives %d tables, %d and %d rows", len(job.tables), len(job.tables[0].Rows), len(job.tables[1].Rows))
	}
	for _, args := range []string{
		"--peers 0", "--peers 10 --keys 5", "--peers ten",
		"--peers 10 --contents equal", "--peers 50000 --keys 100000",
	} {
		if code, _, errs := call(append([]string{"lookup"}, strings.Fields(args)...)...); code != 2 || !strings.Contains(errs, "want") {
			t.Errorf("lookup %s: %d, %q", args, code, errs)
		}
	}
}
