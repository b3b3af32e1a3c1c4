package trace

import (
	"math/rand/v2"

	"github.com/cespare/xxhash/v2"
)

// A Request is one line of a trace.
type Request struct {
	Seconds float64 // when, from an origin that only the source knows
	Client  string  // who asked; "-" = unknown
	Target  string  // what for, as an HTTP request target: a path and an optional query
	Size    int64   // body bytes as the line says; 0 = unknown. See [Trace.Sizes]
}

// A Trace is a sequence of requests for objects of known sizes.
type Trace struct {
	Name     string // the file's base name, or a description
	Requests []Request
	// Sizes has one entry for each distinct target. A source may state several
	// sizes for one key (ranges, changes); an object has one, the largest.
	Sizes map[string]int64
}

// Anonymous is the client of a request whose source names none.
const Anonymous = "-"

// add appends r and notes its object's size.
func (t *Trace) add(r Request) {
	t.Requests = append(t.Requests, r)
	if size, ok := t.Sizes[r.Target]; !ok || r.Size > size {
		t.Sizes[r.Target] = r.Size
	}
}

// Head returns a trace of the first n requests and the objects they ask for;
// the whole trace if it has no more than n or n is 0.
func (t *Trace) Head(n int) *Trace {
	if n <= 0 || n >= len(t.Requests) {
		return t
	}
	head := &Trace{Name: t.Name, Requests: t.Requests[:n], Sizes: make(map[string]int64)}
	for _, r := range head.Requests {
		head.Sizes[r.Target] = t.Sizes[r.Target]
	}
	return head
}

// FillSizes gives the objects whose source states no size (0) the one that size
// returns, if the whole trace is without sizes. It reports whether it did.
func (t *Trace) FillSizes(size func(target string) int64) bool {
	for _, n := range t.Sizes {
		if n != 0 {
			return false
		}
	}
	for target := range t.Sizes {
		t.Sizes[target] = size(target)
	}
	return true
}

// Bytes returns the sum of the sizes of the distinct objects.
func (t *Trace) Bytes() (sum int64) {
	for _, n := range t.Sizes {
		sum += n
	}
	return sum
}

// Deal returns, for each request, the proxy in [0, n) that gets it: hash(CLIENT)
// mod n with xxHash64, so that a client always talks to the same one. Requests of
// no known client are dealt at random under seed, each by itself.
func (t *Trace) Deal(n int, seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 0x6465616c))
	proxies := make([]int, len(t.Requests))
	for i, r := range t.Requests {
		if r.Client == Anonymous {
			proxies[i] = random.IntN(n)
		} else {
			proxies[i] = int(xxhash.Sum64String(r.Client) % uint64(n))
		}
	}
	return proxies
}

// Clients returns the number of distinct named clients.
func (t *Trace) Clients() int {
	seen := make(map[string]bool)
	for _, r := range t.Requests {
		if r.Client != Anonymous {
			seen[r.Client] = true
		}
	}
	return len(seen)
}
