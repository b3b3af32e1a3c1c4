package main

import (
	"encoding/binary"
	"fmt"

	"github.com/bits-and-blooms/bloom/v3"
	cuckoo "github.com/panmari/cuckoofilter"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/index"
)

// A lookupWay answers how many peers may hold a key.
type lookupWay interface {
	// filter makes what is to be added of a peer; it is called from several goroutines.
	filter(keys []digest.Key) (any, error)
	add(peer int, filter any) error
	lookup(k digest.Key) int
	bytes() int
}

// indexWay is the one that is on trial.
type indexWay struct {
	index    *index.Index
	geometry func(n int) digest.Geometry
	matches  []index.Match
}

func peerName(peer int) string { return fmt.Sprint("peer-", peer) }

func (w *indexWay) filter(keys []digest.Key) (any, error) {
	return filterOf(w.geometry(len(keys)), keys)
}

func (w *indexWay) add(peer int, filter any) error {
	return w.index.Set(peerName(peer), filter.(*digest.Filter))
}

func (w *indexWay) lookup(k digest.Key) int {
	w.matches = w.index.Lookup(w.matches[:0], k)
	return len(w.matches)
}

func (w *indexWay) bytes() int { return w.index.MemoryBytes() }

// loopWay asks one filter after the other.
type loopWay struct {
	filters  []*digest.Filter
	geometry func(n int) digest.Geometry
}

func (w *loopWay) filter(keys []digest.Key) (any, error) {
	return filterOf(w.geometry(len(keys)), keys)
}

func (w *loopWay) add(_ int, filter any) error {
	w.filters = append(w.filters, filter.(*digest.Filter))
	return nil
}

func (w *loopWay) lookup(k digest.Key) (n int) {
	for _, f := range w.filters {
		if f.MayContain(k) {
			n++
		}
	}
	return n
}

func (w *loopWay) bytes() (n int) {
	for _, f := range w.filters {
		n += f.MemoryBytes()
	}
	return n
}

// bloomWay asks one filter of bits-and-blooms after the other. The key is hashed
// once.
type bloomWay struct {
	rate    float64
	filters []*bloom.BloomFilter
}

func (w *bloomWay) filter(keys []digest.Key) (any, error) {
	f := bloom.NewWithEstimates(uint(len(keys)), w.rate)
	for _, k := range keys {
		f.Add(keyBytes(k))
	}
	return f, nil
}

func (w *bloomWay) add(_ int, filter any) error {
	w.filters = append(w.filters, filter.(*bloom.BloomFilter))
	return nil
}

func (w *bloomWay) lookup(k digest.Key) (n int) {
	locations := bloom.Locations(keyBytes(k), w.filters[0].K())
	for _, f := range w.filters {
		if f.TestLocations(locations) {
			n++
		}
	}
	return n
}

func (w *bloomWay) bytes() (n int) {
	for _, f := range w.filters {
		n += int(f.Cap()+7) / 8
	}
	return n
}

// cuckooWay asks one cuckoo filter with 16-bit fingerprints after the other. Its
// rate of false positives is as built, about 1 in 8,000.
type cuckooWay struct{ filters []*cuckoo.Filter }

func (w *cuckooWay) filter(keys []digest.Key) (any, error) {
	f := cuckoo.NewFilter(uint(len(keys)))
	for _, k := range keys {
		if !f.Insert(keyBytes(k)) {
			return nil, fmt.Errorf("the cuckoo filter for %d keys is full after %d", len(keys), f.Count())
		}
	}
	return f, nil
}

func (w *cuckooWay) add(_ int, filter any) error {
	w.filters = append(w.filters, filter.(*cuckoo.Filter))
	return nil
}

func (w *cuckooWay) lookup(k digest.Key) (n int) {
	b := keyBytes(k)
	for _, f := range w.filters {
		if f.Lookup(b) {
			n++
		}
	}
	return n
}

func (w *cuckooWay) bytes() (n int) {
	for _, f := range w.filters {
		n += int(float64(f.Count())/f.LoadFactor()+0.5) * 2
	}
	return n
}

func keyBytes(k digest.Key) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(k)) }
