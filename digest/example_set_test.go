package digest_test

import (
	"fmt"

	"github.com/summarycache/summarycache/digest"
)

// A set that outgrows its plan gets a larger filter while it is in use.
func ExampleSet() {
	held, err := digest.PlanSet(100, 0.01, digest.Opaque, 0, 1) // keys, rate, profile, seed, epoch
	if err != nil {
		panic(err)
	}
	for i := range 1000 {
		held.Add(digest.KeyOfString(0, fmt.Sprint(i)))
		held.Add(digest.KeyOfString(0, fmt.Sprint(i))) // is there already
	}
	held.Remove(digest.KeyOfString(0, "7"))
	f := held.Filter().Advance() // freezes what is held now
	fmt.Println(held.Len(), "keys, of which the filter has", f.Keys())
	// Output:
	// 999 keys, of which the filter has 999
}
