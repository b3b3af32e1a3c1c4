package main

import (
	"fmt"

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
