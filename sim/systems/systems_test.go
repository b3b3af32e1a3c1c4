package systems

import (
	"math"
	"os"
	"path/filepath"
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
		c := &cluster{caches: 2}
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

// invented is a trace of clients that share most of their objects.
func invented(requests int) *workload.Trace {
	return workload.Synthetic(workload.Model{Requests: requests, Objects: 600, Exponent: 0.8, Clients: 256, Private: 0.2, Churn: 0.5, Rate: 100, Seed: 2})
}

// TestReplay compares the ways with each other on one invented trace.
func TestReplay(t *testing.T) {
	if raceEnabled {
		t.Skip("replays one way after the other: TestSystemsEvictByOtter does it at once")
	}
	job := lab.Quiet(2)
	c := newCluster(invented(10_000), &systemsOptions{caches: 4, capacity: 0.05}, job)
	results, owned := map[string]outcomes{}, map[string]bool{}
	for _, w := range c.ways() {
		owned[w.name] = w.owners > 0
		r, err := c.replay(w)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(w.name, "0.1 %") || w.name == "ours" || w.hot || w.again {
			if again, _ := c.replay(w); again != r {
				t.Errorf("%s: replayed twice, %+v and %+v", w.name, r, again)
			}
		}
		if w.owners == 0 && r.local+r.remote+r.missed+r.stale > len(c.requests) {
			t.Errorf("%s: %+v of %d requests", w.name, r, len(c.requests))
		}
		results[w.name] = r
	}
	none, icp, exact := results["none"], results["ICP"], results["exact directory (MD5), 1 %"]
	if none.remote != 0 || none.missed == 0 || none.queries+none.updates != 0 {
		t.Errorf("none: %+v", none)
	}
	if icp.missed != 0 || icp.falseHits != 0 || icp.remote == 0 || icp.queries != 2*3*(len(c.requests)-icp.local) {
		t.Errorf("ICP: %+v", icp)
	}
	for name, r := range results {
		if name == "none" || name == "ICP" || owned[name] || strings.HasPrefix(name, "ours") && name != "ours, copies as all else" {
			continue
		}
		// All ways store what they fetch, so local hits hardly differ, and none finds more than
		// the one that asks all caches.
		if math.Abs(float64(r.local-icp.local)) > 0.03*float64(icp.local) || float64(r.remote) > 1.01*float64(icp.remote) || r.updates == 0 && !strings.Contains(name, "hourly") {
			t.Errorf("%s: %+v, and ICP %+v", name, r, icp)
		}
	}
	// A false positive is a false hit; more bits and fresher digests have fewer.
	misses := float64(len(c.requests) - exact.local)
	// A cache that knows the holder fetches from it, so only failed fetches count as queries.
	for name, r := range results {
		if name == "ICP" || owned[name] {
			continue
		}
		if vain := r.falseHits + r.stale; r.queries < 2*r.falseHits || r.queries > 2*3*vain {
			t.Errorf("%s: %d query messages for %d fetches that failed", name, r.queries, vain)
		}
	}
	eight, exactFalse := results["Summary Cache, 8 bits, 1 %"], float64(exact.falseHits)
	rate := (float64(eight.falseHits) - exactFalse) / misses / 3
	if most := lab.FalsePositives(8, 4); rate <= most/10 || rate > 1.2*most {
		t.Errorf("8 bits: %v false positives per lookup, want %v when full", rate, most)
	}
	ours := results["our digests, 1 %"]
	if vain := (float64(ours.falseHits) - exactFalse) / misses; vain > 1.5*plannedCandidates {
		t.Errorf("ours: %v false candidates per miss, planned %v", vain, plannedCandidates)
	}
	if fine := results["our digests, 0.1 %"]; fine.missed > ours.missed || fine.updates <= ours.updates {
		t.Errorf("ours at 0.1 %%: %+v, at 1 %%: %+v", fine, ours)
	}
	// At this trace's rate a running peer waits in order to batch changes, and misses little by
	// that. Truncated hashes find as much.
	run := results["ours, copies as all else"]
	if run.updates == 0 || run.updates >= ours.updates || run.missed > len(c.requests)/100 {
		t.Errorf("ours: %+v, at 1 %%: %+v", run, ours)
	}
	hashes := results["truncated hashes, 24 bits, when ours would"]
	if math.Abs(float64(hashes.remote-run.remote)) > 0.02*float64(run.remote) || hashes.falseHits > run.falseHits {
		t.Errorf("truncated hashes: %+v, ours: %+v", hashes, run)
	}
	// All of an owner's misses, except those of its own requests, are moved through it.
	one, hot, two := results["one owner per key"], results["one owner per key, and hot caches (groupcache)"], results["two owners per key"]
	if one.updates != 0 || one.queries/2 != one.moved-one.remote || hot.local <= one.local || hot.moved >= one.moved ||
		two.updates == 0 || two.local <= one.local || two.local+two.remote >= one.local+one.remote || two.queries <= one.queries {
		t.Errorf("one owner: %+v, with hot caches: %+v, two owners: %+v", one, hot, two)
	}
	again, fast := results["ours, copies only on a second request"], results["ours, requests 100 times as fast"]
	if again.local >= run.local || again.local+again.remote < run.local+run.remote || again.moved != again.remote {
		t.Errorf("on a second request: %+v, at once: %+v", again, run)
	}
	if few := results["ours"]; fast.updates >= few.updates || fast.missed <= few.missed {
		t.Errorf("a hundred times as fast: %+v, at the trace's rate %+v", fast, few)
	}
}

// TestFewCopies: a cluster in which full caches evict copies first has about as many hits as
// one that stores no copies, and more than one that treats them like other objects.
func TestFewCopies(t *testing.T) {
	if raceEnabled {
		t.Skip("replays one way after the other: TestSystemsEvictByOtter does it at once")
	}
	job := lab.Quiet(2)
	c := newCluster(invented(20_000), &systemsOptions{caches: 4, capacity: 0.1}, job)
	total := map[string]float64{}
	local := map[string]float64{}
	for _, w := range c.ways() {
		switch w.name {
		case "one owner per key", "ours", "ours, copies as all else":
			r, err := c.replay(w)
			if err != nil {
				t.Fatal(err)
			}
			total[w.name] = 100 * float64(r.local+r.remote) / float64(len(c.requests))
			local[w.name] = 100 * float64(r.local) / float64(len(c.requests))
		}
	}
	if total["ours"] < total["one owner per key"]-0.5 || total["ours"] < total["ours, copies as all else"]+1 || local["ours"] < 1.8*local["one owner per key"] {
		t.Errorf("total hits %v, local hits %v %%", total, local)
	}
}

func TestSystemsRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte("0 - a 1\n0 - b\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{path}, 1, path + ":2: 3 fields"},
		{[]string{path, path}, 2, "want one TRACE"},
		{[]string{path + "x"}, 1, "no such file"},
		{[]string{path, "--caches", "1"}, 2, "caches: 1: want 2 to 64"},
		{[]string{path, "--capacity", "0"}, 2, "capacity: 0: want"},
		{[]string{path, "--capacity", "NaN"}, 2, "capacity: NaN: want"},
		{[]string{path, "--synthetic"}, 2, "want --synthetic or "},
		{[]string{"--synthetic", "--requests", "0"}, 2, "requests: 0: want"},
		{[]string{"--synthetic", "--objects", "-1"}, 2, "objects: -1: want"},
		{[]string{"--synthetic", "--zipf", "-1"}, 2, "zipf: -1: want"},
		{[]string{"--synthetic", "--private", "2"}, 2, "private: 2: want"},
		{[]string{"--synthetic", "--churn", "-1"}, 2, "churn: -1: want"},
	} {
		code, out, errs := call(t, append([]string{"systems"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("systems %q = %d, prints %q and says %q; want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
	}
	if code, out, errs := call(t, "systems", path, "--skip", "--caches", "2", "--capacity", "1"); code != 0 || !strings.Contains(out, "1 requests for 1 objects") || !strings.Contains(out, "1 broken lines") || strings.Contains(out, "no times") {
		t.Errorf("systems --skip = %d, %q, %q", code, out, errs)
	}
	if err := os.WriteFile(path, []byte("7 - a 1\n8 - b 1\n9 - a 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := call(t, "systems", path); code != 0 || !strings.Contains(out, "The trace has no times") {
		t.Errorf("systems of a trace that numbers its requests = %d, %q", code, out)
	}
}
