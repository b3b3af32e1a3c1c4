package index

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

func TestLookup(t *testing.T) {
	x := New()
	shared := randomKeys(random(0), 100)
	own := map[string][]digest.Key{}
	for i, peer := range []string{"c", "a", "b"} {
		own[peer] = randomKeys(random(uint64(i+1)), 50)
		g := digest.Geometry{Bits: 1 << (40 - i), Hashes: 1}
		if err := x.Set(peer, counting(t, g, append(own[peer], shared...)...).Advance()); err != nil {
			t.Fatalf("Set(%s) = %v", peer, err)
		}
	}
	names := func(k digest.Key) (names []string) {
		for _, m := range x.Lookup(nil, k) {
			names = append(names, m.Peer)
		}
		return names
	}
	for _, k := range shared {
		if got := names(k); !slices.Equal(got, []string{"c", "a", "b"}) {
			t.Fatalf("Lookup = %v, want the surest first", got)
		}
	}
	for peer, keys := range own {
		for _, k := range keys {
			if got := names(k); !slices.Equal(got, []string{peer}) {
				t.Fatalf("Lookup = %v, want %s", got, peer)
			}
		}
	}
	x.Delete("a")
	x.Delete("a")
	if got := names(shared[0]); !slices.Equal(got, []string{"c", "b"}) || x.Len() != 2 {
		t.Errorf("after Delete, Lookup = %v, Len = %d", got, x.Len())
	}
	x.Delete("b")
	x.Delete("c")
	if got := names(shared[0]); got != nil || x.Len() != 0 || x.MemoryBytes() > 1<<16 {
		t.Errorf("after Delete of all, Lookup = %v, Len = %d, MemoryBytes = %d", got, x.Len(), x.MemoryBytes())
	}
}

// TestOrder: peers are ordered by their present false-positive rates.
func TestOrder(t *testing.T) {
	x := New()
	k := digest.Key(1) << 60
	filters := map[string]*digest.CountingFilter{}
	for i, peer := range []string{"a", "b", "c"} {
		filters[peer] = counting(t, digest.Geometry{Bits: 1 << 30, Hashes: 1}, append(randomKeys(random(uint64(i)), 10<<i), k)...)
		if err := x.Set(peer, filters[peer].Advance()); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
		t.Helper()
		var names []string
		for _, m := range x.Lookup([]Match{{Peer: "before"}}, k)[1:] {
			names = append(names, m.Peer)
			if f := filters[m.Peer].Current(); m.FalsePositiveRate != f.FalsePositiveRate() {
				t.Errorf("%s has a rate of %v, want %v", m.Peer, m.FalsePositiveRate, f.FalsePositiveRate())
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("Lookup = %v, want %v", names, want)
		}
	}
	check("a", "b", "c")
	for _, more := range randomKeys(random(9), 30) {
		filters["a"].Add(more)
	}
	next, d := filters["a"].AdvanceDelta()
	if err := x.Apply(Change{"a", d, next}); err != nil {
		t.Fatal(err)
	}
	check("b", "a", "c")
}

// TestManyPeers has more peers than fit the stack memory of a lookup.
func TestManyPeers(t *testing.T) {
	const peers = 64*stackWords + 100
	x := New()
	g := digest.Geometry{Bits: 1 << 24, Hashes: 1}
	k := digest.Key(12345) << 40
	l := loop{}
	for i := range peers {
		keys := randomKeys(random(uint64(i)), 5)
		if i%2 == 0 {
			keys = append(keys, k)
		}
		name := fmt.Sprint(i)
		l[name] = counting(t, g, keys...).Advance()
		if err := x.Set(name, l[name]); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := namesOf(x.Lookup(nil, k)), l.lookup(k); !slices.Equal(got, want) {
		t.Errorf("Lookup finds %d peers, want %d", len(got), len(want))
	}
	audit(t, x, l)
}

// TestAllocations: lookups allocate nothing beyond the caller's slice.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("a sync.Pool forgets at random under the race detector")
	}
	for name, mix := range mixes {
		w := newWorld(t, 3, mix)
		for range 100 {
			w.step()
		}
		dst, counts := make([]Match, 0, 100), make([]Prefix, 0, 100)
		for what, ask := range map[string]func(){
			"Lookup":   func() { w.index.Lookup(dst, w.common[0]) },
			"Prefixes": func() { w.index.Prefixes(counts, w.common) },
		} {
			if got := testing.AllocsPerRun(200, ask); got != 0 {
				t.Errorf("%s: %s allocates %v times", name, what, got)
			}
		}
	}
}

// TestMemoryBytes compares MemoryBytes with the runtime's statistics.
func TestMemoryBytes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	heap := func() int {
		for range 3 { // pools of tests before hold on to memory for two
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for name, g := range map[string]digest.Geometry{
		"table": {Bits: 1 << 30, Hashes: 1},
		"few":   {Bits: 1 << 24, Hashes: 2},
	} {
		var filters []*digest.Filter
		for i := range 40 {
			filters = append(filters, counting(t, g, randomKeys(random(uint64(i)), 10_000)...).Advance())
		}
		counting(t, digest.Geometry{Bits: 64, Hashes: 1}) // the last one's counters are to be garbage
		heap()
		before := heap()
		x := New()
		for i, f := range filters {
			if err := x.Set(fmt.Sprint(i), f); err != nil {
				t.Fatal(err)
			}
		}
		used := heap() - before
		if got := x.MemoryBytes(); math.Abs(float64(got-used)) > 0.05*float64(used) {
			t.Errorf("%s: MemoryBytes() = %d, but the heap has grown by %d", name, got, used)
		}
		runtime.KeepAlive(filters)
	}
}

// TestLimit: a peer that does not fit is refused, and no part of it is stored.
func TestLimit(t *testing.T) {
	g := digest.Geometry{Bits: 1 << 30, Hashes: 1}
	filter := func(i int) *digest.CountingFilter { return counting(t, g, randomKeys(random(uint64(i)), 20_000)...) }
	x := New()
	x.SetMemoryLimit(500_000)
	l := loop{}
	var err error
	for i := 0; err == nil; i++ {
		f := filter(i).Advance()
		if err = x.Set(fmt.Sprint(i), f); err == nil {
			l[fmt.Sprint(i)] = f
		}
		if x.MemoryBytes() > 600_000 {
			t.Fatalf("%d peers occupy %d bytes", len(l), x.MemoryBytes())
		}
	}
	if !errors.Is(err, digest.ErrTooLarge) || len(l) < 4 {
		t.Fatalf("Set = %v with %d peers", err, len(l))
	}
	audit(t, x, l)

	// The memory of deleted peers is reused.
	for _, name := range []string{"0", "1", "2"} {
		x.Delete(name)
		delete(l, name)
	}
	again := filter(100)
	if err := x.Set("again", again.Advance()); err != nil {
		t.Fatalf("Set = %v after Delete", err)
	}
	l["again"] = again.Current()
	audit(t, x, l)

	// A peer that grows too large is gone.
	for _, k := range randomKeys(random(200), 60_000) {
		again.Add(k)
	}
	next, d := again.AdvanceDelta()
	if err := x.Apply(Change{"again", d, next}); !errors.Is(err, digest.ErrTooLarge) {
		t.Fatalf("Apply = %v", err)
	}
	delete(l, "again")
	audit(t, x, l)
	x.SetMemoryLimit(0)
	if err := x.Apply(Change{"again", d, next}); err != nil {
		t.Fatalf("Apply = %v without a limit", err)
	}
	l["again"] = next
	audit(t, x, l)
}

// TestCrowds: filters whose positions were chosen, not hashed, are kept out of the table.
func TestCrowds(t *testing.T) {
	x := New()
	l := loop{}
	g := digest.Geometry{Bits: 1 << 36, Hashes: 1}
	for i := range 10 {
		name := fmt.Sprint(i)
		l[name] = counting(t, g, randomKeys(random(uint64(i)), 5000)...).Advance()
		if err := x.Set(name, l[name]); err != nil {
			t.Fatal(err)
		}
	}
	positions := keysAt(1<<35, g.Bits, 5000)
	l["liar"] = filterOf(t, g, digest.Version{Epoch: 1}, positions)
	if err := x.Set("liar", l["liar"]); err != nil {
		t.Fatal(err)
	}
	audit(t, x, l)
	if got := x.peers["liar"].layout; got != separate {
		t.Errorf("the liar has layout %d", got)
	}
	for _, k := range positions {
		if got, want := namesOf(x.Lookup(nil, k)), l.lookup(k); !slices.Equal(got, want) {
			t.Fatalf("Lookup = %v, want %v", got, want)
		}
	}
	// The same by a delta.
	quiet := filterOf(t, g, digest.Version{Epoch: 1, Sequence: 1}, positions[:10])
	next := filterOf(t, g, digest.Version{Epoch: 1, Sequence: 2}, positions)
	d, err := digest.Diff(quiet, next)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Set("creeper", quiet); err != nil {
		t.Fatal(err)
	}
	if err := x.Apply(Change{"creeper", d, next}); err != nil {
		t.Fatal(err)
	}
	l["creeper"] = next
	audit(t, x, l)
	if got := x.peers["creeper"].layout; got != separate {
		t.Errorf("the creeper has layout %d", got)
	}
}

// TestPlaces: peers that are set again and again do not use up places, even if they are too small for
// their memory to cause a sweep.
func TestPlaces(t *testing.T) {
	x := New()
	g := digest.Geometry{Bits: 1 << 30, Hashes: 1}
	l := loop{"large": counting(t, g, randomKeys(random(0), 20_000)...).Advance()}
	if err := x.Set("large", l["large"]); err != nil {
		t.Fatal(err)
	}
	small := counting(t, g, 1<<60).Advance()
	bytes := 0
	for i := range 20_000 {
		name := fmt.Sprint(i % 10)
		l[name] = small
		x.Delete(name)
		if err := x.Set(name, small); err != nil {
			t.Fatal(err)
		}
		if i%2000 == 0 {
			x.Delete(name)
			delete(l, name)
		}
		if i == 1000 {
			bytes = x.MemoryBytes()
		}
	}
	if words := x.view.Load().words(); words > 8 {
		t.Errorf("sets of places take %d words for %d peers", words, x.Len())
	}
	if got := x.MemoryBytes(); got > bytes+bytes/8 {
		t.Errorf("%d bytes after 20,000 small updates, %d after 1,000", got, bytes)
	}
	audit(t, x, l)
}
