package digest_test

import (
	"fmt"

	"github.com/summarycache/summarycache/digest"
)

func Example() {
	seed := digest.SeedFrom([]byte("what only the cluster knows"))
	geometry, _ := digest.PlanForError(100_000, 0.001)
	geometry.Seed = seed

	// In the cache that publishes:
	held, _ := digest.NewCountingFilter(geometry, 1)
	held.Add(digest.KeyOfString(seed, "GET http://example.com/"))
	snapshot := held.Advance().AppendTo(nil)

	// In the one that listens:
	index := digest.NewIndex()
	filter, err := digest.DecodeFilter(snapshot, digest.Limits{Seed: seed})
	if err != nil {
		fmt.Println(err)
		return
	}
	index.Set("west", filter)
	for _, match := range index.Lookup(nil, digest.KeyOfString(seed, "GET http://example.com/")) {
		fmt.Println(match.Peer, "may have it")
	}
	// Output: west may have it
}

func ExampleDelta_Apply() {
	geometry, _ := digest.PlanForError(1_000, 0.001)
	held, _ := digest.NewCountingFilter(geometry, 1)
	held.Add(1 << 60)
	before := held.Advance()
	held.Remove(1 << 60)
	held.Add(2 << 60)
	_, delta := held.AdvanceDelta()
	message := delta.AppendTo(nil, before)

	// A replica that holds the version before:
	received, err := digest.DecodeDelta(message, before, digest.Limits{})
	if err != nil {
		fmt.Println(err) // ErrBase: ask for the whole filter
		return
	}
	after, err := received.Apply(before)
	fmt.Println(after.MayContain(1<<60), after.MayContain(2<<60), err)
	// Output: false true <nil>
}
