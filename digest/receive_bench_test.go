package digest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/sim/cputime"
)

// perMille is the geometry for n keys at one false positive in a thousand.
func perMille(n int) Geometry { return Geometry{Bits: uint64(n) * 1000, Hashes: 1} }

// deltaChain returns a filter of n keys, and count successive deltas from it, encoded as a
// receiver gets them. Each replaces some keys.
func deltaChain(t testing.TB, n, replaced, count int) (*Filter, [][]byte) {
	r := random(uint64(n))
	g := perMille(n)
	b := newPieceBuilder(formFor(g.Bits, uint64(n)))
	positions := make([]uint64, n)
	for i := range positions {
		positions[i] = r.Uint64N(g.Bits)
	}
	slices.Sort(positions)
	positions = slices.Compact(positions)
	b.add(positions)
	base := &Filter{geometry: g, keys: uint64(n), ones: uint64(len(positions)), pieces: b.finish()}
	base.version = Version{Epoch: 1, State: base.state()}
	deltas := make([][]byte, count)
	f := base
	for i := range deltas {
		d := &Delta{geometry: g, base: f.version, baseKeys: f.keys, baseOnes: f.ones, target: f.version, keys: f.keys, ones: f.ones}
		for range replaced {
			d.flips = append(d.flips, f.unrank(nil, []uint64{r.Uint64N(f.ones)})[0], r.Uint64N(g.Bits))
		}
		slices.Sort(d.flips)
		d.flips = slices.Compact(d.flips)
		_, c := f.pieces.flip(d.flips)
		d.target.Sequence++
		d.target.State += c.state
		d.ones += 2*c.sets - uint64(len(d.flips))
		deltas[i] = encode(t, d, f)
		f = d.flip(f)
	}
	return base, deltas
}

// BenchmarkReceive decodes and applies deltas of 32 flips, as a peer does for each delta that it
// receives. The cost must not depend on the number of keys. The last is a stream of
// small events, 8 of 89,000 keys each.
//
// The time still grows a little from 10⁴ keys to 10⁷. By profile and by GOGC=off, 8 µs of that
// are the collector's, which marks a piece for each that becomes garbage, and 6 µs are waits
// for pieces that are not in the processor's caches. Pieces of 240 to 656 bytes, nodes of 4 to 16
// and branches of 8 or 16 made no difference above the noise: what smaller ones save is spent
// on the levels above them.
func BenchmarkReceive(b *testing.B) {
	for _, c := range []struct{ n, replaced int }{{10_000, 16}, {100_000, 16}, {1_000_000, 16}, {10_000_000, 16}, {89_000, 8}} {
		b.Run(fmt.Sprintf("n=%d/replaced=%d", c.n, c.replaced), func(b *testing.B) {
			base, deltas := deltaChain(b, c.n, c.replaced, 1000)
			b.ReportAllocs()
			f, i, begin := base, 0, cputime.Used()
			for b.Loop() {
				if i == len(deltas) {
					f, i = base, 0
				}
				d, err := DecodeDelta(deltas[i], f, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				if f, err = d.Apply(f); err != nil {
					b.Fatal(err)
				}
				i++
			}
			spent := float64((cputime.Used() - begin).Nanoseconds()) / float64(b.N)
			b.ReportMetric(spent/1000, "cpu-µs/delta")
			b.ReportMetric(float64(c.replaced)/spent*1000, "Mkeys/cpu-s")
		})
	}
}

// BenchmarkReceiveStep decodes and applies the same small changes in each form. A step, which
// does not carry the state, must not cost more than a bare delta, which does.
func BenchmarkReceiveStep(b *testing.B) {
	const n = 100_000
	base, deltas := deltaChain(b, n, 8, 1000)
	bare := make([][]byte, len(deltas))
	targets := make([]Version, len(deltas))
	for f, i := base, 0; i < len(deltas); i++ {
		d, err := DecodeDelta(deltas[i], f, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if bare[i], err = d.AppendBare(nil, f); err != nil {
			b.Fatal(err)
		}
		targets[i] = d.target
		f = d.flip(f)
	}
	for _, form := range []struct {
		name    string
		receive func(i int, f *Filter) (*Filter, error)
	}{
		{"message", func(i int, f *Filter) (*Filter, error) {
			d, err := DecodeDelta(deltas[i], f, Limits{})
			if err != nil {
				return nil, err
			}
			return d.Apply(f)
		}},
		{"bare", func(i int, f *Filter) (*Filter, error) {
			_, made, err := DecodeBare(bare[i], f, targets[i].Sequence, n, Limits{})
			return made, err
		}},
	} {
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			f, i, begin := base, 0, cputime.Used()
			for b.Loop() {
				if i == len(deltas) {
					f, i = base, 0
				}
				var err error
				if f, err = form.receive(i, f); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64((cputime.Used()-begin).Nanoseconds())/float64(b.N)/1000, "cpu-µs/delta")
		})
	}
}

// BenchmarkPublish freezes a filter after 166 of its keys were replaced: one second of
// a cache of a million, of which one in a hundred is replaced a minute.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d/replaced=166", n), func(b *testing.B) {
			r := random(uint64(n))
			keys := randomKeys(r, n)
			c := counting(b, perMille(n), keys...)
			c.Advance()
			b.ReportAllocs()
			spent := time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				for range 166 {
					i := r.IntN(n)
					c.Remove(keys[i])
					keys[i] = Key(r.Uint64())
					c.Add(keys[i])
				}
				b.StartTimer()
				begin := cputime.Used()
				c.AdvanceDelta()
				spent += cputime.Used() - begin
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-µs/freeze")
		})
	}
}
