package main

import "maps"

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
	now, published cuckooFilter
	touched        map[uint32]bool
	held, new      int
}

// A cuckooFilter has fingerprints; 0 means none. Fingerprints that find no place are kept
// beside the table, so there are no false negatives.
type cuckooFilter struct {
	buckets [][4]uint32
	spilled map[[2]uint32]int // fingerprint and lower bucket
	width   int               // bits of a fingerprint
}

func newCuckooFilter(buckets, width int) cuckooFilter {
	return cuckooFilter{make([][4]uint32, buckets), map[[2]uint32]int{}, width}
}

const (
	// A fuller table is smaller, but insertions then move so many fingerprints that updates are
	// several times as long.
	cuckooLoad        = 0.85
	cuckooKicks       = 500
	cuckooBucketBytes = 8
	cuckooImageBytes  = 12
)

func newCuckoos(c *cluster, threshold float64) *cuckoos {
	size := int(float64(c.most)/4/cuckooLoad) + 1
	k := &cuckoos{cluster: c, threshold: threshold, caches: make([]cuckooOf, c.caches)}
	for i := range k.caches {
		k.caches[i] = cuckooOf{
			now:       newCuckooFilter(size, 16),
			published: newCuckooFilter(size, 16),
			touched:   map[uint32]bool{},
		}
	}
	return k
}

// places returns a key's fingerprint and its two buckets. The sum of the two is a hash of the
// fingerprint, so each follows from the other in a table of any size.
func (f *cuckooFilter) places(key uint64) (fingerprint, a, b uint32) {
	fingerprint = max(1, uint32(key>>(64-f.width)))
	a = uint32(high(mix64(key), uint64(len(f.buckets))))
	return fingerprint, a, f.other(a, fingerprint)
}

func (f *cuckooFilter) other(bucket, fingerprint uint32) uint32 {
	n := uint32(len(f.buckets))
	return (uint32(high(mix64(uint64(fingerprint)), uint64(n))) + n - bucket) % n
}

// insert adds a key, and calls touch for every bucket that changes.
func (f *cuckooFilter) insert(key uint64, touch func(uint32)) {
	fingerprint, a, b := f.places(key)
	if f.swap(a, 0, fingerprint, touch) || f.swap(b, 0, fingerprint, touch) {
		return
	}
	at := b
	for kick := range cuckooKicks {
		slot := (uint32(kick)*7 + at) % 4
		fingerprint, f.buckets[at][slot] = f.buckets[at][slot], fingerprint
		touch(at)
		at = f.other(at, fingerprint)
		if f.swap(at, 0, fingerprint, touch) {
			return
		}
	}
	f.spilled[[2]uint32{fingerprint, min(at, f.other(at, fingerprint))}]++
}

// remove removes one fingerprint of a key that was inserted.
func (f *cuckooFilter) remove(key uint64, touch func(uint32)) {
	fingerprint, a, b := f.places(key)
	if f.swap(a, fingerprint, 0, touch) || f.swap(b, fingerprint, 0, touch) {
		return
	}
	id := [2]uint32{fingerprint, min(a, b)}
	if f.spilled[id]--; f.spilled[id] <= 0 {
		delete(f.spilled, id)
	}
}

func (f *cuckooFilter) swap(bucket, from, to uint32, touch func(uint32)) bool {
	for i, have := range f.buckets[bucket] {
		if have == from {
			f.buckets[bucket][i] = to
			touch(bucket)
			return true
		}
	}
	return false
}

func (f *cuckooFilter) contains(key uint64) bool {
	fingerprint, a, b := f.places(key)
	for i := range 4 {
		if f.buckets[a][i] == fingerprint || f.buckets[b][i] == fingerprint {
			return true
		}
	}
	return len(f.spilled) > 0 && f.spilled[[2]uint32{fingerprint, min(a, b)}] > 0
}

func (k *cuckoos) came(cache int, key uint32) {
	c := &k.caches[cache]
	c.now.insert(uint64(k.cluster.keys[key]), func(b uint32) { c.touched[b] = true })
	c.held++
	c.new++
	if float64(c.new) < k.threshold*float64(c.held) {
		return
	}
	for b := range c.touched {
		c.published.buckets[b] = c.now.buckets[b]
	}
	clear(c.published.spilled)
	maps.Copy(c.published.spilled, c.now.spilled)
	k.updates += len(k.caches) - 1
	k.sent += (updateHeader + min(cuckooImageBytes*len(c.touched), cuckooBucketBytes*len(c.now.buckets))) * (len(k.caches) - 1)
	clear(c.touched)
	c.new = 0
}

func (k *cuckoos) left(cache int, key uint32) {
	c := &k.caches[cache]
	c.now.remove(uint64(k.cluster.keys[key]), func(b uint32) { c.touched[b] = true })
	c.held--
}

func (k *cuckoos) tick(float64) {}

func (k *cuckoos) candidates(dst []int, cache int, key uint32) []int {
	for at := range k.caches {
		if at != cache && k.caches[at].published.contains(uint64(k.cluster.keys[key])) {
			dst = append(dst, at)
		}
	}
	return dst
}

func (k *cuckoos) account(o *outcomes) {
	o.updates, o.updateBytes = k.updates, k.sent
	o.memory = cuckooBucketBytes * len(k.caches[0].now.buckets) * (len(k.caches) - 1)
}
