package workload

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// A Request is one line of a trace.
type Request struct {
	Seconds float64 // since some moment; never less than in the previous request
	Client  string  // [Anonymous] if unknown
	Key     string  // names the object
	Size    int64   // bytes of the body as the line says; 0 = unknown. See [Trace.Sizes]
}

// A Trace is a sequence of requests.
type Trace struct {
	Name     string // the file's base name, or a description
	Requests []Request
	// Sizes has one entry for each distinct key. A source may state several
	// sizes for one key (ranges, changes); this is the largest.
	Sizes  map[string]int64
	Format string           // what the source is, such as "Combined"; "" for a synthetic trace
	Left   int              // lines of an access log that are no successful GETs
	skips  map[odd]*skipped // lines that could not be used
}

// skipped counts lines of one kind.
type skipped struct{ lines, first int }

func (t *Trace) skip(kind odd, line int) {
	s := t.skips[kind]
	if s == nil {
		s = &skipped{first: line}
		t.skips[kind] = s
	}
	s.lines++
}

// Summary says in a line what was read, and what was not.
func (t *Trace) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s", t.Format, of(len(t.Requests), "request%s"), of(t.Clients(), "client%s"))
	if t.Left > 0 {
		fmt.Fprintf(&b, ", %s left out: no GET or no success", of(t.Left, "line%s"))
	}
	kinds := slices.SortedFunc(maps.Keys(t.skips), func(a, b odd) int {
		return cmp.Or(t.skips[b].lines-t.skips[a].lines, t.skips[a].first-t.skips[b].first)
	})
	all := 0
	for _, kind := range kinds {
		all += t.skips[kind].lines
	}
	for i, kind := range kinds {
		if i == 0 {
			fmt.Fprintf(&b, ", %s skipped:", of(all, "line%s"))
		} else {
			b.WriteByte(',')
		}
		s := t.skips[kind]
		fmt.Fprintf(&b, " %s (the first in line %s)", of(s.lines, string(kind)), count(s.first))
	}
	return b.String()
}

// of writes a number of things. %s in what is where the plural has its s.
func of(n int, what string) string {
	s := "s"
	if n == 1 {
		s = ""
	}
	return count(n) + " " + fmt.Sprintf(what, s)
}

// count writes a number of at least 0 in groups of three digits.
func count(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1000), n%1000)
}

// Anonymous is the client of a request whose source names none.
const Anonymous = "-"

// add appends r and notes its object's size.
func (t *Trace) add(r Request) {
	t.Requests = append(t.Requests, r)
	if size, ok := t.Sizes[r.Key]; !ok || r.Size > size {
		t.Sizes[r.Key] = r.Size
	}
}

// Head returns a trace of the first n requests and their objects, or the whole trace if it has
// no more than n requests or n is 0.
func (t *Trace) Head(n int) *Trace {
	if n <= 0 || n >= len(t.Requests) {
		return t
	}
	head := *t
	head.Requests, head.Sizes = t.Requests[:n], make(map[string]int64)
	for _, r := range head.Requests {
		head.Sizes[r.Key] = t.Sizes[r.Key]
	}
	return &head
}

// FillSizes gives every object the size of [SizeOf], if the trace states no sizes at all.
func (t *Trace) FillSizes() {
	if t.Bytes() > 0 {
		return
	}
	for key := range t.Sizes {
		t.Sizes[key] = SizeOf(key)
	}
}

// Settle gives each request the size of its object, as if none ever changed.
func (t *Trace) Settle() {
	for i := range t.Requests {
		t.Requests[i].Size = t.Sizes[t.Requests[i].Key]
	}
}

// Bytes returns the sum of the sizes of the distinct objects.
func (t *Trace) Bytes() (sum int64) {
	for _, n := range t.Sizes {
		sum += n
	}
	return sum
}

// Assign returns, for each request, the cache in [0, n) that gets it. This is the hash of the
// client modulo n, so a client always uses the same cache. A request of an unknown client gets
// a random cache, which depends on seed.
func (t *Trace) Assign(n int, seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 0x6465616c))
	caches := make([]int, len(t.Requests))
	for i, r := range t.Requests {
		if r.Client == Anonymous {
			caches[i] = random.IntN(n)
		} else {
			caches[i] = int(xxhash.Sum64String(r.Client) % uint64(n))
		}
	}
	return caches
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
