package digest

import (
	"errors"
	"slices"
	"testing"
)

// both returns a set of positions in both representations.
func both(g Geometry, set []uint64) (bitmap, sorted *Filter) {
	g = g.normal()
	ones := uint64(len(set))
	a, b := newPieceBuilder(bitmapForm(g.Bits, ones)), newPieceBuilder(sortedForm(g.Bits, ones))
	a.add(set)
	b.add(set)
	bitmap = &Filter{geometry: g, ones: ones, pieces: a.finish()}
	sorted = &Filter{geometry: g, ones: ones, pieces: b.finish()}
	bitmap.version = Version{1, 1, bitmap.state()}
	sorted.version = Version{1, 1, sorted.state()}
	return bitmap, sorted
}

func randomSet(m uint64, n int, seed uint64) []uint64 {
	r := random(seed)
	set := make([]uint64, n)
	for i := range set {
		set[i] = r.Uint64N(m)
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func TestParseVersion(t *testing.T) {
	for _, v := range []Version{{}, {Epoch: 1, Sequence: 2, State: 3}, {1 << 63, 1<<63 - 1, 1<<64 - 1}} {
		if got, err := ParseVersion(v.String()); got != v || err != nil {
			t.Errorf("ParseVersion(%q) = %v, %v", v, got, err)
		}
	}
	for _, s := range []string{"", "1", "1.2@3", "1.2@0000000000000003x", "01.2@0000000000000003", "1.2@00000000000000003", "-1.2@0000000000000003", "18446744073709551616.2@0000000000000003"} {
		if got, err := ParseVersion(s); !errors.Is(err, ErrCorrupt) || got != (Version{}) {
			t.Errorf("ParseVersion(%q) = %v, %v", s, got, err)
		}
	}
}

func TestRepresentationsAgree(t *testing.T) {
	for _, m := range []uint64{1, 2, 63, 64, 65, 1000, 4097, 100_000} {
		for _, n := range []int{0, 1, 2, 10, 500, 20_000} {
			g := Geometry{Bits: m, Hashes: 1 + n%3}
			set := randomSet(m, n, m+uint64(n))
			bitmap, sorted := both(g, set)
			equalFilters(t, sorted, bitmap)
			for p := range m {
				if bitmap.contains(p) != sorted.contains(p) {
					t.Fatalf("m=%d n=%d: position %d: %v, %v", m, n, p, bitmap.contains(p), sorted.contains(p))
				}
			}
			rank := 0
			for p := range m {
				below, found := sorted.rank(p)
				below2, found2 := bitmap.rank(p)
				if below != uint64(rank) || below2 != below || found != found2 {
					t.Fatalf("m=%d n=%d: rank of %d is %d, %d, want %d", m, n, p, below, below2, rank)
				}
				if found {
					rank++
				}
			}
			for _, k := range randomKeys(random(5), 200) {
				if bitmap.MayContain(k) != sorted.MayContain(k) {
					t.Fatalf("m=%d n=%d: MayContain(%x) differs", m, n, k)
				}
			}
			if a, b := bitmap.AppendTo(nil), sorted.AppendTo(nil); !slices.Equal(a, b) {
				t.Fatalf("m=%d n=%d: encodings differ", m, n)
			}
		}
	}
}

func TestSortedSetIsCompact(t *testing.T) {
	if testing.Short() {
		t.Skip("measures a size in one goroutine")
	}
	for _, perKey := range []uint64{17, 50, 92, 100, 127, 128, 1000, 1023, 10_000, 1 << 20} {
		const n = 100_000
		set := randomSet(n*perKey, n, perKey)
		f := newFilter(Geometry{Bits: n * perKey, Hashes: 1}, Version{}, n, set)
		if f.bitmap {
			t.Fatalf("%d bits a key are dense", perKey)
		}
		got := float64(f.MemoryBytes()) * 8 / float64(len(set))
		if limit := mostPerKey(float64(perKey)); got > limit {
			t.Errorf("m/n=%d: %.2f bits a key, want at most %.2f", perKey, got, limit)
		}
	}
}

func TestNoFalseNegatives(t *testing.T) {
	for _, g := range geometries {
		keys := randomKeys(random(2), 1_000)
		f := counting(t, g, keys...).Advance()
		for _, k := range keys {
			if !f.MayContain(k) {
				t.Fatalf("%v: MayContain(%x) = false", g, k)
			}
		}
	}
}

// TestAppendPositions: from any position on, any number of them.
func TestAppendPositions(t *testing.T) {
	r := random(11)
	for _, g := range geometries {
		for _, n := range []int{0, 1, 300, 20_000} {
			f := counting(t, g, randomKeys(r, n)...).Advance()
			all := f.list()
			for range 50 {
				from := r.Uint64N(g.Bits + 2)
				if len(all) > 0 && r.IntN(2) == 0 {
					from = all[r.IntN(len(all))] + r.Uint64N(2)
				}
				at, _ := slices.BinarySearch(all, from)
				want := all[at:]
				want = want[:min(len(want), r.IntN(1000))]
				if got := f.AppendPositions([]uint64{7}, from, len(want)); got[0] != 7 || !slices.Equal(got[1:], want) {
					t.Fatalf("%v with %d positions: AppendPositions(%d, %d) = %d of them, want %d", g, len(all), from, len(want), len(got)-1, len(want))
				}
			}
			if got := f.AppendPositions(nil, 0, len(all)+1); !slices.Equal(got, all) {
				t.Fatalf("%v: AppendPositions of all = %d positions, want %d", g, len(got), len(all))
			}
		}
	}
}
