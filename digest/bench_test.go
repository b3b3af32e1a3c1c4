package digest

import (
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// million are the geometries of the paper's tables and ours, for a million keys.
var million = []Geometry{
	{Bits: 8e6, Hashes: 5},
	{Bits: 14e6, Hashes: 2},
	{Bits: 48e6, Hashes: 3},
	{Bits: 92e6, Hashes: 1},
	{Bits: 1e9, Hashes: 1},
}

const benchKeys = 1_000_000

func name(g Geometry) string {
	return fmt.Sprintf("n=1M/bits=%d/k=%d", g.Bits/benchKeys, g.Hashes)
}

func filled(b *testing.B, g Geometry) (*CountingFilter, []Key) {
	keys := randomKeys(random(1), benchKeys)
	return counting(b, g, keys...), keys
}

// BenchmarkReplace removes the oldest of a million keys and adds a new one, in batches of 1 %
// with a freeze between them that is not timed. It reports the time of one addition or removal
// beside the least work that any such structure must do for each position: take a lock, and
// change a random word in as many bytes as the counters take. The two alternate. Medians are
// reported, since these machines are shared.
func BenchmarkReplace(b *testing.B) {
	for _, g := range million {
		b.Run(name(g), func(b *testing.B) {
			c, keys := filled(b, g)
			c.Advance()
			bare := newBareCounters(c.memoryBytes())
			const batch = benchKeys / 100
			var ours, least []float64
			for i := 0; b.Loop(); i = (i + batch) % benchKeys {
				ours = append(ours, perChange(batch, func() { replaceAll(c, keys[i:i+batch]) }))
				c.Advance()
				least = append(least, perChange(batch, func() { bare.touch(2 * batch * g.Hashes) }))
			}
			slices.Sort(ours)
			slices.Sort(least)
			b.ReportMetric(ours[len(ours)/2], "ns/change")
			b.ReportMetric(least[len(least)/2], "bare-ns/change")
			b.ReportMetric(float64(c.memoryBytes())/benchKeys, "B/key")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// replaceAll replaces each key by a new one.
func replaceAll(c *CountingFilter, keys []Key) {
	for i, k := range keys {
		c.Remove(k)
		keys[i] = Key(mix(uint64(k) + golden))
		c.Add(keys[i])
	}
}

func perChange(batch int, f func()) float64 {
	begin := time.Now()
	f()
	return float64(time.Since(begin).Nanoseconds()) / float64(2*batch)
}

type bareCounters struct {
	words  []uint64
	shards [256]struct {
		sync.Mutex
		_ [56]byte
	}
	x uint64
}

func newBareCounters(bytes int) *bareCounters {
	return &bareCounters{words: make([]uint64, bytes/8)}
}

func (c *bareCounters) touch(n int) {
	for range n {
		c.x++
		h := mix(c.x)
		at, _ := bits.Mul64(h, uint64(len(c.words)))
		s := &c.shards[h>>56]
		s.Lock()
		c.words[at]++
		s.Unlock()
	}
}

// BenchmarkReplaceOnTwoCores reports the throughput of two goroutines as a multiple of that of
// one. The two alternate; the median of the rounds is reported.
func BenchmarkReplaceOnTwoCores(b *testing.B) {
	for _, g := range million {
		b.Run(name(g), func(b *testing.B) {
			c, keys := filled(b, g)
			c.Advance()
			left, right := keys[:benchKeys/2], keys[benchKeys/2:]
			const batch = 10_000
			var gains []float64
			for i := 0; b.Loop(); i = (i + batch) % len(left) {
				one := perChange(batch, func() { replaceAll(c, left[i:i+batch]) })
				c.Advance()
				two := perChange(2*batch, func() {
					var wg sync.WaitGroup
					wg.Go(func() { replaceAll(c, left[i:i+batch]) })
					wg.Go(func() { replaceAll(c, right[i:i+batch]) })
					wg.Wait()
				})
				c.Advance()
				gains = append(gains, one/two)
			}
			slices.Sort(gains)
			b.ReportMetric(gains[len(gains)/2], "×one-core")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkCollect measures the time to collect the changes after 1 % of a million keys were
// replaced, and BenchmarkAdvance the time to freeze them.
func BenchmarkCollect(b *testing.B) { benchmarkFreeze(b, false) }
func BenchmarkAdvance(b *testing.B) { benchmarkFreeze(b, true) }

func benchmarkFreeze(b *testing.B, whole bool) {
	for _, g := range million {
		b.Run(name(g)+"/c=1%", func(b *testing.B) {
			c, keys := filled(b, g)
			f := c.Advance()
			const changed = benchKeys / 100
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				for j := range changed {
					k := &keys[(i*changed+j)%benchKeys]
					c.Remove(*k)
					*k = Key(mix(uint64(*k)))
					c.Add(*k)
				}
				b.StartTimer()
				if whole {
					f = c.Advance()
				} else {
					c.counters.Load().collect(f)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*changed), "ns/changed-key")
		})
	}
}

// BenchmarkLongestLock reports how long a writer may have to wait for a freeze of a million new
// keys: how long the slowest shard is locked. It is the median over several freezes, since some
// are preempted.
func BenchmarkLongestLock(b *testing.B) {
	for _, g := range million {
		b.Run(name(g), func(b *testing.B) {
			var longest []time.Duration
			for b.Loop() {
				b.StopTimer()
				c, _ := filled(b, g)
				counters := c.counters.Load()
				runtime.GC()
				b.StartTimer()
				found := make([]uint32, 0, 1<<16)
				slowest := time.Duration(0)
				for i := range counters.shards {
					begin := time.Now()
					found = counters.shards[i].drain(counters, found[:0])
					slowest = max(slowest, time.Since(begin))
				}
				longest = append(longest, slowest)
			}
			slices.Sort(longest)
			b.ReportMetric(float64(longest[len(longest)/2].Microseconds()), "µs-longest")
		})
	}
}

func BenchmarkMayContain(b *testing.B) {
	for _, g := range million {
		c, keys := filled(b, g)
		f := c.Advance()
		_, perKey := f, float64(f.MemoryBytes())*8/benchKeys
		b.Run(name(g)+"/hit", func(b *testing.B) {
			i := 0
			for b.Loop() {
				if !f.MayContain(keys[i]) {
					b.Fatal("a key is missing")
				}
				if i++; i == len(keys) {
					i = 0
				}
			}
			b.ReportMetric(perKey, "bits/key")
		})
		b.Run(name(g)+"/miss", func(b *testing.B) {
			hits := 0
			for k := Key(1); b.Loop(); k += golden {
				if f.MayContain(k) {
					hits++
				}
			}
			b.ReportMetric(perKey, "bits/key")
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, g := range million {
		v := versions(b, g, benchKeys, benchKeys/100, 2)
		d, _ := Diff(v[0], v[1])
		b.Run(name(g)+"/c=1%", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Apply(v[0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*d.Len()), "ns/flip")
		})
	}
}

func BenchmarkKeyOf(b *testing.B) {
	url := []byte("GET https://www.example.com/a/typical/path/to/an/object.html?q=1")
	b.SetBytes(int64(len(url)))
	for b.Loop() {
		KeyOf(1, url)
	}
}
