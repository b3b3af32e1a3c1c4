package digest_test

import (
	"fmt"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

func Example() {
	seed := digest.SeedFrom([]byte("what only the cluster knows"))

	// In the cache that publishes:
	held, _ := digest.PlanSet(100_000, 0.001, digest.Opaque, seed, 1) // 1: greater in each life of the cache
	held.Add(digest.KeyOfString(seed, "GET http://example.com/"))
	snapshot := held.Filter().Advance().AppendTo(nil)

	// In the one that listens:
	peers := index.New()
	filter, err := digest.DecodeFilter(snapshot, digest.Limits{Seed: seed})
	if err != nil {
		fmt.Println(err)
		return
	}
	peers.Set("west", filter)
	for _, match := range peers.Lookup(nil, digest.KeyOfString(seed, "GET http://example.com/")) {
		fmt.Println(match.Peer, "may have it")
	}
	// Output: west may have it
}

func ExampleDelta_Apply() {
	geometry, _ := digest.GeometryFor(1_000, 0.001)
	held, _ := digest.NewCountingFilter(geometry, 1)
	held.Add(1 << 60)
	before := held.Advance()
	held.Remove(1 << 60)
	held.Add(2 << 60)
	_, delta := held.AdvanceDelta()
	message, err := delta.AppendTo(nil, before)
	if err != nil {
		fmt.Println(err) // before is not the delta's base
		return
	}

	// A replica that holds the version before:
	received, err := digest.DecodeDelta(message, before, digest.Limits{})
	if err != nil {
		fmt.Println(err) // ErrBase: request a snapshot
		return
	}
	after, err := received.Apply(before)
	fmt.Println(after.MayContain(1<<60), after.MayContain(2<<60), err)
	// Output: false true <nil>
}

// A history brings a replica up to date with one delta, however old its version is.
func ExampleHistory() {
	seed := digest.SeedFrom([]byte("what only the cluster knows"))
	held, _ := digest.PlanSet(1000, 0.001, digest.Opaque, seed, 1)
	history := digest.NewHistory(1 << 20)
	history.Advance(held.Filter().Current())
	start := held.Filter().Current().Version()
	for i := range 3 {
		held.Add(digest.KeyOfString(seed, fmt.Sprint("object ", i)))
		history.AdvanceDelta(held.Filter().AdvanceDelta())
	}
	delta, base, ok := history.Since(start)
	message, err := delta.AppendTo(nil, base)
	fmt.Println(delta.Len(), "positions since version", start.Sequence, ok)
	fmt.Println("a message of less than 100 bytes:", len(message) < 100, err)

	_, _, ok = history.Since(digest.Version{Epoch: 1, Sequence: 99})
	fmt.Println("of a version it does not know it says", ok, "and a snapshot is sent")
	// Output:
	// 3 positions since version 0 true
	// a message of less than 100 bytes: true <nil>
	// of a version it does not know it says false and a snapshot is sent
}
