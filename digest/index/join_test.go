package index

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestTogether: the filters of peers that come together move fewer codes than one by one. The index ends with the same
// contents in hardly more memory.
func TestTogether(t *testing.T) {
	const peers, n = 40, 5000
	work, memory := map[string]int{}, map[string]int{}
	for how, together := range map[string]int{"one by one": 1, "together": 10} {
		x := New()
		filters := loop{}
		var changes []Change
		for i := range peers {
			name := fmt.Sprint(i)
			g := digest.Geometry{Bits: uint64(n * (1000 + i%3)), Hashes: 1}
			filters[name] = filterOf(t, g, digest.Version{Epoch: 1}, randomKeys(random(uint64(i)), n))
			if changes = append(changes, Change{Peer: name, Next: filters[name]}); len(changes) < together {
				continue
			}
			if err := x.Apply(changes...); err != nil {
				t.Fatal(err)
			}
			changes = nil
		}
		audit(t, x, filters)
		work[how], memory[how] = x.table.work, x.MemoryBytes()
	}
	moved := func(how string) int { return work[how] - peers*n } // beside those that were added
	if moved("together") > moved("one by one")/2 {
		t.Errorf("the work is %v", work)
	}
	if memory["together"] > memory["one by one"]*13/10 {
		t.Errorf("the bytes are %v", memory)
	}
}

// TestOthersWhileOneIsSet: while a large filter is set, others change after at most restAfter of work and one
// segment: by deltas, in place and not, also the peer itself, and one that a limit forgets. Whatever happens
// meanwhile, the index then has what its filters have.
func TestOthersWhileOneIsSet(t *testing.T) {
	const n = 150_000
	for _, row := range []string{"another changes", "it changes itself", "it is forgotten", "codes become longer"} {
		t.Run(row, func(t *testing.T) {
			rng := random(3)
			x := New()
			filters := loop{}
			g := digest.Geometry{Bits: n * 1000, Hashes: 1}
			held := map[string]*digest.CountingFilter{}
			for _, name := range []string{"large", "other"} {
				held[name] = counting(t, g, randomKeys(rng, 20_000)...)
				filters[name] = held[name].Advance()
				if err := x.Set(name, filters[name]); err != nil {
					t.Fatal(err)
				}
			}
			large := filterOf(t, g, digest.Version{Epoch: 2}, randomKeys(rng, n))
			rests, most, last := 0, 0, 0
			x.write.Lock()
			before := x.peers["large"]
			var rest func()
			rest = func() {
				rests++
				most = max(most, x.table.codes-last)
				x.table.pause = nil
				x.write.Unlock()
				switch row {
				case "another changes", "it changes itself":
					name := map[string]string{"another changes": "other", "it changes itself": "large"}[row]
					held[name].Add(digest.Key(rng.Uint64()))
					next, d := held[name].AdvanceDelta()
					if !x.applied(name, d, next) {
						t.Errorf("the %d. change is not applied", rests)
					}
					filters[name] = next
				case "it is forgotten":
					x.write.Lock()
					if x.peers["large"] == before && before != nil {
						x.forget(before)
						before = nil
					}
					x.write.Unlock()
				case "codes become longer":
					x.write.Lock()
					if rests == 3 {
						x.table.reshape(planFor(x.table.present(), 8*x.table.fields(), 0))
					}
					x.write.Unlock()
				}
				x.write.Lock()
				x.table.pause = rest
				last = x.table.codes
			}
			x.table.pause = rest
			if err := x.set([]Change{{"large", nil, large}}); err != nil {
				t.Fatal(err)
			}
			x.table.pause = nil
			x.write.Unlock()
			filters["large"] = large
			audit(t, x, filters)
			if rests < n/restAfter/4 || most > n/2 { // a segment has some tens of thousands
				t.Errorf("%d rests, and up to %d codes between two", rests, most)
			}
		})
	}
}
