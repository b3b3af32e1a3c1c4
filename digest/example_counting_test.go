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
	store = store[:1] // an object was lost with its disk
	if !again.Verify(slices.Values(store)) {
		err = again.Rebuild(g, slices.Values(store))
	}
	fmt.Println("after the loss:", again.Verify(slices.Values(store)), again.Len(), err)
	// Output:
	// as it was: true
	// after the loss: true 1 <nil>
}

// A filter that grew too full gets a larger geometry while it is in use.
func ExampleCountingFilter_Rebuild() {
	small, _ := digest.GeometryFor(100, 0.01)
	held, _ := digest.NewCountingFilter(small, 1)
	var cache []digest.Key // what the cache holds
	for i := range 1000 {
		cache = append(cache, digest.KeyOfString(0, fmt.Sprint(i)))
		held.Add(cache[i])
	}
	fmt.Printf("%.1f %%\n", 100*held.Advance().FalsePositiveRate())

	large, _ := digest.GeometryFor(1000, 0.01)
	if err := held.Rebuild(large, slices.Values(cache)); err != nil {
		panic(err)
	}
	fmt.Printf("%.1f %%, epoch %d\n", 100*held.Current().FalsePositiveRate(), held.Current().Version().Epoch)
	// Output:
	// 9.4 %
	// 1.0 %, epoch 2
}
