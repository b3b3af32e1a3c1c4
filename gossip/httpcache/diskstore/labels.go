package diskstore

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// labels finds objects by the labels that their owner gives them ([Options.Labels]). Objects
// without labels cost nothing here. Labels are kept as hashes, so two with the same hash
// are not told apart.
//
// A label of an object is a pair of 16 bytes. The pairs are divided by their hashes. Those of an object
// that leaves stay until so many have left that all are looked through: a list of the labels of each
// object would take as much again.
type labels struct {
	memory *budget.Account // of the pairs; nil = no bound
	parts  [256]labelPart
	live   atomic.Int64 // objects with labels in the store
	left   atomic.Int64 // objects that left it, whose pairs may still be there
}

// A labelPart has the pairs whose hashes have the same first byte.
type labelPart struct {
	mu     sync.Mutex
	sorted []labelled // by their hashes
	fresh  []labelled // in the order of their arrival; at most an eighth of sorted, or labelsFresh
}

type labelled struct {
	hash uint64
	o    *Object
}

const (
	labelsFresh = 32
	perLabel    = 20   // bytes: a pair, and the room of fresh ones
	labelsLeft  = 1024 // objects that leave before all pairs are looked through, or half of those in the store
)

// enter adds o under its labels, before it can be found by its key. It reports whether there is memory
// for them: if not, nothing is added.
func (l *labels) enter(o *Object, under []uint64) bool {
	if len(under) == 0 {
		return true
	}
	if need := perLabel * int64(len(under)); !l.memory.Take(need) {
		l.sweep()
		if !l.memory.Take(need) {
			return false
		}
	}
	o.set(objLabelled)
	l.live.Add(1)
	for _, hash := range under {
		p := &l.parts[hash>>56]
		p.mu.Lock()
		if p.fresh = append(p.fresh, labelled{hash, o}); len(p.fresh) > max(labelsFresh, len(p.sorted)/8) {
			l.memory.Give(perLabel * int64(p.merge()))
		}
		p.mu.Unlock()
	}
	return true
}

// merge sorts the fresh pairs among the others, without those of objects that have left, and returns
// how many these were. p.mu is held.
func (p *labelPart) merge() (dropped int) {
	gone := func(e labelled) bool { return e.o.is(objLeft) }
	before := len(p.sorted) + len(p.fresh)
	p.fresh = slices.DeleteFunc(p.fresh, gone)
	slices.SortFunc(p.fresh, func(a, b labelled) int { return cmp.Compare(a.hash, b.hash) })
	all := make([]labelled, 0, before)
	fresh := p.fresh
	for _, e := range p.sorted {
		for len(fresh) > 0 && fresh[0].hash < e.hash {
			all, fresh = append(all, fresh[0]), fresh[1:]
		}
		if !gone(e) {
			all = append(all, e)
		}
	}
	all = append(all, fresh...)
	if len(all) < before-before/8 {
		all = slices.Clone(all)
	}
	p.sorted, p.fresh = all, nil
	return before - len(all)
}

// leave is called when o, which has left the index, is not to be found any more.
func (l *labels) leave(o *Object) {
	if !o.is(objLabelled) {
		return
	}
	if live := l.live.Add(-1); l.left.Add(1) > max(labelsLeft, live/2) {
		go l.sweep() // leave is called with locks of the index held
	}
}

// sweep removes the pairs of objects that have left.
func (l *labels) sweep() {
	if l.left.Swap(0) == 0 {
		return
	}
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		l.memory.Give(perLabel * int64(p.merge()))
		p.mu.Unlock()
	}
}

// find returns the objects with a label.
func (l *labels) find(hash uint64) (all []*Object) {
	p := &l.parts[hash>>56]
	p.mu.Lock()
	defer p.mu.Unlock()
	add := func(e labelled) {
		if !e.o.is(objLeft) {
			all = append(all, e.o)
		}
	}
	from := sort.Search(len(p.sorted), func(i int) bool { return p.sorted[i].hash >= hash })
	for _, e := range p.sorted[from:] {
		if e.hash != hash {
			break
		}
		add(e)
	}
	for _, e := range p.fresh {
		if e.hash == hash {
			add(e)
		}
	}
	return all
}

// labelsOf returns the labels in a description, each once.
func (s *Store) labelsOf(data []byte) (hashes []uint64) {
	for _, label := range s.opt.Hooks.Labels(data) {
		hashes = append(hashes, xxhash.Sum64String(label))
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// Labelled returns the objects that have a label, in no order. One that is being stored
// may be among them before [Store.Get] finds it.
func (s *Store) Labelled(name string) []*Object { return s.labels.find(xxhash.Sum64String(name)) }
