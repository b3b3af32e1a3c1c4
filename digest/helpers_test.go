package digest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5ca1ab1e)) }

func randomKeys(r *rand.Rand, n int) []Key {
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key(r.Uint64())
	}
	return keys
}

func counting(t testing.TB, g Geometry, keys ...Key) *CountingFilter {
	t.Helper()
	c, err := NewCountingFilter(g, 7)
	if err != nil {
		t.Fatalf("NewCountingFilter(%v) = %v", g, err)
	}
	for _, k := range keys {
		c.Add(k)
	}
	return c
}

// geometries are dense and sparse, small and large, with one hash and many.
var geometries = []Geometry{
	{Bits: 1, Hashes: 1},
	{Bits: 7, Hashes: 3},
	{Bits: 1 << 10, Hashes: 1},
	{Bits: 8_000, Hashes: 5},
	{Bits: 14_000, Hashes: 2},
	{Bits: 48_000, Hashes: 3},
	{Bits: 92_001, Hashes: 1},
	{Bits: 1_000_000, Hashes: 1},
	{Bits: maxBits, Hashes: 1},
	{Bits: maxBits - 87, Hashes: 4},
}

// encode is [Delta.AppendTo] where it must succeed.
func encode(t testing.TB, d *Delta, base *Filter) []byte {
	t.Helper()
	b, err := d.AppendTo(nil, base)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func equalFilters(t *testing.T, got, want *Filter) {
	t.Helper()
	if got.Version() != want.Version() || got.Keys() != want.Keys() || got.Ones() != want.Ones() ||
		!got.geometry.matches(want.geometry) {
		t.Fatalf("filter %v %v keys %d ones %d, want %v %v keys %d ones %d",
			got.Version(), got.geometry, got.Keys(), got.Ones(),
			want.Version(), want.geometry, want.Keys(), want.Ones())
	}
	if !slices.Equal(got.list(), want.list()) {
		t.Fatalf("filter %v has other positions", got.Version())
	}
	if got.state() != got.Version().State {
		t.Fatalf("filter %v has state %016x", got.Version(), got.state())
	}
}

// oracle is a counting filter straight from the paper: a map of counters.
type oracle struct {
	geometry Geometry
	counts   map[uint64]int
}

func (o *oracle) positions(k Key) []uint64 {
	var buf [maxHashes]uint64
	return o.geometry.positions(&buf, k)
}

func (o *oracle) add(k Key) {
	for _, p := range o.positions(k) {
		o.counts[p] = min(maxCount, o.counts[p]+1)
	}
}

func (o *oracle) has(k Key) bool {
	return !slices.ContainsFunc(o.positions(k), func(p uint64) bool { return o.counts[p] == 0 })
}

func (o *oracle) remove(k Key) bool {
	if !o.has(k) {
		return false
	}
	for _, p := range o.positions(k) {
		if o.counts[p] < maxCount {
			o.counts[p]--
		}
	}
	return true
}

func (o *oracle) set() []uint64 {
	var set []uint64
	for p, n := range o.counts {
		if n > 0 {
			set = append(set, p)
		}
	}
	slices.Sort(set)
	return set
}

// memoryBytes returns the memory of the counters, without that of the frozen filter.
func (c *CountingFilter) memoryBytes() int {
	counters := c.now()
	n := 0
	for s := range counters.locked {
		n += int(unsafe.Sizeof(*s)) + 4*int(s.size)
	}
	return n
}

// memoryBytes returns the memory of the keys of this part, without that of the filter.
func (s *Set) memoryBytes() int {
	s.shared()
	n := int(unsafe.Sizeof(*s))
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		n += 8*cap(st.keys.slots) + 32*len(st.more) // a reference in a map takes some 32 bytes
		st.mu.Unlock()
	}
	return n
}
