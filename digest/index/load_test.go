package index

import (
	"fmt"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestLoadBesideRows: a large peer is added with a key that so many others have that its position is
// shared, and then loses it.
func TestLoadBesideRows(t *testing.T) {
	const m = 1 << 24
	rng := random(1)
	common := digest.Key(rng.Uint64())
	x := New()
	filters := loop{}
	set := func(name string, keys []digest.Key) *digest.CountingFilter {
		c := counting(t, digest.Geometry{Bits: m, Hashes: 1}, keys...)
		filters[name] = c.Advance()
		if err := x.Set(name, filters[name]); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for i := range 60 {
		set(fmt.Sprint("small", i), append(randomKeys(rng, 40), common))
	}
	set("large", append(randomKeys(rng, 20_000), common)) // the segments are written anew, with rows
	last := set("last", append(randomKeys(rng, 20_000), common))
	audit(t, x, filters)
	last.Remove(common)
	next, d := last.AdvanceDelta()
	if err := x.Apply(Change{"last", d, next}); err != nil {
		t.Fatal(err)
	}
	filters["last"] = next
	audit(t, x, filters)
	if got := x.Lookup(nil, common); len(got) != 61 {
		t.Errorf("%d peers have the common key, want 61", len(got))
	}
}
