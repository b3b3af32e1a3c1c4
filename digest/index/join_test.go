package index

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestExpect: an index that knows how many peers will come moves few codes, and ends with the same
// contents in hardly more memory.
func TestExpect(t *testing.T) {
	const peers, n = 40, 5000
	work, memory := map[int]int{}, map[int]int{}
	for _, expect := range []int{0, peers, 3} {
		x := New()
		x.Expect(expect)
		filters := loop{}
		for i := range peers {
			name := fmt.Sprint(i)
			g := digest.Geometry{Bits: uint64(n * (1000 + i%3)), Hashes: 1}
			filters[name] = filterOf(t, g, digest.Version{Epoch: 1}, randomKeys(random(uint64(i)), n))
			if err := x.set(name, nil, filters[name]); err != nil { // not Set, which begins to count anew at each rest
				t.Fatal(err)
			}
		}
		audit(t, x, filters)
		work[expect], memory[expect] = x.table.work, x.MemoryBytes()
	}
	if work[peers] > work[0]*4/5 || work[3] > work[0]*5/4 {
		t.Errorf("the work is %v", work)
	}
	if memory[peers] > memory[0]*13/10 {
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
					if e := x.peers["large"]; e != nil {
						x.forget(e)
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
			if err := x.set("large", nil, large); err != nil {
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

// TestZeroIndex: what would be a nil pointer says what to do.
func TestZeroIndex(t *testing.T) {
	f := filterOf(t, digest.Geometry{Bits: 1000, Hashes: 1}, digest.Version{Epoch: 1}, nil)
	for name, do := range map[string]func(){
		"Set":    func() { new(Index).Set("a", f) },
		"Lookup": func() { new(Index).Lookup(nil, 1) },
		"Delete": func() { new(Index).Delete("a") },
		"nil":    func() { (*Index)(nil).Set("a", f) },
		"filter": func() { New().Set("a", nil) },
		"Apply":  func() { New().Apply("a", nil, nil) },
		"Len":    func() { new(Index).Len() },
	} {
		func() {
			defer func() {
				if said, ok := recover().(string); !ok {
					t.Errorf("%s: panic of %T: it does not say what to do", name, said)
				}
			}()
			do()
			t.Errorf("%s did not panic", name)
		}()
	}
}
