package digest_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/summarycache/summarycache/digest"
)

// A history answers who is behind, by however much, with one delta.
func ExampleHistory() {
	held, _ := digest.NewCountingFilter(digest.Geometry{Bits: 1 << 20, Hashes: 1}, 1)
	history := digest.NewHistory(1 << 20)
	history.Advance(held.Current())
	start := held.Current().Version()
	for i := range 3 {
		held.Add(digest.KeyOfString(0, fmt.Sprint("object ", i)))
		history.AdvanceDelta(held.AdvanceDelta())
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

// One lookup asks all peers; several keys at once say who has most of them.
func ExampleIndex() {
	index := digest.NewIndex()
	g := digest.Geometry{Bits: 1 << 24, Hashes: 1}
	keys := []digest.Key{digest.KeyOfString(0, "block 0"), digest.KeyOfString(0, "block 1"), digest.KeyOfString(0, "block 2")}
	for peer, holds := range map[string]int{"east": 1, "west": 3} {
		f, err := digest.FilterOf(g, digest.Version{Epoch: 1}, slices.Values(keys[:holds]))
		if err != nil {
			panic(err)
		}
		index.Set(peer, f)
	}
	for _, m := range index.Lookup(nil, keys[0]) {
		fmt.Println(m.Peer)
	}
	for _, c := range index.Prefixes(nil, keys) {
		fmt.Println(c.Peer, "has the first", c.Keys)
	}
	index.Clear("west")
	fmt.Println(len(index.Lookup(nil, keys[2])))
	// Output:
	// east
	// west
	// west has the first 3
	// east has the first 1
	// 0
}

// Who knows that a digest was current at a time tells the index, and lookups tell how
// old what they say is.
func ExampleIndex_Confirm() {
	index := digest.NewIndex()
	key := digest.KeyOfString(0, "an object")
	g := digest.Geometry{Bits: 1 << 24, Hashes: 1}
	for _, peer := range []string{"east", "west"} {
		f, err := digest.FilterOf(g, digest.Version{Epoch: 1}, slices.Values([]digest.Key{key}))
		if err != nil {
			panic(err)
		}
		index.Set(peer, f)
	}
	now := time.Unix(1_000_000, 0)
	index.Confirm("west", now.Add(-3*time.Second)) // it said so
	for _, m := range index.Lookup(nil, key) {
		if m.AsOf.IsZero() {
			fmt.Println(m.Peer, "may have it, or may have had it")
			continue
		}
		fmt.Println(m.Peer, "may have it, as of", now.Sub(m.AsOf), "ago")
	}
	// Output:
	// east may have it, or may have had it
	// west may have it, as of 3s ago
}
