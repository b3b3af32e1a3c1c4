package digest_test

import (
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/digest"
)

// A cache that starts warm: its filter is saved, loaded, and compared with the contents of the
// store before it is advertised.
func ExampleCountingFilter_Verify() {
	store := []digest.Key{digest.KeyOfString(0, "a"), digest.KeyOfString(0, "b")}
	g, _ := digest.GeometryFor(1_000, 0.001)
	held, _ := digest.NewCountingFilter(g, 1)
	for _, k := range store {
		held.Add(k)
	}
	saved := held.AppendTo(nil)

	// After the restart:
	again, err := digest.DecodeCountingFilter(saved, digest.Limits{})
	if err != nil {
		panic(err) // then begin with an empty one
	}
	fmt.Println("as it was:", again.Verify(slices.Values(store)))
	store = store[:1]                                                  // an object was lost with its disk
	fmt.Println("after the loss:", again.Verify(slices.Values(store))) // then begin with an empty one, too
	// Output:
	// as it was: true
	// after the loss: false
}

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
