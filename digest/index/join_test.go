package index

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestExpect: an index that knows how many peers will come moves few codes, and still fewer if they come together. It
// ends with the same contents in hardly more memory.
func TestExpect(t *testing.T) {
	const peers, n = 40, 5000
	work, memory := map[string]int{}, map[string]int{}
	for name, how := range map[string]struct{ expect, together int }{
		"unknown": {0, 1}, "expected": {peers, 1}, "more came": {3, 1}, "together": {peers, 10}, "together, unknown": {0, 10},
	} {
		x := New()
		x.Expect(how.expect)
		filters := loop{}
		var changes []Change
		for i := range peers {
			name := fmt.Sprint(i)
			g := digest.Geometry{Bits: uint64(n * (1000 + i%3)), Hashes: 1}
			filters[name] = filterOf(t, g, digest.Version{Epoch: 1}, randomKeys(random(uint64(i)), n))
			if changes = append(changes, Change{Peer: name, Next: filters[name]}); len(changes) < how.together {
				continue
			}
			if err := x.Apply(changes...); err != nil {
				t.Fatal(err)
			}
			changes = nil
		}
		audit(t, x, filters)
		work[name], memory[name] = x.table.work, x.MemoryBytes()
	}
	moved := func(how string) int { return work[how] - peers*n } // beside those that were added
	if work["expected"] > work["unknown"]*4/5 || work["more came"] > work["unknown"]*5/4 ||
		moved("together") > moved("expected")/2 || moved("together, unknown") > moved("unknown")/2 {
		t.Errorf("the work is %v", work)
	}
	for name, bytes := range memory {
		if bytes > memory["unknown"]*13/10 {
			t.Errorf("the bytes are %d if %s, of %d", bytes, name, memory["unknown"])
		}
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
