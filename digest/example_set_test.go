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
	held.Settle() // wait for the goroutine that plans it anew
	f := held.Filter().Advance()
	fmt.Println(held.Len(), "keys, at most one false positive in 100:", f.FalsePositiveRate() <= 0.01)
	// Output:
	// 999 keys, at most one false positive in 100: true
}
