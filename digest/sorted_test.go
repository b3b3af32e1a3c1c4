package digest

import (
	"math"
	"math/bits"
	"slices"
	"testing"
)

func TestSelectBit(t *testing.T) {
	r := random(1)
	for _, word := range []uint64{1, 1 << 63, math.MaxUint64, r.Uint64(), r.Uint64() & r.Uint64() & r.Uint64(), r.Uint64() | r.Uint64()} {
		n := uint64(0)
		for rest := word; rest != 0; rest &= rest - 1 {
			if got, want := selectBit(word, n), uint64(bits.TrailingZeros64(rest)); got != want {
				t.Errorf("selectBit(%x, %d) = %d, want %d", word, n, got, want)
			}
			n++
		}
	}
}

// TestSortedSet compares lookups with a list, where buckets are even, crowded, and
// empty for long stretches.
func TestSortedSet(t *testing.T) {
	r := random(2)
	for name, draw := range map[string]func() uint64{
		"even":    func() uint64 { return r.Uint64N(1 << 30) },
		"crowded": func() uint64 { return 1<<29 + r.Uint64N(900) },
		"ends":    func() uint64 { return r.Uint64N(2)*(1<<30-500) + r.Uint64N(500) },
	} {
		var list []uint64
		for range 600 {
			list = append(list, draw())
		}
		slices.Sort(list)
		list = slices.Compact(list)
		b := newSortedBuilder(1<<30, uint64(len(list)))
		for _, p := range list {
			b.add(p)
		}
		s := b.finish()
		for range 20_000 {
			p := draw()
			at, want := slices.BinarySearch(list, p)
			rank, found := s.find(p)
			if got := s.contains(p); got != want || found != want || rank != uint64(at) {
				t.Fatalf("%s: %d is there: %v, contains says %v, find %d, %v", name, p, want, got, rank, found)
			}
		}
		if !s.containsAll(list[:min(len(list), MaxHashes)]) || s.containsAll([]uint64{list[0], 1 << 28}) {
			t.Errorf("%s: containsAll is wrong", name)
		}
	}
}

// TestSortedBits holds the promised size at every ratio.
func TestSortedBits(t *testing.T) {
	const count = 1_000_000
	for ratio := 16.0; ratio < 1e6; ratio *= 1.07 {
		perKey := 8 * float64(sortedBytes(uint64(ratio*count), count)) / count
		if most := math.Log2(ratio) + 3; perKey > most {
			t.Errorf("m/x = %.1f: %.2f bits a position, more than %.2f", ratio, perKey, most)
		}
	}
}
