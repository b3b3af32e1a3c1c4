package index

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/sim/cputime"
)

type benchCluster struct{ peers, n int }

// geometry has at most 0.1 false candidates a lookup, and f = 10⁻³ at most.
func (c benchCluster) geometry() digest.Geometry {
	return digest.Geometry{Bits: uint64(c.n) * uint64(max(1000, 10*c.peers)), Hashes: 1}
}

// benchIndex holds peers of n random keys each, and returns some keys of each.
func benchIndex(b *testing.B, peers, n int) (x *Index, held [][]digest.Key, g digest.Geometry) {
	b.Helper()
	g = benchCluster{peers, n}.geometry()
	x = New()
	for i := range peers {
		rng := random(uint64(i))
		keys := randomKeys(rng, n)
		if err := x.Set(fmt.Sprint("peer", i), filterOf(b, g, digest.Version{Epoch: 1}, keys)); err != nil {
			b.Fatal(err)
		}
		held = append(held, slices.Clone(keys[:min(n, 200)]))
	}
	b.ReportAllocs()
	return x, held, g
}

var benchClusters = []benchCluster{{10, 100_000}, {64, 100_000}, {1000, 10_000}, {10, 1000}, {1000, 100}}

func BenchmarkLookup(b *testing.B) {
	for _, c := range benchClusters {
		b.Run(fmt.Sprintf("peers=%d/n=%d", c.peers, c.n), func(b *testing.B) {
			x, held, _ := benchIndex(b, c.peers, c.n)
			perKey := float64(x.MemoryBytes()) / float64(c.peers*c.n)
			dst := make([]Match, 0, c.peers)
			b.Run("in=none", func(b *testing.B) {
				rng := random(1)
				for b.Loop() {
					dst = x.Lookup(dst[:0], digest.Key(rng.Uint64()))
				}
				b.ReportMetric(perKey, "bytes/key")
			})
			b.Run("in=one", func(b *testing.B) {
				rng := random(1)
				for b.Loop() {
					keys := held[rng.IntN(len(held))]
					dst = x.Lookup(dst[:0], keys[rng.IntN(len(keys))])
				}
			})
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, c := range benchClusters {
		b.Run(fmt.Sprintf("peers=%d/n=%d", c.peers, c.n), func(b *testing.B) {
			x, _, g := benchIndex(b, c.peers, c.n)
			const flips = 2000
			rng := random(2)
			lists := make([][]uint64, 100)
			for i := range lists {
				for range flips {
					lists[i] = append(lists[i], rng.Uint64N(g.Bits))
				}
				slices.Sort(lists[i])
				lists[i] = slices.Compact(lists[i])
			}
			n, begin := 0, cputime.Used()
			for b.Loop() {
				if err := x.table.flip(x.peers["peer1"].place, g.Bits, lists[n%len(lists)]); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64((cputime.Used()-begin).Nanoseconds())/float64(n*flips), "cpu-ns/flip")
		})
	}
}

// BenchmarkApplyCopies applies deltas of peers with equal contents, each at its own time: one key in
// six thousand is replaced, again and again. With cold, the processor's caches are evicted before
// each delta, as in a peer that gets one a millisecond, and in sim exchange. A flip then waits for its
// segment, its line, and a bitmap or the linked words, and costs several times as much.
func BenchmarkApplyCopies(b *testing.B) {
	const contents = 8
	for _, c := range []struct {
		peers, n int
		cold     bool
	}{{100, 100_000, false}, {100, 100_000, true}, {1000, 10_000, false}} {
		b.Run(fmt.Sprintf("peers=%d/n=%d/cold=%v", c.peers, c.n, c.cold), func(b *testing.B) {
			var evict []uint64
			if c.cold {
				evict = make([]uint64, 4<<20)
			}
			g := benchCluster{c.peers, c.n}.geometry()
			rng := random(uint64(c.n))
			x := New()
			var held [contents]*digest.CountingFilter
			var keys [contents][]digest.Key
			for i := range held {
				keys[i] = randomKeys(rng, c.n)
				held[i] = counting(b, g, keys[i]...)
				held[i].Advance()
			}
			for i := range c.peers {
				if err := x.Set(fmt.Sprint("peer", i), held[i%contents].Current()); err != nil {
					b.Fatal(err)
				}
			}
			flips, spent := 0, time.Duration(0)
			for b.Loop() {
				var next [contents]*digest.Filter
				var deltas [contents]*digest.Delta
				for i := range held {
					for range c.n / 6000 {
						at := rng.IntN(c.n)
						held[i].Remove(keys[i][at])
						keys[i][at] = digest.Key(rng.Uint64())
						held[i].Add(keys[i][at])
					}
					next[i], deltas[i] = held[i].AdvanceDelta()
				}
				for _, i := range rng.Perm(c.peers) {
					for j := 0; j < len(evict); j += 8 {
						evict[j]++
					}
					begin := cputime.Used()
					if err := x.Apply(Change{fmt.Sprint("peer", i), deltas[i%contents], next[i%contents]}); err != nil {
						b.Fatal(err)
					}
					spent += cputime.Used() - begin
					flips += deltas[i%contents].Len()
				}
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(flips), "cpu-ns/flip")
			b.ReportMetric(float64(x.MemoryBytes())/float64(c.peers*c.n), "bytes/key")
		})
	}
}

// BenchmarkSet sets a whole filter: of a new peer, of a peer whose filter before had nothing in common
// with it, and of one whose filter before had nine tenths of it.
func BenchmarkSet(b *testing.B) {
	for _, c := range benchClusters {
		b.Run(fmt.Sprintf("peers=%d/n=%d", c.peers, c.n), func(b *testing.B) {
			x, _, g := benchIndex(b, c.peers, c.n)
			keys := randomKeys(random(1<<40), 2*c.n)
			for _, what := range []struct {
				name string
				from int // of keys, where every other filter begins
			}{{"new", c.n}, {"other", c.n}, {"tenth", c.n / 10}} {
				b.Run(what.name, func(b *testing.B) {
					spent := time.Duration(0)
					for i := uint64(0); b.Loop(); i++ {
						f := filterOf(b, g, digest.Version{Epoch: 1, Sequence: i}, keys[what.from*int(i%2):][:c.n])
						begin := cputime.Used()
						if what.name == "new" {
							x.Delete("another")
						}
						if err := x.Set("another", f); err != nil {
							b.Fatal(err)
						}
						spent += cputime.Used() - begin
					}
					b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*c.n), "cpu-ns/key")
				})
			}
		})
	}
}

// BenchmarkSmallMessages decodes, applies and indexes deltas of eight replaced keys each, of one of 64 peers at
// a time, as routers of prompts get them.
func BenchmarkSmallMessages(b *testing.B) {
	const peers, n, replaced, messages = 64, 89_000, 8, 500
	x, _, g := benchIndex(b, peers, n)
	rng := random(3)
	keys := randomKeys(rng, n)
	held := counting(b, g, keys...)
	base := held.Advance()
	var coded [messages][]byte
	for i, before := 0, base; i < messages; i++ {
		for range replaced {
			at := rng.IntN(n)
			held.Remove(keys[at])
			keys[at] = digest.Key(rng.Uint64())
			held.Add(keys[at])
		}
		after, d := held.AdvanceDelta()
		var err error
		if coded[i], err = d.AppendTo(nil, before); err != nil {
			b.Fatal(err)
		}
		before = after
	}
	at, f, spent := messages, base, time.Duration(0)
	for b.Loop() {
		if at == messages {
			if err := x.Set("another", base); err != nil {
				b.Fatal(err)
			}
			at, f = 0, base
		}
		begin := cputime.Used()
		d, err := digest.DecodeDelta(coded[at], f, digest.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if f, err = d.Apply(f); err == nil {
			err = x.Apply(Change{"another", d, f})
		}
		if err != nil {
			b.Fatal(err)
		}
		spent += cputime.Used() - begin
		at++
	}
	b.ReportMetric(replaced*float64(b.N)/float64(spent.Microseconds()), "Mkeys/cpu-s")
}

// BenchmarkPrefixes looks up the prefixes of chains: blocks of prompts, of which a quarter is one of
// sixteen system prompts. The given number of peers hold a chain on average, each to a length of its
// own; others hold its system prompt. A lookup key by key is measured for comparison, and how often
// the results differ.
//
// Of 2,048 keys over 64 peers, 36 are looked up if 2 peers hold the chain and 140 if 16 do, since the
// end of each peer takes some ten keys, few of which are shared. At half a microsecond each, mostly
// for a cache miss and for comparing codes, 16 ends take 65 µs. Comparing only the codes of peers that
// are still searched for saved a tenth; using the filters of few peers instead of the table saved a
// sixth with 16 holders and nothing with 2.
//
// Fewer look-ups are hardly possible: by halving, 16 ends among 2,048 keys take 16·log2(2048/16) = 112,
// since the keys beyond the first four halvings say something about one peer only, and 28 more check
// the ends against false positives. So 16 ends do not take half the time of 64 single look-ups, as was
// once the aim, but 1.5 times as long (98 of 61 µs at 64 peers, 145 of 96 at 1,000, on a busy machine).
func BenchmarkPrefixes(b *testing.B) {
	const rate, prompts = 1e-3, 16
	for _, c := range []struct{ peers, length, chains, holders int }{
		{64, 64, 2000, 2}, {64, 512, 1000, 2}, {64, 2048, 500, 2}, {64, 2048, 500, 16}, {1000, 2048, 1000, 2}, {1000, 2048, 500, 16},
	} {
		b.Run(fmt.Sprintf("peers=%d/length=%d/holders=%d", c.peers, c.length, c.holders), func(b *testing.B) {
			rng := random(1)
			all := randomKeys(rng, c.chains*c.length)
			for i := range c.chains {
				copy(all[i*c.length:][:c.length/4], all[i%prompts*c.length:])
			}
			x := New()
			held := 0
			for i := range c.peers {
				keys := randomKeys(rng, 2000)
				for j := range c.chains {
					if rng.IntN(c.peers) < c.holders {
						keys = append(keys, all[j*c.length:][:c.length/4+1+rng.IntN(c.length*3/4)]...)
					}
				}
				slices.Sort(keys)
				keys = slices.Compact(keys)
				g := digest.Geometry{Bits: uint64(float64(len(keys)) / rate), Hashes: 1}
				if err := x.Set(fmt.Sprint("peer", i), filterOf(b, g, digest.Version{Epoch: 1}, keys)); err != nil {
					b.Fatal(err)
				}
				held += len(keys)
			}
			answers, longer, by := disagreement(b, x, all, c.length)
			for name, ask := range map[string]func([]Prefix, []digest.Key) []Prefix{"gallop": x.Prefixes, "key-by-key": x.linearPrefixes} {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					dst := make([]Prefix, 0, c.peers)
					begin := cputime.Used()
					for b.Loop() {
						dst = ask(dst[:0], all[rng.IntN(c.chains)*c.length:][:c.length])
					}
					b.ReportMetric(float64((cputime.Used()-begin).Nanoseconds())/1000/float64(b.N), "cpu-us")
					b.ReportMetric(float64(answers)/float64(c.chains), "answers")
					if name == "gallop" {
						b.ReportMetric(1e6*float64(longer)/float64(answers), "longer/million")
						b.ReportMetric(float64(by)/float64(answers), "keys-longer")
					}
				})
			}
			b.ReportMetric(float64(held)/float64(c.peers), "keys/peer")
		})
	}
}

// BenchmarkJoin fills an empty index with all peers, as a peer does that starts: one after the other, or as many
// together as there are.
func BenchmarkJoin(b *testing.B) {
	for _, c := range append([]benchCluster{{1, 10_000}, {1, 100_000}, {1, 1_000_000}, {1, 10_000_000}, {1000, 100_000}}, benchClusters...) {
		b.Run(fmt.Sprintf("peers=%d/n=%d", c.peers, c.n), func(b *testing.B) {
			g := c.geometry()
			filters := make([]*digest.Filter, c.peers)
			for i := range filters {
				filters[i] = filterOf(b, g, digest.Version{Epoch: 1}, randomKeys(random(uint64(i)), c.n))
			}
			for _, how := range []string{"singly", "together"} {
				b.Run(how, func(b *testing.B) {
					begin := cputime.Used()
					var x *Index
					for b.Loop() {
						x = New()
						var all []Change
						for i, f := range filters {
							all = append(all, Change{Peer: fmt.Sprint("peer", i), Next: f})
						}
						if how == "together" {
							if err := x.Apply(all...); err != nil {
								b.Fatal(err)
							}
							continue
						}
						for _, c := range all {
							if err := x.Set(c.Peer, c.Next); err != nil {
								b.Fatal(err)
							}
						}
					}
					b.ReportMetric(float64((cputime.Used()-begin).Nanoseconds())/float64(b.N*c.peers*c.n), "cpu-ns/key")
					b.ReportMetric(float64(x.MemoryBytes())/float64(c.peers*c.n), "bytes/key")
				})
			}
		})
	}
}
