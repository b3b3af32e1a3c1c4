package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// A Model describes a synthetic trace: independent requests for objects whose
// popularity follows a Zipf law, as that of web pages does.
type Model struct {
	Requests int     // at least 1
	Objects  int     // to choose from, at least 1; some may never be requested
	Exponent float64 // of the law: the i-th object is requested in proportion to i^-Exponent; 0 = uniformly
	Seed     uint64  // equal seeds give equal traces
}

// Synthetic generates the trace that m describes, of unknown clients, with a request a second. Sizes are those of
// [SizeOf].
func Synthetic(m Model) *Trace {
	t := &Trace{
		Name:     fmt.Sprintf("%d requests, %d objects, Zipf %g, seed %d", m.Requests, m.Objects, m.Exponent, m.Seed),
		Requests: make([]Request, 0, m.Requests),
		Sizes:    make(map[string]int64),
	}
	random := rand.New(rand.NewPCG(m.Seed, 0x7a697066))
	cumulative := make([]float64, m.Objects)
	sum := 0.0
	for i := range cumulative {
		sum += math.Pow(float64(i+1), -m.Exponent)
		cumulative[i] = sum
	}
	for i := range m.Requests {
		rank := min(sort.SearchFloat64s(cumulative, random.Float64()*sum), m.Objects-1) + 1
		key := fmt.Sprintf("/object/%d", rank)
		t.add(Request{Seconds: float64(i), Client: Anonymous, Key: key, Size: SizeOf(key)})
	}
	return t
}

// SizeOf returns a size that depends only on the key. Sizes are spread evenly over the octaves
// from 1 KiB to 128 KiB, and are about 26 KiB on average.
func SizeOf(key string) int64 {
	h := xxhash.Sum64String(key)
	octave := h % 7
	return 1<<(10+octave) + int64(h>>32)%(1<<(10+octave))
}
