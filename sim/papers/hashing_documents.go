package papers

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/summarycache/summarycache/sim/lab"
)

// grothoff checks a claim about a random choice between two numbers of hashes, such that half
// of the positions are set on average. The claim is that its f lies between those of the two.
func grothoff(job *lab.Job, lookups int) {
	table := job.Table("Grothoff: a random choice between two whole k for each key, so that kn/m = ln 2; n = 10,000",
		lab.Column{Name: "mn", Head: "b = m/n", Format: "%g"}, lab.Column{Name: "continuous", Head: "b ln 2", Format: "%.3f"},
		lab.Column{Name: "nearest", Head: "nearest k"}, lab.Column{Name: "best", Head: "best k"},
		lab.Column{Name: "low", Head: "f of lower k", Format: "%.5g"}, lab.Column{Name: "high", Head: "f of upper k", Format: "%.5g"},
		lab.Column{Name: "between", Head: "linear combination", Format: "%.5g"}, lab.Column{Name: "choice", Head: "f of the choice", Format: "%.5g"},
		lab.Column{Name: "measured", Format: "%.5g", Loose: lab.AnyValue})
	for i, mn := range []float64{2.1, 5, 8, 12, 16} {
		k := lab.BestHashes(mn)
		low := math.Floor(k)
		share := k - low // of the keys that take the upper k
		f1, f2 := lab.FalsePositives(mn, low), lab.FalsePositives(mn, low+1)
		// Half of the positions are set. A key that is looked up has the lower or the upper k.
		choice := (1-share)*math.Pow(0.5, low) + share*math.Pow(0.5, low+1)
		measured := measureChoice(job, uint64(i), mn, int(low), share, min(lookups, 1_000_000))
		table.Row(mn, lab.Round(k, 5), int(math.Round(k)), lab.BestInteger(mn), lab.Round(f1, 6), lab.Round(f2, 6),
			lab.Round((1-share)*f1+share*f2, 6), lab.Round(choice, 6), lab.Round(measured, 4))
	}
	table.Note("The document's conclusion is right, but not its reason: the choice is no linear combination of the two f. It is worse than either, since both kinds of keys share one array.")
	table.Note("It is right that both neighbours of b ln 2 must be tried: at b = 2.1 the nearest whole number is not the best.")
}

// measureChoice adds keys: a share of them takes low+1 hashes, and the others low. Then it
// looks up other keys, which choose in the same way.
func measureChoice(job *lab.Job, label uint64, mn float64, low int, share float64, lookups int) float64 {
	const n = 10_000
	m := uint64(math.Round(mn * n))
	rng := job.Source(5, label)
	words := lab.NewBitmap(m)
	upper := func() int {
		if float64(rng.Uint64()>>11)/(1<<53) < share {
			return low + 1
		}
		return low
	}
	for range n {
		for range upper() {
			words.Set(lab.Below(rng, m))
		}
	}
	hits := 0
lookup:
	for range lookups {
		for range upper() {
			if !words.Has(lab.Below(rng, m)) {
				continue lookup
			}
		}
		hits++
	}
	return float64(hits) / float64(lookups)
}

// spyropoulosPair is the example's two functions of x: x mod m, and 5x+4 mod m.
func spyropoulosPair(x, m uint64) [2]uint64 { return [2]uint64{x % m, (5*x + 4) % m} }

// spyropoulosSteps are the additions and lookups of section 3, as printed:
// the element, its positions for m = 10, and the answer; no answer for an
// addition.
var spyropoulosSteps = []struct {
	x         uint64
	positions [2]uint64
	answer    string
	member    bool
}{
	{19, [2]uint64{9, 9}, "", true},
	{132, [2]uint64{2, 4}, "", true},
	{25, [2]uint64{5, 9}, "", true},
	{133, [2]uint64{3, 9}, "no", false},
	{25, [2]uint64{5, 9}, "yes", true},
	{24, [2]uint64{4, 4}, "yes", false},
}

// spyropoulos repeats the example of his section 3, for the printed m and for the prime that
// his section 6 proposes.
func spyropoulos(job *lab.Job) {
	const members = 3
	prime := nextPrime(3 * members)
	table := job.Table(fmt.Sprintf("Spyropoulos's example: h1 = x mod m, h2 = 5x+4 mod m; as printed for m = 10, and for m = %d, the first prime from 3·%d on", prime, members),
		lab.Column{Name: "step"}, lab.Column{Name: "x"}, lab.Column{Name: "published"}, lab.Column{Name: "computed"}, lab.Column{Name: "agrees"},
		lab.Column{Name: "filter", Head: "m = 10"}, lab.Column{Name: "prime_positions", Head: "mod prime"}, lab.Column{Name: "prime_filter", Head: "m prime"})
	ten, other := bytes.Repeat([]byte("0"), 10), bytes.Repeat([]byte("0"), int(prime))
	answer := func(filter []byte, positions [2]uint64) string {
		if filter[positions[0]] == '1' && filter[positions[1]] == '1' {
			return "yes"
		}
		return "no"
	}
	for _, s := range spyropoulosSteps {
		computed, mod := spyropoulosPair(s.x, 10), spyropoulosPair(s.x, prime)
		published, ours, theirs := pair(s.positions), pair(computed), pair(mod)
		step := "add"
		if s.answer == "" {
			for i := range computed {
				ten[computed[i]], other[mod[i]] = '1', '1'
			}
		} else {
			step = "ask"
			published += " " + s.answer
			ours += " " + answer(ten, computed)
			theirs += " " + answer(other, mod)
			if answer(ten, computed) == "yes" && !s.member {
				step = "ask (false positive)"
			}
		}
		agrees := "yes"
		if published != ours {
			agrees = "NO"
		}
		table.Row(step, s.x, published, ours, agrees, string(ten), theirs, string(other))
	}
	table.Note("Every printed step is right. But h2 mod 10 is 4 or 9 and nothing else (5 divides 10), so after two additions it never says no:")
	table.Note("%s of m = 10 are accepted, where (1-e^(-kn/m))^k promises %.0f %%. With m = %d, %s are.",
		acceptedShare(ten, 10), 100*lab.FalsePositives(10.0/members, 2), prime, acceptedShare(other, prime))
	table.Note("A prime does not make the two independent: 5x+4 is a function of x mod m, so a number with a member's residue is accepted, at any k.")
	table.Note("The proposal of section 6, k = 3 with m the first prime from 3n on, has f = %.3f; k = 2 has %.3f at the same m, since ln 2·3 = %.2f.",
		lab.FalsePositives(3, 3), lab.FalsePositives(3, 2), lab.BestHashes(3))
}

func pair(p [2]uint64) string { return fmt.Sprintf("%d,%d", p[0], p[1]) }

// acceptedShare lists the residues that the filter accepts.
func acceptedShare(filter []byte, m uint64) string {
	var accepted []string
	for x := range m {
		p := spyropoulosPair(x, m)
		if filter[p[0]] == '1' && filter[p[1]] == '1' {
			accepted = append(accepted, fmt.Sprint(x))
		}
	}
	slices.Sort(accepted)
	return fmt.Sprintf("%d %% of all numbers (residues %s)", (100*len(accepted)+int(m)/2)/int(m), strings.Join(accepted, ", "))
}

// nextPrime returns the least prime that is at least m.
func nextPrime(m uint64) uint64 {
	for ; !new(big.Int).SetUint64(m).ProbablyPrime(0); m++ {
	}
	return m
}
