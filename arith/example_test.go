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

	back, err := arith.DecodeSet(nil, method, code, m, uint64(len(positions)))
	fmt.Println(back, err)
	_, err = arith.DecodeSet(nil, method, append(code, 0), m, uint64(len(positions)))
	fmt.Println(err)
	// Output:
	// adaptive 12 bytes
	// [17 300 4711 500000 999999] <nil>
	// arith: input is corrupt
}

// A reader who has the array as it was a moment ago needs less than one who has not.
func ExampleAppendBitmapGiven() {
	const m = 64 * 1000
	before, after := make([]uint64, 1000), make([]uint64, 1000)
	for i := range before {
		before[i] = 1 << (i % 64)
		after[i] = before[i]
	}
	after[500] = 1 << 3 // one bit moved

	alone := arith.AppendBitmap(nil, arith.Adaptive, m, after)
	given := arith.AppendBitmapGiven(nil, m, after, before)
	fmt.Println(len(alone), "bytes,", len(given), "given the array before")

	// Of the ones, one is where the array before has a zero, the others where it has a one.
	back := make([]uint64, 1000)
	err := arith.DecodeBitmapGiven(back, given, m, 1, 999, before)
	fmt.Println(back[500] == after[500], err)
	// Output:
	// 934 bytes, 5 given the array before
	// true <nil>
}
