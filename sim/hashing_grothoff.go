package main

import "math"

// grothoff checks a claim about a random choice between two numbers of hashes, such that half
// of the positions are set on average. The claim is that its f lies between those of the two.
func grothoff(job *Job, lookups int) {
	table := job.Table("Grothoff: a random choice between two whole k for each key, so that kn/m = ln 2; n = 10,000",
		Column{Name: "mn", Head: "b = m/n", Format: "%g"}, Column{Name: "continuous", Head: "b ln 2", Format: "%.3f"},
		Column{Name: "nearest", Head: "nearest k"}, Column{Name: "best", Head: "best k"},
		Column{Name: "low", Head: "f of lower k", Format: "%.5g"}, Column{Name: "high", Head: "f of upper k", Format: "%.5g"},
		Column{Name: "between", Head: "linear combination", Format: "%.5g"}, Column{Name: "choice", Head: "f of the choice", Format: "%.5g"},
		Column{Name: "measured", Format: "%.5g", Loose: AnyValue})
	for i, mn := range []float64{2.1, 5, 8, 12, 16} {
		k := bestHashes(mn)
		low := math.Floor(k)
		share := k - low // of the keys that take the upper k
		f1, f2 := falsePositives(mn, low), falsePositives(mn, low+1)
		// Half of the positions are set. A key that is looked up has the lower or the upper k.
		choice := (1-share)*math.Pow(0.5, low) + share*math.Pow(0.5, low+1)
		measured := measureChoice(job, uint64(i), mn, int(low), share, min(lookups, 1_000_000))
		table.Row(mn, figures(k, 5), int(math.Round(k)), bestInteger(mn), figures(f1, 6), figures(f2, 6),
			figures((1-share)*f1+share*f2, 6), figures(choice, 6), figures(measured, 4))
	}
	table.Note("The document's conclusion is right, but not its reason: the choice is no linear combination of the two f. It is worse than either, since both kinds of keys share one array.")
	table.Note("It is right that both neighbours of b ln 2 must be tried: at b = 2.1 the nearest whole number is not the best.")
}

// measureChoice adds keys: a share of them takes low+1 hashes, and the others low. Then it
// looks up other keys, which choose in the same way.
func measureChoice(job *Job, label uint64, mn float64, low int, share float64, lookups int) float64 {
	const n = 10_000
	m := uint64(math.Round(mn * n))
	rng := job.source(5, label)
	words := newBitmap(m)
	upper := func() int {
		if float64(rng.Uint64()>>11)/(1<<53) < share {
			return low + 1
		}
		return low
	}
	for range n {
		for range upper() {
			words.set(below(rng, m))
		}
	}
	hits := 0
lookup:
	for range lookups {
		for range upper() {
			if !words.has(below(rng, m)) {
				continue lookup
			}
		}
		hits++
	}
	return float64(hits) / float64(lookups)
}
