package index_test

import (
	"fmt"
	"slices"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

// One lookup covers all peers. A lookup of several keys finds the peer that has most of them.
func ExampleIndex() {
	x := index.New()
	g := digest.Geometry{Bits: 1 << 24, Hashes: 1}
	keys := []digest.Key{digest.KeyOfString(0, "block 0"), digest.KeyOfString(0, "block 1"), digest.KeyOfString(0, "block 2")}
	for peer, holds := range map[string]int{"east": 1, "west": 3} {
		f, err := digest.FilterOf(g, digest.Version{Epoch: 1}, slices.Values(keys[:holds]))
		if err != nil {
			panic(err)
		}
		x.Set(peer, f)
	}
	for _, m := range x.Lookup(nil, keys[0]) {
		fmt.Println(m.Peer)
	}
	for _, c := range x.Prefixes(nil, keys) {
		fmt.Println(c.Peer, "has the first", c.Keys)
	}
	x.Delete("west")
	fmt.Println(len(x.Lookup(nil, keys[2])))
	// Output:
	// east
	// west
	// west has the first 3
	// east has the first 1
	// 0
}
