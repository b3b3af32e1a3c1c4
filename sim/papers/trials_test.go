package papers

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/arith"
	"github.com/summarycache/summarycache/sim/lab"
)

// TestTrials compares a few trials of each simulation with theory: means to within five of
// their standard deviations, and each size with the least mean size of sets with as many
// positions.
func TestTrials(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one trial after the other: TestTrialsReproducible runs them at once")
	}
	const trials = 60
	job := lab.Quiet(5)
	for i, s := range paperSimulations {
		var all []sizes
		for trial := range trials {
			work := s.trial(job.Source(uint64(i), uint64(trial)))
			all = append(all, work)
			if least := lab.Log2Choose(s.m, uint64(work.ones)) / 8; float64(work.coded) < least-2 || float64(work.coded) > least+5 {
				t.Errorf("%s: %d ones took %d bytes, and the limit is %.1f", s.name(), work.ones, work.coded, least)
			}
			if s.c > 0 && work.context > work.coded {
				t.Errorf("%s: %d bytes against the old filter, and %d without it", s.name(), work.context, work.coded)
			}
		}
		got := summarise(all, func(z sizes) uint32 { return z.coded })
		if off := got.mean - s.expected(); math.Abs(off) > 5*got.sd/math.Sqrt(trials)+3 {
			t.Errorf("%s: mean %v, want %v", s.name(), got.mean, s.expected())
		}
		if s.sd > 0 && math.Abs(got.sd/s.sd-1) > 5/math.Sqrt(2*trials) {
			t.Errorf("%s: standard deviation %v, the paper's is %v", s.name(), got.sd, s.sd)
		}
		if load := float64(s.n) * float64(s.k) / float64(s.m); s.c == 0 {
			sd := summarise(all, func(z sizes) uint32 { return z.ones }).sd
			if want := lab.OnesSD(float64(s.m), load); math.Abs(sd/want-1) > 5/math.Sqrt(2*trials) {
				t.Errorf("%s: the ones have standard deviation %v, want %v", s.name(), sd, want)
			}
		}
	}
}

// TestCodedAgainst finds the same sets position by position, and codes them.
func TestCodedAgainst(t *testing.T) {
	const m = 333
	job := lab.Quiet(1)
	for trial := range 50 {
		rng := job.Source(uint64(trial))
		before, after := lab.NewBitmap(m), lab.NewBitmap(m)
		for range 80 {
			before.Set(lab.Below(rng, m))
			after.Set(lab.Below(rng, m))
		}
		var wantSets, wantClears, zeros, ones []uint64
		for p := range uint64(m) {
			old, flip := before.Has(p), before.Has(p) != after.Has(p)
			if !old {
				zeros = append(zeros, p)
			} else {
				ones = append(ones, p)
			}
			switch {
			case flip && !old:
				wantSets = append(wantSets, uint64(len(zeros)-1))
			case flip:
				wantClears = append(wantClears, uint64(len(ones)-1))
			}
		}
		want := arith.AppendSet(nil, arith.Adaptive, uint64(len(zeros)), wantSets)
		want = arith.AppendSet(want, arith.Adaptive, uint64(len(ones)), wantClears)
		if got := codedAgainst(before, after, m); int(got) != len(want) {
			t.Errorf("trial %d: %d sets and %d clears in %d bytes, want %d", trial, len(wantSets), len(wantClears), got, len(want))
		}
	}
}

// TestTrialsReproducible runs the same trials on one core and on many.
func TestTrialsReproducible(t *testing.T) {
	one := func(cores int, seed uint64) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		job := lab.Quiet(seed)
		job.Trials = 30
		if err := runTrials(job, []simulation{{n: 200, m: 2000, k: 3, c: 0.1}}); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(job.Tables[0].Rows)
	}
	if a, b := one(1, 7), one(4, 7); a != b {
		t.Errorf("on one core:\n%s\non four:\n%s", a, b)
	}
	if one(1, 7) == one(1, 8) {
		t.Error("seeds 7 and 8 give the same sizes")
	}
}

func TestTrialsRefuses(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"trials 10", "one experiment at a time"},
		{"trials --n 1000", "flag provided but not defined: -n"},
		{"trials --trials 1000000000", "GB for the results"},
	} {
		code, out, says := call(t, strings.Fields(c.args)...)
		if code != 2 || out != "" || !strings.Contains(says, c.says) {
			t.Errorf("run(%s) = %d, prints %q and says %q; want 2 and %q", c.args, code, out, says, c.says)
		}
	}
}
