package arith_test

import (
	"fmt"

	"github.com/summarycache/summarycache/arith"
)

// A set of five positions in a million. The code says which positions these are. The message
// around it must say how many there are, and out of how many.
func Example() {
	positions := []uint64{17, 300, 4_711, 500_000, 999_999}
	const m = 1_000_000
	method := arith.Choose(m, uint64(len(positions)))
	code := arith.AppendSet(nil, method, m, positions)
	fmt.Println(method, len(code), "bytes")

	var back []uint64
	take := func(some []uint64) { back = append(back, some...) }
	err := arith.DecodeSet(method, code, m, uint64(len(positions)), take)
	fmt.Println(back, err)
	err = arith.DecodeSet(method, append(code, 0), m, uint64(len(positions)), take)
	fmt.Println(err)
	// Output:
	// adaptive 12 bytes
	// [17 300 4711 500000 999999] <nil>
	// arith: input is corrupt
}
