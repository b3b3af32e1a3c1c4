package caches

import (
	"fmt"
	"math/bits"

	"github.com/summarycache/summarycache/digest"
)

// Ways returns the ways of cooperating, for a cluster of this size.
func (c *Cluster) Ways() []Way {
	squid := func(seconds float64) func(c *Cluster) (finder, error) {
		return func(c *Cluster) (finder, error) {
			return newDigests(c, digest.Geometry{Bits: 5 * uint64(c.most), Hashes: 4}, publishing{period: seconds, cost: wholeArrayCost, memory: arrayBytes})
		}
	}
	hashes := func(width int, when publishing) func(c *Cluster) (finder, error) {
		when.cost = hashesCost(width)
		when.memory = func(f *digest.Filter) int { return (int(f.Ones())*width + 7) / 8 }
		return func(c *Cluster) (finder, error) {
			return newDigests(c, digest.Geometry{Bits: 1 << min(width, 40), Hashes: 1}, when)
		}
	}
	ours := func(when publishing) func(c *Cluster) (finder, error) {
		when.cost, when.memory = encodedCost, (*digest.Filter).MemoryBytes
		return func(c *Cluster) (finder, error) {
			geometry, err := digest.GeometryFor(uint64(c.most), PlannedCandidates/float64(c.caches-1))
			if err != nil {
				return nil, err
			}
			return newDigests(c, geometry, when)
		}
	}
	planned := c.PlannedBits()
	all := []Way{
		{Name: "none", find: func(*Cluster) (finder, error) { return silent{}, nil }},
		{Name: "ICP", queries: true, all: true,
			find: func(c *Cluster) (finder, error) { return everyone{n: c.caches}, nil }},
		{Name: "exact directory (MD5), 1 %", find: hashes(128, publishing{threshold: 0.01})},
	}
	for _, load := range []uint64{8, 16, 32} {
		for _, threshold := range []float64{0.001, 0.01, 0.1} {
			all = append(all, Way{
				Name: fmt.Sprintf("Summary Cache, %d bits, %g %%", load, 100*threshold),
				find: func(c *Cluster) (finder, error) {
					return newDigests(c, digest.Geometry{Bits: load * uint64(c.most), Hashes: 4}, publishing{threshold: threshold, cost: recordsCost, memory: arrayBytes})
				},
			})
		}
	}
	return append(all,
		Way{Name: "Squid's digests, hourly", find: squid(3600)},
		Way{Name: "Squid's digests, every 60 s", find: squid(60)},
		Way{Name: "one owner per key", owners: 1},
		Way{Name: "one owner per key, and hot caches (groupcache)", owners: 1, hot: true},
		Way{Name: "two owners per key", owners: 2},
		Way{Name: "truncated hashes, 24 bits, 1 %", find: hashes(24, publishing{threshold: 0.01})},
		Way{Name: "truncated hashes, 24 bits, when ours would", find: hashes(24, publishing{asPeers: true})},
		Way{Name: "truncated hashes, bits as planned, 1 %", find: hashes(planned, publishing{threshold: 0.01})},
		Way{Name: "truncated hashes, bits as planned, when ours would",
			find: hashes(planned, publishing{asPeers: true})},
		Way{Name: "our digests, 1 %", find: ours(publishing{threshold: 0.01})},
		Way{Name: "our digests, 0.1 %", find: ours(publishing{threshold: 0.001})},
		Way{Name: "ours, copies as all else", Gossip: true, find: ours(publishing{asPeers: true})},
		Way{Name: "ours, copies only on a second request", again: true, Gossip: true,
			find: ours(publishing{asPeers: true})},
		Way{Name: "ours", few: true, Gossip: true, find: ours(publishing{asPeers: true})},
		Way{Name: "ours, own zone first", near: true, few: true, Gossip: true, find: ours(publishing{asPeers: true})},
		Way{Name: "ours, requests 100 times as fast", few: true, Gossip: true, faster: 100,
			find: ours(publishing{asPeers: true})},
		Way{Name: "ours, requests 1000 times as fast", few: true, Gossip: true, faster: 1000,
			find: ours(publishing{asPeers: true})},
	)
}

// PlannedCandidates is how many false candidates a lookup may have, on average.
const PlannedCandidates = 0.01

// PlannedBits is the length of truncated hashes that have as few false candidates as our digests are planned for.
func (c *Cluster) PlannedBits() int {
	return bits.Len64(uint64(float64(c.most*(c.caches-1)) / PlannedCandidates))
}

// silent never has candidates.
type silent struct{}

func (silent) came(int, uint32)                                  {}
func (silent) left(int, uint32)                                  {}
func (silent) tick(float64)                                      {}
func (silent) candidates(dst []int, cache int, key uint32) []int { return dst }
func (silent) account(*Outcomes)                                 {}

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
