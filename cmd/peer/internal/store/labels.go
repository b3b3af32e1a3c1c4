package store

import (
	"sync"

	"github.com/cespare/xxhash/v2"
)

// labels finds objects by the labels that their owner gives them ([Options.Labels]). Objects
// without labels cost nothing here. Labels are kept as hashes, so two with the same hash
// are not told apart.
type labels struct {
	mu sync.Mutex
	by map[uint64]map[*Object]struct{}
	of map[*Object][]uint64
}

// enter adds o under its labels, before it can be found by its key.
func (l *labels) enter(o *Object, under []uint64) {
	if len(under) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by, l.of = make(map[uint64]map[*Object]struct{}), make(map[*Object][]uint64)
	}
	o.set(objLabelled)
	l.of[o] = under
	for _, label := range under {
		if l.by[label] == nil {
			l.by[label] = make(map[*Object]struct{}, 1)
		}
		l.by[label][o] = struct{}{}
	}
}

func (l *labels) leave(o *Object) {
	if !o.is(objLabelled) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, label := range l.of[o] {
		if delete(l.by[label], o); len(l.by[label]) == 0 {
			delete(l.by, label)
		}
	}
	delete(l.of, o)
}

func (s *Store) labelsOf(data []byte) (hashes []uint64) {
	for _, label := range s.opt.Labels(data) {
		hashes = append(hashes, xxhash.Sum64String(label))
	}
	return hashes
}

// Labelled returns the objects that have a label, in no order. One that is being stored
// may be among them before [Store.Get] finds it.
func (s *Store) Labelled(name string) []*Object {
	l, label := &s.labels, xxhash.Sum64String(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*Object, 0, len(l.by[label]))
	for o := range l.by[label] {
		all = append(all, o)
	}
	return all
}
