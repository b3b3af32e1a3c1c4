package digest

import (
	"math"
	"math/bits"
	"math/rand/v2"
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

// draws are ways to choose positions below 2^30: evenly, all in one piece, and with long gaps.
var draws = map[string]func(r *rand.Rand) uint64{
	"even":    func(r *rand.Rand) uint64 { return r.Uint64N(1 << 30) },
	"crowded": func(r *rand.Rand) uint64 { return 1<<29 + r.Uint64N(900) },
	"run":     func(r *rand.Rand) uint64 { return 1<<20 - 300 + r.Uint64N(700) },
	"ends":    func(r *rand.Rand) uint64 { return r.Uint64N(2)*(1<<30-500) + r.Uint64N(500) },
}

// drawn returns up to n positions drawn, ascending.
func drawn(r *rand.Rand, draw func(r *rand.Rand) uint64, n int) (list []uint64) {
	for range n {
		list = append(list, draw(r))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func piecesOf(f form, list []uint64) *pieces {
	b := newPieceBuilder(f)
	b.add(list)
	s := b.finish()
	return &s
}

// TestPieces compares lookups, ranks and the positions of ranks with a list: for even and
// crowded positions, for long gaps, and for other numbers than the form was chosen for.
func TestPieces(t *testing.T) {
	r := random(2)
	for name, draw := range draws {
		for _, n := range []int{1, 600, 20_000} {
			for _, planned := range []uint64{0, 1_000, 1 << 20} {
				list := drawn(r, draw, n)
				s := piecesOf(sortedForm(1<<30, planned), list)
				if !slices.Equal(s.list(), list) {
					t.Fatalf("%s/%d/%d: the list differs", name, n, planned)
				}
				for range 5_000 {
					p := draw(r)
					at, want := slices.BinarySearch(list, p)
					rank, found := s.rank(p)
					if got := s.contains(p); got != want || found != want || rank != uint64(at) {
						t.Fatalf("%s/%d/%d: %d is there: %v, contains says %v, rank %d, %v", name, n, planned, p, want, got, rank, found)
					}
				}
				checkUnrank(t, s, list, draw)
			}
		}
	}
}

// checkUnrank converts positions to ranks and back: a few of them, and most of them.
func checkUnrank(t *testing.T, s *pieces, list []uint64, draw func(r *rand.Rand) uint64) {
	t.Helper()
	r := random(uint64(len(list)))
	for _, share := range []int{1, 2, 50} {
		want := drawn(r, draw, len(list)/share+1)
		for i := 0; i < len(list); i += share {
			want = append(want, list[i], min(list[i]+1, s.bits-1), list[i]-min(list[i], 1))
		}
		want = append(want, 0, s.bits-1)
		slices.Sort(want)
		want = slices.Compact(want)
		var clear, set []uint64
		for _, p := range want {
			if rank, found := s.rank(p); found {
				set = append(set, rank)
			} else {
				clear = append(clear, p-rank)
			}
		}
		if got := s.unrank(clear, set); !slices.Equal(got, want) {
			for i, p := range got {
				if p != want[i] {
					t.Fatalf("%d positions: the %d-th that ranks mean is %d, want %d", len(want), i, p, want[i])
				}
			}
		}
	}
}

func TestUnrankInBitmap(t *testing.T) {
	r := random(4)
	for _, m := range []uint64{1, 63, 1000, bitmapPiece, 100_000} {
		draw := func(r *rand.Rand) uint64 { return r.Uint64N(m) }
		for _, n := range []int{1, 100, 30_000} {
			list := drawn(r, draw, n)
			checkUnrank(t, piecesOf(bitmapForm(m, 0), list), list, draw)
		}
	}
}

// TestPiecesAreShared: a version that differs in a few positions has a few pieces of its own,
// and its counts are correct.
func TestPiecesAreShared(t *testing.T) {
	r := random(5)
	for name, f := range map[string]form{"list": sortedForm(1<<30, 100_000), "bitmap": bitmapForm(1<<20, 100_000)} {
		list := drawn(r, func(r *rand.Rand) uint64 { return r.Uint64N(f.bits) }, 100_000)
		s := piecesOf(f, list)
		flips := drawn(r, func(r *rand.Rand) uint64 { return r.Uint64N(f.bits) }, 10)
		next, _ := s.flip(flips)
		own := 0
		for i := range s.count {
			if s.piece(i).words != next.piece(i).words {
				own++
			}
		}
		if own > len(flips) {
			t.Errorf("%s: %d pieces of its own for %d flips", name, own, len(flips))
		}
		if got := diff(s, &next); !slices.Equal(got, flips) {
			t.Errorf("%s: diff finds %d flips, want %d", name, len(got), len(flips))
		}
		whole := piecesOf(f, next.list())
		if whole.held != next.held {
			t.Errorf("%s: %d words counted, want %d", name, next.held, whole.held)
		}
		for i := range whole.count {
			if whole.before(i) != next.before(i) {
				t.Fatalf("%s: %d positions before piece %d, want %d", name, next.before(i), i, whole.before(i))
			}
		}
	}
}

// mostPerKey is how many bits a position a long list may take: the logarithm of m/x plus two,
// and a tenth for what is around the pieces.
func mostPerKey(ratio float64) float64 { return 1.1*math.Log2(ratio) + 2.45 }

// TestSortedBits checks the promised size at every ratio, as the sum over all pieces.
func TestSortedBits(t *testing.T) {
	const count = 1_000_000
	for ratio := 16.0; ratio < 1e6; ratio *= 1.07 {
		f := sortedForm(uint64(ratio*count), count)
		perKey := 8 * float64(f.bytesFor(count)) / count
		if most := mostPerKey(ratio); perKey > most {
			t.Errorf("m/x = %.1f: %.2f bits a position, more than %.2f", ratio, perKey, most)
		}
	}
}

// rank returns how many positions are below p, and whether p is set.
func (s *pieces) rank(p uint64) (below uint64, found bool) {
	i, bucket := s.at(p)
	e := s.piece(i)
	below, found = s.find(e, bucket, p&(1<<s.shift-1))
	return below + s.before(i), found
}
