package diskstore

import (
	"iter"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// labels finds objects by the labels that their owner gives them ([bodies.Hooks.Labels]). Objects without labels cost
// nothing here. Labels are kept as hashes of 40 bits, so two with the same hash are not told apart: where a million
// labels are in the store, one in a million finds an object of another.
//
// A search for a label looks through all pairs of a part. The pairs of objects that leave stay until so many have
// left that all are looked through: a list of the labels of each object would take as much again. store.mu guards all
// of it.
type labels struct {
	memory *budget.Account // of the pairs; nil = no bound
	parts  [256][]labelled // by the first byte of the hash
	live   int             // objects with labels in the store
	left   int             // objects that left it since the last sweep
}

type labelled struct {
	object *object
	hash   uint32
}

const (
	perLabel   = 20   // bytes of a pair with room to grow
	labelsLeft = 1024 // objects that leave before all pairs are looked through, or half of those in the store
)

// place returns the part of a label, and the bits of its hash that are compared there.
func (l *labels) place(hash uint64) (*[]labelled, uint32) {
	return &l.parts[hash>>56], uint32(hash >> 24)
}

// takeLabels takes the memory for so many labels, and reports whether there was enough.
func (s *store) takeLabels(n int) bool {
	need := perLabel * int64(n)
	if s.labels.memory.Take(need) {
		return true
	}
	s.sweep()
	return s.labels.memory.Take(need)
}

// add adds o under its labels, before it can be found by its key.
func (l *labels) add(o *object, under []uint64) {
	if len(under) == 0 {
		return
	}
	o.set(objLabelled)
	l.live++
	for _, hash := range under {
		part, rest := l.place(hash)
		*part = append(*part, labelled{o, rest})
	}
}

// forget is called when o, which has left the index, is not to be found any more. It reports whether it is time for a
// sweep.
func (l *labels) forget(o *object) bool {
	if !o.is(objLabelled) {
		return false
	}
	l.live--
	l.left++
	return l.left > max(labelsLeft, l.live/2)
}

// sweep removes the pairs of objects that have left.
func (s *store) sweep() {
	s.mu.Lock()
	left := s.labels.left
	s.labels.left = 0
	s.mu.Unlock()
	if left == 0 {
		return
	}
	for i := range s.labels.parts {
		s.mu.Lock()
		all := s.labels.parts[i]
		rest := slices.DeleteFunc(all, func(e labelled) bool { return e.object.is(objLeft) })
		if len(rest) < len(all) {
			s.labels.parts[i] = slices.Clone(rest)
		}
		s.mu.Unlock()
		s.labels.memory.Give(perLabel * int64(len(all)-len(rest)))
	}
}

// labelsOf returns the labels in a description, each once.
func (s *store) labelsOf(data []byte) (hashes []uint64) {
	for _, label := range s.opt.Hooks.Labels(data) {
		hashes = append(hashes, xxhash.Sum64String(label))
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// Labelled may find an object that is being stored before [bodies.Store.Get] does.
func (s *store) Labelled(name string) iter.Seq[bodies.Object] {
	return func(yield func(bodies.Object) bool) {
		part, hash := s.labels.place(xxhash.Sum64String(name))
		var all []*object
		s.mu.RLock()
		for _, e := range *part {
			if e.hash == hash && !e.object.is(objLeft) {
				all = append(all, e.object)
			}
		}
		s.mu.RUnlock()
		for _, o := range all {
			if !yield(o) {
				return
			}
		}
	}
}
