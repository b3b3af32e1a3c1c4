package arith

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawWords returns an array of m bits of which x are one.
func drawWords(rng *rand.Rand, m, x uint64) []uint64 {
	words := make([]uint64, wordsFor(m))
	flip := x > m/2
	if flip {
		x = m - x
	}
	for n := uint64(0); n < x; {
		p := rng.Uint64N(m)
		if words[p/64]>>(p%64)&1 == 0 {
			words[p/64] |= 1 << (p % 64)
			n++
		}
	}
	if flip {
		invert(words, 0, m)
	}
	return words
}

func positionsOf(words []uint64) []uint64 {
	s := source{words: words, m: 64 * uint64(len(words))}
	return slices.Collect(s.members)
}

// TestBlockSize checks that the block method is within 0.05 % of the limit at the size of 10^6
// keys, for the filters and deltas of Mitzenmacher's tables and for densities between them, and
// within a few bytes at the smallest size for which Choose picks it.
func TestBlockSize(t *testing.T) {
	if testing.Short() {
		t.Skip("codes 25 million bits for each of many densities")
	}
	rng := rand.New(rand.NewPCG(10, 10))
	for _, c := range []struct{ m, x uint64 }{
		{8_000_000, 3_717_800}, {8_000_000, 4_282_200}, {12_600_000, 1_851_300}, {14_000_000, 1_864_000},
		{28_000_000, 3_728_000}, {48_000_000, 2_907_700}, {92_000_000, 994_600},
		{25_000_000, 12_499_000}, {25_000_000, 7_000_000}, {25_000_000, 2_500_000}, {25_000_000, 1_930_000},
		{25_000_000, 1_915_000}, {25_000_000, 1_200_000}, {25_000_000, 970_000}, {25_000_000, 950_000}, {25_000_000, 800_000}, {25_000_000, 620_000},
		{25_000_000, 24_400_000}, {48_000_000, 60_000}, {92_000_000, 19_900},
	} {
		words := drawWords(rng, c.m, c.x)
		code := AppendBitmap(nil, Block, c.m, words)
		over := float64(len(code)) - limitBits(c.m, c.x)/8
		if allowed := 0.0005 * limitBits(c.m, c.x) / 8; over > allowed {
			t.Errorf("m=%d x=%d: %d bytes are %.1f over the limit, want at most %.1f", c.m, c.x, len(code), over, allowed)
		}
		if Choose(c.m, c.x) != Block {
			t.Errorf("Choose(%d, %d) = %v, want %v", c.m, c.x, Choose(c.m, c.x), Block)
		}
	}
}

// TestBlockLong compares long sets with the slow coder, as lists and as arrays. The code of the last
// is longer than there is room for at first, since it has nothing but escapes.
func TestBlockLong(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	run := make([]uint64, 1_000_000)
	for i := range run {
		run[i] = uint64(i)
	}
	for _, c := range []struct {
		name      string
		m         uint64
		positions []uint64
	}{
		{"blocks", 5_000_011, positionsOf(drawWords(rng, 5_000_011, 700_000))},
		{"turned round", 3_000_000, positionsOf(drawWords(rng, 3_000_000, 2_000_000))},
		{"gaps", 60_000_000, positionsOf(drawWords(rng, 60_000_000, 240_000))},
		{"many jumps", 1 << 36, positionsOf(drawWords(rng, 4_000_000, 100_000))},
		{"a run", 2_000_000, run},
	} {
		x := uint64(len(c.positions))
		code := AppendSet([]byte{7}, Block, c.m, c.positions)[1:]
		if !testing.Short() && !bytes.Equal(code, slowBlock(c.m, c.positions)) {
			t.Errorf("%s: the slow coder gives another code", c.name)
		}
		if got, err := decodeSet(nil, Block, code, c.m, x); err != nil || !slices.Equal(got, c.positions) {
			t.Errorf("%s: DecodeSet = %d positions, %v", c.name, len(got), err)
		}
		if _, err := decodeSet(nil, Block, code[:len(code)-100], c.m, x); !errors.Is(err, ErrTruncated) {
			t.Errorf("%s: DecodeSet of a truncated code: %v", c.name, err)
		}
		if c.m < 1<<30 {
			words := bitmapOf(c.m, c.positions)
			if again := AppendBitmap(nil, Block, c.m, words); !bytes.Equal(again, code) {
				t.Errorf("%s: the array has another code", c.name)
			}
			got := make([]uint64, len(words))
			if err := DecodeBitmap(got, Block, code, c.m, x); err != nil || !slices.Equal(got, words) {
				t.Errorf("%s: DecodeBitmap: %v", c.name, err)
			}
		}
	}
}

// TestBlockAllocations: a long set, too, is coded without an allocation if there is room for it.
func TestBlockAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("codes tens of millions of bits to count allocations")
	}
	rng := rand.New(rand.NewPCG(15, 15))
	for _, m := range []uint64{8_000_000, 24_000_000} {
		words := drawWords(rng, m, m/4)
		code := AppendBitmap(nil, Block, m, words)
		encode := testing.AllocsPerRun(5, func() { code = AppendBitmap(code[:0], Block, m, words) })
		decode := testing.AllocsPerRun(5, func() { _ = DecodeBitmap(words, Block, code, m, m/4) })
		if encode+decode > 0 {
			t.Errorf("m=%d: encoding and decoding allocate %v and %v times", m, encode, decode)
		}
	}
}

// TestModels checks what the loops assume about the models, at many densities.
func TestModels(t *testing.T) {
	if testing.Short() {
		t.Skip("looks at the models of many densities in one goroutine")
	}
	check := func(m, y uint64) {
		t.Helper()
		p := planBlocks(m, y)
		var mod model
		p.model(&mod, func(int, bool) {})
		name := fmt.Sprintf("m=%d y=%d (gaps: %v)", m, y, p.gaps)
		sum := 0
		for i, s := range mod.symbols[:mod.n] {
			if s.freq == 0 {
				t.Fatalf("%s: symbol %d has no frequency", name, i)
			}
			sum += int(s.freq)
		}
		longest := map[bool]uint{false: 28, true: gapLog + 40}[p.gaps]
		if sum != 1<<mod.log || mod.longest() > longest {
			t.Fatalf("%s: frequencies sum to %d of %d, longest symbol %d", name, sum, 1<<mod.log, mod.longest())
		}
		if p.gaps {
			for i, s := range mod.symbols[:mod.n-1] {
				if s.base != uint64(i)<<s.raw || s.raw != mod.symbols[0].raw {
					t.Fatalf("%s: class %d begins at %d", name, i, s.base)
				}
			}
		}
	}
	for y := uint64(1); y <= 2000; y++ {
		check(4000, y)
	}
	for m := uint64(2); m <= MaxUniverse; m = m*3/2 + 1 {
		for y := m / 2; y > 0; y = y * 2 / 3 {
			check(m, y)
		}
	}
}

// TestRanks compares the tables with the definition.
func TestRanks(t *testing.T) {
	fillTables()
	first := map[int]int{} // rank of the first block, by number of ones
	for rank, block := range sorted16 {
		ones := bits.OnesCount64(block)
		if _, ok := first[ones]; !ok {
			first[ones] = rank
		}
		if uint64(tables.unrank16[rank]) != block || int(tables.place16[block])+first[ones] != rank {
			t.Fatalf("block %#x has place %d, want rank %d", block, tables.place16[block], rank)
		}
	}
}
