package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/cespare/xxhash/v2"
)

// A Workload describes a synthetic trace: independent requests whose targets
// follow a Zipf law, the shape of web popularity.
type Workload struct {
	Requests int     // at least 1
	Objects  int     // targets to choose from, at least 1; not all need occur
	Exponent float64 // the law's exponent: the i-th target is asked for in proportion to i^-Exponent; 0 = uniformly
	Seed     uint64  // equal seeds give equal traces
}

// Synthetic makes the trace that w describes. Its clients are unknown and its
// requests one second apart; sizes are those of [SizeOf].
func Synthetic(w Workload) *Trace {
	t := &Trace{
		Name:     fmt.Sprintf("%d requests, %d objects, Zipf %g, seed %d", w.Requests, w.Objects, w.Exponent, w.Seed),
		Requests: make([]Request, 0, w.Requests),
		Sizes:    make(map[string]int64),
	}
	random := rand.New(rand.NewPCG(w.Seed, 0x7a697066))
	cumulative := make([]float64, w.Objects)
	sum := 0.0
	for i := range cumulative {
		sum += math.Pow(float64(i+1), -w.Exponent)
		cumulative[i] = sum
	}
	for i := range w.Requests {
		rank := sort.SearchFloat64s(cumulative, random.Float64()*sum)
		target := fmt.Sprintf("/object/%d", min(rank, w.Objects-1)+1)
		t.add(Request{Seconds: float64(i), Client: Anonymous, Target: target, Size: SizeOf(target)})
	}
	return t
}

// SizeOf returns a size that only depends on the target: spread evenly over the
// octaves from 1 KiB to 128 KiB, about 26 KiB in the mean.
func SizeOf(target string) int64 {
	h := xxhash.Sum64String(target)
	octave := h % 7
	return 1<<(10+octave) + int64(h>>32)%(1<<(10+octave))
}
