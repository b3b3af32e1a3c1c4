package arith_test

import (
	"fmt"

	"github.com/summarycache/summarycache/arith"
)

// A set of five positions in a million: the code says which, and not how many or of
// how many, which the message around it does.
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
