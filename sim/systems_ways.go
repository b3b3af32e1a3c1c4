package main

import (
	"fmt"
	"math/bits"

	"github.com/summarycache/summarycache/digest"
)

// ways returns the ways of cooperating, for a cluster of this size.
func (c *cluster) ways() []way {
	all := []way{
		{name: "none", find: func(*cluster) (finder, error) { return silent{}, nil }},
		{name: "ICP", queries: true, all: true, find: func(c *cluster) (finder, error) { return everyone{n: c.caches}, nil }},
		{name: "exact directory (MD5), 1 %", find: func(c *cluster) (finder, error) {
			return newDirectory(c, 0.01, func(key uint32) uint64 { return uint64(key) }, func(uint64) int { return 16 }), nil
		}},
	}
	if c.named() {
		all = append(all, way{name: "server names, 1 %", queries: true, find: serverNames})
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
	squid := func(seconds float64) func(c *cluster) (finder, error) {
		return func(c *cluster) (finder, error) {
			return newDigests(c, digest.Geometry{Bits: 5 * uint64(c.most), Hashes: 4}, publishing{period: seconds, cost: wholeArrayCost, memory: arrayBytes})
		}
	}
	hashes := func(width int, when publishing) func(c *cluster) (finder, error) {
		when.cost = hashesCost(width)
		when.memory = func(f *digest.Filter) int { return (int(f.Ones())*width + 7) / 8 }
		return func(c *cluster) (finder, error) {
			return newDigests(c, digest.Geometry{Bits: 1 << width, Hashes: 1}, when)
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
	return append(all,
		way{name: "Squid's digests, hourly", find: squid(3600)},
		way{name: "Squid's digests, every 60 s", find: squid(60)},
		way{name: "cuckoo filter, bucket images, 1 %", find: func(c *cluster) (finder, error) { return newCuckoos(c, 0.01), nil }},
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
		way{name: "ours, requests 100 times as fast", few: true, gossip: true, faster: 100, find: ours(publishing{asPeers: true})},
		way{name: "ours, requests 1000 times as fast", few: true, gossip: true, faster: 1000, find: ours(publishing{asPeers: true})},
	)
}

// plannedCandidates is how many caches a lookup may name in vain, on average.
const plannedCandidates = 0.01

// plannedBits is how long truncated hashes are so that no more are named in vain.
func (c *cluster) plannedBits() int {
	return bits.Len64(uint64(float64(c.most*(c.caches-1)) / plannedCandidates))
}

// silent asks nobody.
type silent struct{}

func (silent) came(int, uint32)                           {}
func (silent) left(int, uint32)                           {}
func (silent) tick(float64)                               {}
func (silent) ask(dst []int, cache int, key uint32) []int { return dst }
func (silent) account(*outcomes)                          {}

// everyone asks all others.
type everyone struct {
	silent
	n int
}

func (e everyone) ask(dst []int, cache int, key uint32) []int {
	for at := range e.n {
		if at != cache {
			dst = append(dst, at)
		}
	}
	return dst
}

// A directory is a list of what each cache holds, as of its last update: of
// objects, or of what they have in common.
type directory struct {
	of        func(key uint32) uint64 // the entry that an object falls under
	bytes     func(entry uint64) int
	threshold float64
	caches    []directoryOf
	updates   int
	sent      int // bytes
}

type directoryOf struct {
	count     map[uint64]int // objects under an entry, now
	published map[uint64]bool
	changed   map[uint64]bool // entries that may differ
	held, new int             // objects, and how many came since the last update
}

// updateHeader is what any update takes beside its entries or bits, in bytes: as much as
// the short datagram that brings a running peer's change.
const updateHeader = 16

func newDirectory(c *cluster, threshold float64, of func(uint32) uint64, bytes func(uint64) int) *directory {
	d := &directory{of: of, bytes: bytes, threshold: threshold, caches: make([]directoryOf, c.caches)}
	for i := range d.caches {
		d.caches[i] = directoryOf{count: map[uint64]int{}, published: map[uint64]bool{}, changed: map[uint64]bool{}}
	}
	return d
}

// serverNames is a directory of the servers that objects come from.
func serverNames(c *cluster) (finder, error) {
	index, names := map[string]uint64{}, []string{}
	of := make([]uint64, len(c.names))
	for key, name := range c.names {
		host := server(name)
		if _, known := index[host]; !known {
			index[host] = uint64(len(names))
			names = append(names, host)
		}
		of[key] = index[host]
	}
	return newDirectory(c, 0.01, func(key uint32) uint64 { return of[key] }, func(entry uint64) int { return len(names[entry]) + 1 }), nil
}

// named reports whether most names are URLs with a server.
func (c *cluster) named() bool {
	with := 0
	for _, name := range c.names {
		if server(name) != "" {
			with++
		}
	}
	return 2*with > len(c.names)
}

func (d *directory) came(cache int, key uint32) {
	c, entry := &d.caches[cache], d.of(key)
	c.count[entry]++
	c.changed[entry] = true
	c.held++
	c.new++
	if float64(c.new) >= d.threshold*float64(c.held) {
		d.publish(c)
	}
}

func (d *directory) left(cache int, key uint32) {
	c, entry := &d.caches[cache], d.of(key)
	c.changed[entry] = true
	c.held--
	if c.count[entry]--; c.count[entry] == 0 {
		delete(c.count, entry)
	}
}

func (d *directory) publish(c *directoryOf) {
	bytes := updateHeader // with how many came, and how many left
	for entry := range c.changed {
		switch held := c.count[entry] > 0; {
		case held && !c.published[entry]:
			c.published[entry] = true
			bytes += d.bytes(entry)
		case !held && c.published[entry]:
			delete(c.published, entry)
			bytes += d.bytes(entry)
		}
	}
	clear(c.changed)
	c.new = 0
	d.updates += len(d.caches) - 1
	d.sent += bytes * (len(d.caches) - 1)
}

func (d *directory) tick(float64) {}

func (d *directory) ask(dst []int, cache int, key uint32) []int {
	entry := d.of(key)
	for at := range d.caches {
		if at != cache && d.caches[at].published[entry] {
			dst = append(dst, at)
		}
	}
	return dst
}

func (d *directory) account(o *outcomes) {
	o.updates, o.updateBytes = d.updates, d.sent
	total := 0
	for _, c := range d.caches {
		for entry := range c.published {
			total += d.bytes(entry)
		}
	}
	o.memory = total * (len(d.caches) - 1) / len(d.caches)
}
