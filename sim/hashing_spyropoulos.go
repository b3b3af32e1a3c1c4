package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

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
func spyropoulos(job *Job) {
	const members = 3
	prime := nextPrime(3 * members)
	table := job.Table(fmt.Sprintf("Spyropoulos's example: h1 = x mod m, h2 = 5x+4 mod m; as printed for m = 10, and for m = %d, the first prime from 3·%d on", prime, members),
		Column{Name: "step"}, Column{Name: "x"}, Column{Name: "published"}, Column{Name: "computed"}, Column{Name: "agrees"},
		Column{Name: "filter", Head: "m = 10"}, Column{Name: "prime_positions", Head: "mod prime"}, Column{Name: "prime_filter", Head: "m prime"})
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
		acceptedShare(ten, 10), 100*falsePositives(10.0/members, 2), prime, acceptedShare(other, prime))
	table.Note("A prime does not make the two independent: 5x+4 is a function of x mod m, so a number with a member's residue is accepted, at any k.")
	table.Note("The proposal of section 6, k = 3 with m the first prime from 3n on, has f = %.3f; k = 2 has %.3f at the same m, since ln 2·3 = %.2f.",
		falsePositives(3, 3), falsePositives(3, 2), bestHashes(3))
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
