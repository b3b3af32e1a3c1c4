package rivals

import "github.com/summarycache/summarycache/sim/lab"

// A cuckooFilter has fingerprints; 0 means none. Fingerprints that find no place are kept
// beside the table, so there are no false negatives.
type cuckooFilter struct {
	buckets [][4]uint32
	spilled map[[2]uint32]int // fingerprint and lower bucket
	width   int               // bits of a fingerprint
}

// cuckooKicks is how many fingerprints an insertion may move.
const cuckooKicks = 500

func newCuckooFilter(buckets, width int) cuckooFilter {
	return cuckooFilter{make([][4]uint32, buckets), map[[2]uint32]int{}, width}
}

// places returns a key's fingerprint and its two buckets. The sum of the two is a hash of the
// fingerprint, so each follows from the other in a table of any size.
func (f *cuckooFilter) places(key uint64) (fingerprint, a, b uint32) {
	fingerprint = max(1, uint32(key>>(64-f.width)))
	a = uint32(lab.High(lab.Mix64(key), uint64(len(f.buckets))))
	return fingerprint, a, f.other(a, fingerprint)
}

func (f *cuckooFilter) other(bucket, fingerprint uint32) uint32 {
	n := uint32(len(f.buckets))
	return (uint32(lab.High(lab.Mix64(uint64(fingerprint)), uint64(n))) + n - bucket) % n
}

// class numbers what the filter knows of a key: its fingerprint, and its two buckets in either
// order. There are at most buckets/2 + 1 such pairs for a fingerprint.
func (f *cuckooFilter) class(key uint64) uint64 {
	fingerprint, a, b := f.places(key)
	n, low := uint64(len(f.buckets)), uint64(min(a, b))
	if sum := (uint64(a) + uint64(b)) % n; uint64(a)+uint64(b) >= n { // both are above the sum
		low -= sum - sum/2
	}
	return uint64(fingerprint)*(n/2+1) + low
}

// insert adds a key.
func (f *cuckooFilter) insert(key uint64) {
	fingerprint, a, b := f.places(key)
	if f.swap(a, 0, fingerprint) || f.swap(b, 0, fingerprint) {
		return
	}
	at := b
	for kick := range cuckooKicks {
		slot := (uint32(kick)*7 + at) % 4
		fingerprint, f.buckets[at][slot] = f.buckets[at][slot], fingerprint
		at = f.other(at, fingerprint)
		if f.swap(at, 0, fingerprint) {
			return
		}
	}
	f.spilled[[2]uint32{fingerprint, min(at, f.other(at, fingerprint))}]++
}

// remove removes one fingerprint of a key that was inserted.
func (f *cuckooFilter) remove(key uint64) {
	fingerprint, a, b := f.places(key)
	if f.swap(a, fingerprint, 0) || f.swap(b, fingerprint, 0) {
		return
	}
	id := [2]uint32{fingerprint, min(a, b)}
	if f.spilled[id]--; f.spilled[id] <= 0 {
		delete(f.spilled, id)
	}
}

func (f *cuckooFilter) swap(bucket, from, to uint32) bool {
	for i, have := range f.buckets[bucket] {
		if have == from {
			f.buckets[bucket][i] = to
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
