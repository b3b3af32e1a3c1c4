package digest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// enumerated returns the share of all keys that f has. It goes through all hashes and strides, in a grid that divides each
// position into 2×2, with a random key in each field.
func enumerated(f *Filter, rng *rand.Rand) float64 {
	const sub = 2
	m, k := f.geometry.Bits, f.geometry.Hashes
	set := make([]bool, m)
	for p := range f.all() {
		set[p] = true
	}
	field := math.Ldexp(1/float64(m*sub), 64)
	in := func(n uint64) uint64 { return uint64((float64(n) + rng.Float64()) * field) }
	have := 0
	for p := range f.all() { // of the first position of the key
		for h := p * sub; h < (p+1)*sub; h++ {
			for d := range m * sub {
				at, stride, i := in(h), in(d)|1, 1
				for ; i < k; i++ {
					if at += stride; !set[high(at, m)] {
						break
					}
				}
				if i == k {
					have++
				}
			}
		}
	}
	return float64(have) / float64(m*sub) / float64(m*sub)
}

// TestFalsePositiveRateOfSmallFilters compares the rate that filters state with an enumeration of all keys. The k-th power alone
// is up to some 10^11 times too low.
func TestFalsePositiveRateOfSmallFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 63))
	sizes := []uint64{16, 64, 256, 1024, 4096}
	if testing.Short() {
		sizes = sizes[:3]
	}
	for _, m := range sizes {
		for k := 1; k <= 8; k++ {
			for _, n := range []int{1, 3, 10, 30, 100} {
				fill := float64(n*k) / float64(m)
				if fill > 0.9 || fill*float64(m*m) > 1e6 {
					continue
				}
				filters := 200 // fewer of the large ones, and of many keys; one of few keys strays by a factor
				if m > 64 {
					filters = max(2, int(4096/m*10)*10/max(n, 10))
				}
				stated, counted := 0.0, 0.0
				for range filters {
					f, err := FilterOf(Geometry{Bits: m, Hashes: k}, Version{Epoch: 1}, slices.Values(randomKeys(rng, n)))
					if err != nil {
						t.Fatal(err)
					}
					stated += f.FalsePositiveRate()
					counted += enumerated(f, rng)
				}
				least, most := 0.7, 1.45
				if m < 64 {
					most = 1.8 // positions wrap around
				}
				if k < 3 {
					least, most = 0.9, 1.1
				}
				if got := stated / counted; !(got >= least && got <= most) {
					t.Errorf("%d filters of m=%d, k=%d, n=%d: FalsePositiveRate() is %.3g on average, %.2f of the enumerated %.3g", filters, m, k, n,
						stated/float64(filters), got, counted/float64(filters))
				}
			}
		}
	}
	full := newFilter(Geometry{Bits: 8, Hashes: 5}, Version{Epoch: 1}, 1, []uint64{0, 1, 2, 3, 4, 5, 6, 7})
	empty := newFilter(Geometry{Bits: 8, Hashes: 5}, Version{Epoch: 1}, 0, nil)
	if got := fmt.Sprint(full.FalsePositiveRate(), empty.FalsePositiveRate()); got != "1 0" {
		t.Errorf("the rates of a full and an empty filter are %s, want 1 and 0", got)
	}
}
