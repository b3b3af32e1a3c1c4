package systems

import (
	"fmt"
	"math/bits"

	"github.com/summarycache/summarycache/digest"
)

// ways returns the ways of cooperating, for a cluster of this size.
func (c *cluster) ways() []way {
	squid := func(seconds float64) func(c *cluster) (finder, error) {
		return func(c *cluster) (finder, error) {
			return newDigests(c, digest.Geometry{Bits: 5 * uint64(c.most), Hashes: 4}, publishing{period: seconds, cost: wholeArrayCost, memory: arrayBytes})
		}
	}
	hashes := func(width int, when publishing) func(c *cluster) (finder, error) {
		when.cost = hashesCost(width)
		when.memory = func(f *digest.Filter) int { return (int(f.Ones())*width + 7) / 8 }
		return func(c *cluster) (finder, error) {
			return newDigests(c, digest.Geometry{Bits: 1 << min(width, 40), Hashes: 1}, when)
		}
	}
	ours := func(when publishing) func(c *cluster) (finder, error) {
		when.cost, when.memory = encodedCost, (*digest.Filter).MemoryBytes
		return func(c *cluster) (finder, error) {
			geometry, err := digest.GeometryFor(uint64(c.most), plannedCandidates/float64(c.caches-1))
			if err != nil {
				return nil, err
			}
			return newDigests(c, geometry, when)
		}
	}
	planned := c.plannedBits()
	all := []way{
		{name: "none", find: func(*cluster) (finder, error) { return silent{}, nil }},
		{name: "ICP", queries: true, all: true, find: func(c *cluster) (finder, error) { return everyone{n: c.caches}, nil }},
		{name: "exact directory (MD5), 1 %", find: hashes(128, publishing{threshold: 0.01})},
	}
	for _, load := range []uint64{8, 16, 32} {
		for _, threshold := range []float64{0.001, 0.01, 0.1} {
			all = append(all, way{
				name: fmt.Sprintf("Summary Cache, %d bits, %g %%", load, 100*threshold),
				find: func(c *cluster) (finder, error) {
					return newDigests(c, digest.Geometry{Bits: load * uint64(c.most), Hashes: 4}, publishing{threshold: threshold, cost: recordsCost, memory: arrayBytes})
				},
			})
		}
	}
	return append(all,
		way{name: "Squid's digests, hourly", find: squid(3600)},
		way{name: "Squid's digests, every 60 s", find: squid(60)},
		way{name: "one owner per key", owners: 1},
		way{name: "one owner per key, and hot caches (groupcache)", owners: 1, hot: true},
		way{name: "two owners per key", owners: 2},
		way{name: "truncated hashes, 24 bits, 1 %", find: hashes(24, publishing{threshold: 0.01})},
		way{name: "truncated hashes, 24 bits, when ours would", find: hashes(24, publishing{asPeers: true})},
		way{name: "truncated hashes, bits as planned, 1 %", find: hashes(planned, publishing{threshold: 0.01})},
		way{name: "truncated hashes, bits as planned, when ours would", find: hashes(planned, publishing{asPeers: true})},
		way{name: "our digests, 1 %", find: ours(publishing{threshold: 0.01})},
		way{name: "our digests, 0.1 %", find: ours(publishing{threshold: 0.001})},
		way{name: "ours, copies as all else", gossip: true, find: ours(publishing{asPeers: true})},
		way{name: "ours, copies only on a second request", again: true, gossip: true, find: ours(publishing{asPeers: true})},
		way{name: "ours", few: true, gossip: true, find: ours(publishing{asPeers: true})},
		way{name: "ours, own zone first", near: true, few: true, gossip: true, find: ours(publishing{asPeers: true})},
		way{name: "ours, requests 100 times as fast", few: true, gossip: true, faster: 100, find: ours(publishing{asPeers: true})},
		way{name: "ours, requests 1000 times as fast", few: true, gossip: true, faster: 1000, find: ours(publishing{asPeers: true})},
	)
}

// plannedCandidates is how many false candidates a lookup may have, on average.
const plannedCandidates = 0.01

// plannedBits is the length of truncated hashes that have as few false candidates.
func (c *cluster) plannedBits() int {
	return bits.Len64(uint64(float64(c.most*(c.caches-1)) / plannedCandidates))
}

// silent never has candidates.
type silent struct{}

func (silent) came(int, uint32)                                  {}
func (silent) left(int, uint32)                                  {}
func (silent) tick(float64)                                      {}
func (silent) candidates(dst []int, cache int, key uint32) []int { return dst }
func (silent) account(*outcomes)                                 {}

// everyone has all other caches as candidates.
type everyone struct {
	silent
	n int
}

func (e everyone) candidates(dst []int, cache int, key uint32) []int {
	for at := range e.n {
		if at != cache {
			dst = append(dst, at)
		}
	}
	return dst
}
