package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// synthetic says what an invented trace is like.
type synthetic struct {
	requests int
	objects  int     // wanted by all, and as many by each client alone
	zipf     float64 // popularity falls with the rank to this power
	overlap  float64 // share of the requests that are for what all want
	churn    float64 // how often an object gives way to a new one, on average over the trace
}

const (
	syntheticClients = 256
	syntheticRate    = 100 // requests a second
	maxSynthetic     = 100_000_000
)

func (s synthetic) validate() error {
	switch {
	case s.requests < 1 || s.requests > maxSynthetic:
		return usagef("--requests %d: want 1 to %d", s.requests, maxSynthetic)
	case s.objects < 1 || s.objects > maxSynthetic:
		return usagef("--objects %d: want 1 to %d", s.objects, maxSynthetic)
	case !(s.zipf >= 0 && s.zipf <= 10):
		return usagef("--zipf %v: want 0 to 10", s.zipf)
	case !(s.overlap >= 0 && s.overlap <= 1):
		return usagef("--overlap %v: want 0 to 1", s.overlap)
	case !(s.churn >= 0 && s.churn <= 1000):
		return usagef("--churn %v: want 0 to 1000", s.churn)
	}
	return nil
}

// trace invents the requests.
func (s synthetic) trace(rng *rand.Rand) *trace {
	popularity := make([]float64, s.objects) // cumulative
	sum := 0.0
	for i := range popularity {
		sum += math.Pow(float64(i+1), -s.zipf)
		popularity[i] = sum
	}
	salt := rng.Uint64()
	t := new(trace)
	index := map[[3]uint32]uint32{} // client or 0, rank, generation
	for i := range s.requests {
		client := uint32(rng.IntN(syntheticClients)) + 1
		owner := client
		if rng.Float64() < s.overlap {
			owner = 0
		}
		rank, _ := slices.BinarySearch(popularity, rng.Float64()*sum)
		rank = min(rank, s.objects-1)
		// Each object has its own moments at which another takes its rank.
		phase := float64(mix64(salt+uint64(rank)<<32+uint64(owner))>>11) / (1 << 53)
		generation := uint32(phase + s.churn*float64(i)/float64(s.requests))
		id := [3]uint32{owner, uint32(rank), generation}
		key, known := index[id]
		if !known {
			key = uint32(len(t.names))
			index[id] = key
			t.names = append(t.names, "http://www"+strconv.Itoa(rank%97)+".example.com/"+strconv.Itoa(int(owner))+"/"+strconv.Itoa(rank)+"/"+strconv.Itoa(int(generation)))
		}
		t.requests = append(t.requests, request{
			time:   float64(i) / syntheticRate,
			client: strconv.Itoa(int(client)),
			key:    key,
			size:   syntheticSize(salt, key),
		})
	}
	return t
}

// syntheticSize is lognormal with a median of about 8 kB, and always the same
// for an object.
func syntheticSize(salt uint64, key uint32) int64 {
	rng := rand.New(rand.NewPCG(salt, uint64(key)))
	bytes := 8192 * math.Exp(1.3*rng.NormFloat64())
	return max(64, int64(bytes)/64*64)
}
