package digest_test

import (
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

// A replica that has to take less memory is folded: it still says yes for every key,
// and for twice as many others.
func ExampleFilter_Fold() {
	g, _ := digest.GeometryFor(1_000, 0.01)
	held, _ := digest.NewCountingFilter(g, 1)
	for i := range 1_000 {
		held.Add(digest.KeyOfString(0, fmt.Sprint("object ", i)))
	}
	f := held.Advance()
	half, err := f.Fold()
	if err != nil {
		panic(err) // of odd geometries
	}
	fmt.Println(half.MayContain(digest.KeyOfString(0, "object 7")), half.MemoryBytes() < f.MemoryBytes())
	fmt.Printf("%.2f %%, %.2f %%\n", 100*f.FalsePositiveRate(), 100*half.FalsePositiveRate())
	// Output:
	// true true
	// 0.99 %, 1.98 %
}

// One filter for all that a rack holds, to be told to the others in its stead.
func ExampleFilter_Union() {
	g := digest.Geometry{Bits: 1 << 20, Hashes: 1}
	apple, pear := digest.KeyOfString(0, "apple"), digest.KeyOfString(0, "pear")
	a, _ := digest.FilterOf(g, digest.Version{Epoch: 1}, slices.Values([]digest.Key{apple}))
	b, _ := digest.FilterOf(g, digest.Version{Epoch: 1}, slices.Values([]digest.Key{pear}))
	both, err := a.Union(b)
	if err != nil {
		panic(err) // of two geometries
	}
	fmt.Println(both.MayContain(apple), both.MayContain(pear), both.Ones(), "positions")
	// Output: true true 2 positions
}
