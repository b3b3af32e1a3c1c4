package index

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// What rewrites much of the table, or all of it, lets others change in between, and the index is right
// afterwards: a change of the shape, a sweep, and a filter that replaces one without a delta.
func TestOthersWhileMuchIsRewritten(t *testing.T) {
	const peers, n = 12, 40_000
	g := digest.Geometry{Bits: n * 1000, Hashes: 1}
	name := func(i int) string { return fmt.Sprintf("peer-%d", i) }
	for _, row := range []struct {
		what    string
		rewrite func(x *Index, filters loop, fresh *digest.Filter)
		rests   int // at least
		refused bool
	}{
		{"a new shape", func(x *Index, filters loop, _ *digest.Filter) {
			x.table.reshape(planFor(x.table.present(), 8*x.table.fields(), 0))
		}, peers * n / restAfter / movedAsOne / 2, false},
		{"a sweep", func(x *Index, filters loop, _ *digest.Filter) {
			for i := 7; i < 9; i++ {
				x.forget(x.peers[name(i)])
				delete(filters, name(i))
			}
			x.table.sweepSome(n)
		}, 2, false},
		{"a filter without a delta", func(x *Index, filters loop, fresh *digest.Filter) {
			if err := x.set([]Change{{name(0), nil, fresh}}); err != nil {
				t.Fatal(err)
			}
			filters[name(0)] = fresh
		}, n / restAfter / 2, true},
	} {
		t.Run(row.what, func(t *testing.T) {
			rng := random(3)
			x, filters, held := New(), loop{}, map[string]*digest.CountingFilter{}
			for i := range peers {
				held[name(i)] = counting(t, g, randomKeys(rng, n)...)
				filters[name(i)] = held[name(i)].Advance()
				if err := x.Set(name(i), filters[name(i)]); err != nil {
					t.Fatal(err)
				}
			}
			rests := 0
			x.write.Lock()
			var rest func()
			rest = func() {
				rests++
				x.table.pause = nil
				x.write.Unlock()
				for i, peer := range []string{name(5), name(0)} {
					held[peer].Add(digest.Key(rng.Uint64()))
					next, d := held[peer].AdvanceDelta()
					if applied := x.applied(peer, d, next); applied != (i == 0 || !row.refused) {
						t.Errorf("%d. rest: a change of %s is applied: %v", rests, peer, applied)
					} else if applied {
						filters[peer] = next
					}
				}
				x.write.Lock()
				x.table.pause = rest
			}
			x.table.pause = rest
			row.rewrite(x, filters, filterOf(t, g, digest.Version{Epoch: 2}, randomKeys(rng, n)))
			x.table.pause = nil
			x.write.Unlock()
			audit(t, x, filters)
			if rests < row.rests {
				t.Errorf("%d rests, want at least %d", rests, row.rests)
			}
		})
	}
}

// Segments that grow, or are refreshed, before a change of the shape comes to them get as many lines as its
// codes need.
func TestSegmentsOfTheFormerShape(t *testing.T) {
	rng := random(3)
	x, filters := New(), loop{}
	g := digest.Geometry{Bits: 2e7, Hashes: 1}
	for i := range 4 {
		name := fmt.Sprint(i)
		filters[name] = filterOf(t, g, digest.Version{Epoch: 1}, randomKeys(rng, 20_000))
		if err := x.Set(name, filters[name]); err != nil {
			t.Fatal(err)
		}
	}
	x.write.Lock()
	defer x.write.Unlock()
	table := &x.table
	former := table.shape
	table.shape = newShape(planFor(table.present(), 8*table.fields(), 0), table.present())
	if table.shape.density <= former.density {
		t.Fatalf("a density of %d after %d: codes do not become shorter", table.shape.density, former.density)
	}
	turn := 0
	table.each(func(s *segment) {
		switch turn++; turn % 3 {
		case 0:
			table.grow(s)
		case 1:
			table.refresh(s)
		}
	})
	for table.sweep.begin(); table.sweep.runs; {
		table.sweepNext()
	}
	x.write.Unlock()
	audit(t, x, filters)
	x.write.Lock()
}
