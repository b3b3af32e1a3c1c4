package arith_test

import (
	"fmt"
	"slices"

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

// A model of one's own: bits that depend on the one before are coded under two
// models, and the pair of coders needs nothing but the same order.
func ExampleEncoder_EncodeBit() {
	bits := make([]int, 1000)
	for i := 400; i < 700; i++ {
		bits[i] = 1
	}
	models := [2]arith.Bit{arith.NewBit(), arith.NewBit()}
	var e arith.Encoder
	e.Reset(nil)
	last := 0
	for _, b := range bits {
		e.EncodeBit(&models[last], b)
		last = b
	}
	code := e.Finish()
	fmt.Println(len(bits), "bits in", len(code), "bytes")

	models = [2]arith.Bit{arith.NewBit(), arith.NewBit()}
	var d arith.Decoder
	d.Reset(code)
	last, ones := 0, 0
	for range bits {
		last = d.DecodeBit(&models[last])
		ones += last
	}
	fmt.Println(ones, "ones", d.Finish())
	// Output:
	// 1000 bits in 5 bytes
	// 300 ones <nil>
}

// A table of the symbols that are seen most, made while coding: which of five things
// happened, a thousand times.
func ExampleSymbols() {
	happened := make([]int, 1000)
	for i := range happened {
		switch {
		case i%100 == 99:
			happened[i] = 4
		case i%10 == 9:
			happened[i] = 1
		}
	}
	model := arith.NewSymbols(5)
	var e arith.Encoder
	e.Reset(nil)
	for _, symbol := range happened {
		e.EncodeSymbol(model, symbol)
	}
	code := e.Finish()
	fmt.Println(len(code), "bytes for", len(happened), "symbols")

	model.Reset()
	var d arith.Decoder
	d.Reset(code)
	counts := make([]int, model.Len())
	for range happened {
		counts[d.DecodeSymbol(model)]++
	}
	fmt.Println(counts, d.Finish())
	// Output:
	// 68 bytes for 1000 symbols
	// [900 90 0 0 10] <nil>
}

// Whether one position is in a large set can be told from a part of its code.
func ExampleDecodeRegion() {
	const m = 1 << 24
	var positions []uint64
	for p := uint64(0); p < m; p += 9 + p%7 {
		positions = append(positions, p)
	}
	code := arith.AppendSet(nil, arith.Block, m, positions)

	region, err := arith.DecodeRegion(nil, arith.Block, code, m, uint64(len(positions)), 10_000_000)
	if err != nil {
		panic(err)
	}
	_, found := slices.BinarySearch(region.Positions, 10_000_000)
	fmt.Println(found, "by", len(region.Positions), "positions of", len(positions), "in", region.From, "to", region.To)
	// Output: false by 359512 positions of 1438048 in 8388608 to 12582912
}
