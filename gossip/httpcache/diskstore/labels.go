package diskstore

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// labels finds objects by the labels that their owner gives them ([Options.Labels]). Objects
// without labels cost nothing here. Labels are kept as hashes, so two with the same hash are not told apart: where a
// million labels are in the store, one in a million finds an object of another.
//
// A label of an object is a pair of 8 bytes: the object's number, and 32 bits of the hash, which with those by which the
// pairs are divided are 40. The pairs of an object that leaves, and its number, stay until so many have left that all
// are looked through: a list of the labels of each object would take as much again.
type labels struct {
	memory *budget.Account // of the pairs; nil = no bound
	parts  [256]labelPart
	live   atomic.Int64 // objects with labels in the store
	left   atomic.Int64 // objects that left it, whose pairs may still be there

	sweeping sync.Mutex   // held by sweep, which frees numbers
	mu       sync.RWMutex // may be taken with that of a part
	objects  []*object    // by their numbers; nil = the number is free
	free     []uint32     // numbers
}

// A labelPart has the pairs whose hashes have the same first byte.
type labelPart struct {
	mu     sync.Mutex
	sorted []labelled // by their hashes
	fresh  []labelled // in the order of their arrival; at most an eighth of sorted, or labelsFresh
}

type labelled struct{ hash, object uint32 }

const (
	labelsFresh = 32
	perLabel    = 9    // bytes: a pair, and the room of fresh ones
	perLabelled = 24   // bytes for an object's number, with room to grow
	labelsLeft  = 1024 // objects that leave before all pairs are looked through, or half of those in the store
)

// place returns the part of a label, and the bits of its hash that are compared there.
func (l *labels) place(hash uint64) (*labelPart, uint32) {
	return &l.parts[hash>>56], uint32(hash >> 24)
}

// enter adds o under its labels, before it can be found by its key. It reports whether there is memory
// for them: if not, nothing is added.
func (l *labels) enter(o *object, under []uint64) bool {
	if len(under) == 0 {
		return true
	}
	if need := perLabelled + perLabel*int64(len(under)); !l.memory.Take(need) {
		l.sweep()
		if !l.memory.Take(need) {
			return false
		}
	}
	o.set(objLabelled)
	l.live.Add(1)
	number := l.number(o)
	for _, hash := range under {
		p, rest := l.place(hash)
		p.mu.Lock()
		most := max(labelsFresh, len(p.sorted)/8)
		if p.fresh == nil {
			p.fresh = make([]labelled, 0, most)
		}
		if p.fresh = append(p.fresh, labelled{rest, number}); len(p.fresh) >= most {
			l.merge(p)
		}
		p.mu.Unlock()
	}
	return true
}

// number gives o a number.
func (l *labels) number(o *object) (n uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 {
		n, l.free = l.free[last], l.free[:last]
		l.objects[n] = o
		return n
	}
	l.objects = append(l.objects, o)
	return uint32(len(l.objects) - 1)
}

// merge sorts the fresh pairs among the others, without those of objects that have left. p.mu is held.
func (l *labels) merge(p *labelPart) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	gone := func(e labelled) bool { return l.objects[e.object].is(objLeft) }
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
	l.memory.Give(perLabel * int64(before-len(all)))
	if len(all) < before-before/8 {
		all = slices.Clone(all)
	}
	p.sorted, p.fresh = all, nil
}

// leave is called when o, which has left the index, is not to be found any more.
func (l *labels) leave(o *object) {
	if !o.is(objLabelled) {
		return
	}
	if live := l.live.Add(-1); l.left.Add(1) > max(labelsLeft, live/2) {
		go l.sweep() // leave is called with locks of the index held
	}
}

// sweep removes the pairs of objects that have left, and frees the numbers that no pair has any more.
func (l *labels) sweep() {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	if l.left.Swap(0) == 0 {
		return
	}
	var gone []uint32 // all of their pairs were entered before this
	l.mu.RLock()
	for n, o := range l.objects {
		if o != nil && o.is(objLeft) {
			gone = append(gone, uint32(n))
		}
	}
	l.mu.RUnlock()
	for i := range l.parts {
		p := &l.parts[i]
		p.mu.Lock()
		l.merge(p)
		p.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range gone {
		l.objects[n] = nil
	}
	l.free = append(l.free, gone...)
	l.memory.Give(perLabelled * int64(len(gone)))
}

// find returns the objects with a label.
func (l *labels) find(hash uint64) (all []*object) {
	p, rest := l.place(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	l.mu.RLock()
	defer l.mu.RUnlock()
	add := func(e labelled) {
		if o := l.objects[e.object]; !o.is(objLeft) {
			all = append(all, o)
		}
	}
	from := sort.Search(len(p.sorted), func(i int) bool { return p.sorted[i].hash >= rest })
	for _, e := range p.sorted[from:] {
		if e.hash != rest {
			break
		}
		add(e)
	}
	for _, e := range p.fresh {
		if e.hash == rest {
			add(e)
		}
	}
	return all
}

// labelsOf returns the labels in a description, each once.
func (s *store) labelsOf(data []byte) (hashes []uint64) {
	for _, label := range s.opt.Hooks.Labels(data) {
		hashes = append(hashes, xxhash.Sum64String(label))
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// Labelled returns the objects that have a label, in no order. One that is being stored
// may be among them before [bodies.Store.Get] finds it.
func (s *store) Labelled(name string) iter.Seq[bodies.Object] {
	return func(yield func(bodies.Object) bool) {
		for _, o := range s.labels.find(xxhash.Sum64String(name)) {
			if !yield(o) {
				return
			}
		}
	}
}
