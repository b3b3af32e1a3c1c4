package lab

// A CuckooFilter has fingerprints; 0 means none. Fingerprints that find no place are kept
// beside the table, so there are no false negatives.
type CuckooFilter struct {
	Buckets [][4]uint32
	Spilled map[[2]uint32]int // fingerprint and lower bucket
	Width   int               // bits of a fingerprint
}

// cuckooKicks is how many fingerprints an insertion may move.
const cuckooKicks = 500

func NewCuckooFilter(buckets, width int) CuckooFilter {
	return CuckooFilter{make([][4]uint32, buckets), map[[2]uint32]int{}, width}
}

// places returns a key's fingerprint and its two buckets. The sum of the two is a hash of the
// fingerprint, so each follows from the other in a table of any size.
func (f *CuckooFilter) places(key uint64) (fingerprint, a, b uint32) {
	fingerprint = max(1, uint32(key>>(64-f.Width)))
	a = uint32(High(Mix64(key), uint64(len(f.Buckets))))
	return fingerprint, a, f.other(a, fingerprint)
}

func (f *CuckooFilter) other(bucket, fingerprint uint32) uint32 {
	n := uint32(len(f.Buckets))
	return (uint32(High(Mix64(uint64(fingerprint)), uint64(n))) + n - bucket) % n
}

// Class numbers what the filter knows of a key: its fingerprint, and its two buckets in either
// order. There are at most buckets/2 + 1 such pairs for a fingerprint.
func (f *CuckooFilter) Class(key uint64) uint64 {
	fingerprint, a, b := f.places(key)
	n, low := uint64(len(f.Buckets)), uint64(min(a, b))
	if sum := (uint64(a) + uint64(b)) % n; uint64(a)+uint64(b) >= n { // both are above the sum
		low -= sum - sum/2
	}
	return uint64(fingerprint)*(n/2+1) + low
}

// Insert adds a key, and calls touch for every bucket that changes.
func (f *CuckooFilter) Insert(key uint64, touch func(uint32)) {
	fingerprint, a, b := f.places(key)
	if f.swap(a, 0, fingerprint, touch) || f.swap(b, 0, fingerprint, touch) {
		return
	}
	at := b
	for kick := range cuckooKicks {
		slot := (uint32(kick)*7 + at) % 4
		fingerprint, f.Buckets[at][slot] = f.Buckets[at][slot], fingerprint
		touch(at)
		at = f.other(at, fingerprint)
		if f.swap(at, 0, fingerprint, touch) {
			return
		}
	}
	f.Spilled[[2]uint32{fingerprint, min(at, f.other(at, fingerprint))}]++
}

// Remove removes one fingerprint of a key that was inserted.
func (f *CuckooFilter) Remove(key uint64, touch func(uint32)) {
	fingerprint, a, b := f.places(key)
	if f.swap(a, fingerprint, 0, touch) || f.swap(b, fingerprint, 0, touch) {
		return
	}
	id := [2]uint32{fingerprint, min(a, b)}
	if f.Spilled[id]--; f.Spilled[id] <= 0 {
		delete(f.Spilled, id)
	}
}

func (f *CuckooFilter) swap(bucket, from, to uint32, touch func(uint32)) bool {
	for i, have := range f.Buckets[bucket] {
		if have == from {
			f.Buckets[bucket][i] = to
			touch(bucket)
			return true
		}
	}
	return false
}

func (f *CuckooFilter) Contains(key uint64) bool {
	fingerprint, a, b := f.places(key)
	for i := range 4 {
		if f.Buckets[a][i] == fingerprint || f.Buckets[b][i] == fingerprint {
			return true
		}
	}
	return len(f.Spilled) > 0 && f.Spilled[[2]uint32{fingerprint, min(a, b)}] > 0
}
