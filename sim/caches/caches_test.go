package caches

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
	engine "github.com/summarycache/summarycache/gossip/exchange"
	"github.com/summarycache/summarycache/sim/lab"
	"github.com/summarycache/summarycache/sim/workload"
)

// TestPublishAsPeers: caches that publish by a running peer's rule do not publish before a peer
// could, nor later than a peer must.
func TestPublishAsPeers(t *testing.T) {
	const step = 0.02 // seconds
	policy := engine.Publishing{}.For(0)
	for _, every := range []int{1, 10, 100, 1000} { // steps
		c := &Cluster{caches: 2}
		d, err := newDigests(c, digest.Geometry{Bits: 1 << 16, Hashes: 1}, publishing{asPeers: true, cost: recordsCost, memory: arrayBytes})
		if err != nil {
			t.Fatal(err)
		}
		last, changed, updates := math.Inf(-1), math.Inf(1), 0
		for i := range 3000 {
			now := 1e6 + float64(i)*step
			d.tick(now)
			if d.updates > updates {
				if updates = d.updates; now-last < policy.MinInterval.Seconds()-1e-6 {
					t.Errorf("a change every %d steps: published after %v s and %v s", every, last-1e6, now-1e6)
				}
				last, changed = now, math.Inf(1)
			}
			if waits := now - changed; waits > policy.Interval.Seconds()+step+1e-6 {
				t.Fatalf("a change every %d steps: one waits for %v s", every, waits)
			}
			if i%every == 0 {
				d.keys = append(d.keys, digest.KeyOfString(0, strconv.Itoa(i)))
				d.came(0, uint32(len(d.keys)-1))
				changed = min(changed, now)
			}
		}
		if updates == 0 {
			t.Errorf("a change every %d steps: nothing was published", every)
		}
	}
}

// invented is a trace of 256 clients that share most of their objects: a fifth of the requests are for a client's own, and
// half of the objects are replaced.
func invented(requests int) *workload.Trace {
	rng := rand.New(rand.NewPCG(2, 0x7a697066))
	t := workload.Synthetic(workload.Model{Requests: requests, Objects: 600, Exponent: 0.8, Seed: 2})
	t.Sizes = map[string]int64{}
	for i := range t.Requests {
		r := &t.Requests[i]
		r.Seconds, r.Client = float64(i)/100, strconv.Itoa(rng.IntN(256))
		if rng.Float64() < 0.2 {
			r.Key = "/client/" + r.Client + r.Key
		}
		phase := float64(len(r.Key)*len(r.Client)%10) / 10
		r.Key += fmt.Sprintf("/%d", int(phase+0.5*float64(i)/float64(requests)))
		r.Size = workload.SizeOf(r.Key)
		t.Sizes[r.Key] = r.Size
	}
	return t
}

// clusterOf has four caches of a share of all objects.
func clusterOf(t *workload.Trace, share float64) *Cluster {
	return New(t, Options{Caches: 4, Limit: int64(share * float64(Weight(t))), Seed: 2})
}

// TestReplay compares the ways with each other on one invented trace.
func TestReplay(t *testing.T) {
	if raceEnabled {
		t.Skip("replays one way after the other, in one goroutine")
	}
	c := clusterOf(invented(10_000), 0.05)
	results, owned := map[string]Outcomes{}, map[string]bool{}
	for _, w := range c.Ways() {
		owned[w.Name] = w.owners > 0
		r, err := c.Replay(w)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(w.Name, "0.1 %") || w.Name == "ours" || w.hot || w.again {
			if again, _ := c.Replay(w); again != r {
				t.Errorf("%s: replayed twice, %+v and %+v", w.Name, r, again)
			}
		}
		if w.owners == 0 && r.Local+r.Remote+r.Missed+r.Stale > len(c.requests) {
			t.Errorf("%s: %+v of %d requests", w.Name, r, len(c.requests))
		}
		results[w.Name] = r
	}
	none, icp, exact := results["none"], results["ICP"], results["exact directory (MD5), 1 %"]
	if none.Remote != 0 || none.Missed == 0 || none.Queries+none.Updates != 0 {
		t.Errorf("none: %+v", none)
	}
	if icp.Missed != 0 || icp.FalseHits != 0 || icp.Remote == 0 || icp.Queries != 2*3*(len(c.requests)-icp.Local) {
		t.Errorf("ICP: %+v", icp)
	}
	for name, r := range results {
		if name == "none" || name == "ICP" || owned[name] || strings.HasPrefix(name, "ours") && name != "ours, copies as all else" {
			continue
		}
		// All ways store what they fetch, so local hits hardly differ, and none finds more than
		// the one that asks all caches.
		if math.Abs(float64(r.Local-icp.Local)) > 0.03*float64(icp.Local) || float64(r.Remote) > 1.01*float64(icp.Remote) || r.Updates == 0 && !strings.Contains(name, "hourly") {
			t.Errorf("%s: %+v, and ICP %+v", name, r, icp)
		}
	}
	// A false positive is a false hit; more bits and fresher digests have fewer.
	misses := float64(len(c.requests) - exact.Local)
	// A cache that knows the holder fetches from it, so only failed fetches count as queries.
	for name, r := range results {
		if name == "ICP" || owned[name] {
			continue
		}
		if vain := r.FalseHits + r.Stale; r.Queries < 2*r.FalseHits || r.Queries > 2*3*vain {
			t.Errorf("%s: %d query messages for %d fetches that failed", name, r.Queries, vain)
		}
	}
	eight, exactFalse := results["Summary Cache, 8 bits, 1 %"], float64(exact.FalseHits)
	rate := (float64(eight.FalseHits) - exactFalse) / misses / 3
	if most := lab.FalsePositives(8, 4); rate <= most/10 || rate > 1.2*most {
		t.Errorf("8 bits: %v false positives per lookup, want %v when full", rate, most)
	}
	ours := results["our digests, 1 %"]
	if vain := (float64(ours.FalseHits) - exactFalse) / misses; vain > 1.5*PlannedCandidates {
		t.Errorf("ours: %v false candidates per miss, planned %v", vain, PlannedCandidates)
	}
	if fine := results["our digests, 0.1 %"]; fine.Missed > ours.Missed || fine.Updates <= ours.Updates {
		t.Errorf("ours at 0.1 %%: %+v, at 1 %%: %+v", fine, ours)
	}
	// At this trace's rate a running peer waits in order to batch changes, and misses little by
	// that. Truncated hashes find as much.
	run := results["ours, copies as all else"]
	if run.Updates == 0 || run.Updates >= ours.Updates || run.Missed > len(c.requests)/100 {
		t.Errorf("ours: %+v, at 1 %%: %+v", run, ours)
	}
	hashes := results["truncated hashes, 24 bits, when ours would"]
	if math.Abs(float64(hashes.Remote-run.Remote)) > 0.02*float64(run.Remote) || hashes.FalseHits > run.FalseHits {
		t.Errorf("truncated hashes: %+v, ours: %+v", hashes, run)
	}
	// All of an owner's misses, except those of its own requests, are moved through it.
	one, hot, two := results["one owner per key"], results["one owner per key, and hot caches (groupcache)"], results["two owners per key"]
	if one.Updates != 0 || one.Queries/2 != one.Moved-one.Remote || hot.Local <= one.Local || hot.Moved >= one.Moved ||
		two.Updates == 0 || two.Local <= one.Local || two.Local+two.Remote >= one.Local+one.Remote || two.Queries <= one.Queries {
		t.Errorf("one owner: %+v, with hot caches: %+v, two owners: %+v", one, hot, two)
	}
	again, fast := results["ours, copies only on a second request"], results["ours, requests 100 times as fast"]
	if again.Local >= run.Local || again.Local+again.Remote < run.Local+run.Remote || again.Moved != again.Remote {
		t.Errorf("on a second request: %+v, at once: %+v", again, run)
	}
	if few := results["ours"]; fast.Updates >= few.Updates || fast.Missed <= few.Missed {
		t.Errorf("a hundred times as fast: %+v, at the trace's rate %+v", fast, few)
	}
}

// TestFewCopies: a cluster in which full caches evict copies first has about as many hits as
// one that stores no copies, and more than one that treats them like other objects.
func TestFewCopies(t *testing.T) {
	if raceEnabled {
		t.Skip("replays one way after the other, in one goroutine")
	}
	c := clusterOf(invented(20_000), 0.1)
	total := map[string]float64{}
	local := map[string]float64{}
	for _, w := range c.Ways() {
		switch w.Name {
		case "one owner per key", "ours", "ours, copies as all else":
			r, err := c.Replay(w)
			if err != nil {
				t.Fatal(err)
			}
			total[w.Name] = 100 * float64(r.Local+r.Remote) / float64(len(c.requests))
			local[w.Name] = 100 * float64(r.Local) / float64(len(c.requests))
		}
	}
	if total["ours"] < total["one owner per key"]-0.5 || total["ours"] < total["ours, copies as all else"]+1 || local["ours"] < 1.8*local["one owner per key"] {
		t.Errorf("total hits %v, local hits %v %%", total, local)
	}
}
