package systems

import (
	"maps"

	"github.com/summarycache/summarycache/sim/lab"
)

// cuckoos keeps a cuckoo filter in each cache, with buckets of four fingerprints of 16 bits. An
// update has the image of every bucket that changed, 12 bytes with its number, or all buckets
// if that is shorter.
type cuckoos struct {
	cluster   *cluster
	threshold float64
	caches    []cuckooOf
	updates   int
	sent      int // bytes
}

type cuckooOf struct {
	now, published lab.CuckooFilter
	touched        map[uint32]bool
	held, new      int
}

const (
	// A fuller table is smaller, but insertions then move so many fingerprints that updates are
	// several times as long.
	cuckooLoad        = 0.85
	cuckooBucketBytes = 8
	cuckooImageBytes  = 12
)

func newCuckoos(c *cluster, threshold float64) *cuckoos {
	size := int(float64(c.most)/4/cuckooLoad) + 1
	k := &cuckoos{cluster: c, threshold: threshold, caches: make([]cuckooOf, c.caches)}
	for i := range k.caches {
		k.caches[i] = cuckooOf{
			now:       lab.NewCuckooFilter(size, 16),
			published: lab.NewCuckooFilter(size, 16),
			touched:   map[uint32]bool{},
		}
	}
	return k
}

func (k *cuckoos) came(cache int, key uint32) {
	c := &k.caches[cache]
	c.now.Insert(uint64(k.cluster.keys[key]), func(b uint32) { c.touched[b] = true })
	c.held++
	c.new++
	if float64(c.new) < k.threshold*float64(c.held) {
		return
	}
	for b := range c.touched {
		c.published.Buckets[b] = c.now.Buckets[b]
	}
	clear(c.published.Spilled)
	maps.Copy(c.published.Spilled, c.now.Spilled)
	k.updates += len(k.caches) - 1
	k.sent += (updateHeader + min(cuckooImageBytes*len(c.touched), cuckooBucketBytes*len(c.now.Buckets))) * (len(k.caches) - 1)
	clear(c.touched)
	c.new = 0
}

func (k *cuckoos) left(cache int, key uint32) {
	c := &k.caches[cache]
	c.now.Remove(uint64(k.cluster.keys[key]), func(b uint32) { c.touched[b] = true })
	c.held--
}

func (k *cuckoos) tick(float64) {}

func (k *cuckoos) candidates(dst []int, cache int, key uint32) []int {
	for at := range k.caches {
		if at != cache && k.caches[at].published.Contains(uint64(k.cluster.keys[key])) {
			dst = append(dst, at)
		}
	}
	return dst
}

func (k *cuckoos) account(o *outcomes) {
	o.updates, o.updateBytes = k.updates, k.sent
	o.memory = cuckooBucketBytes * len(k.caches[0].now.Buckets) * (len(k.caches) - 1)
}
