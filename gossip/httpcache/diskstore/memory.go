package diskstore

import "time"

// perObject is the memory in bytes that an object takes in the index besides its key, as measured: the object, nodes
// of the index, and what its owner keeps for each.
const perObject = 240

func (o *object) memory() int64 { return perObject + int64(len(o.key)) }

// charge counts the memory of objects that enter the index. If there is none left, the store makes room: the
// objects themselves are in use already.
func (s *store) charge(n int64) {
	if now := s.indexed.Add(n); s.hot != nil && now/s.hot.step() != (now-n)/s.hot.step() {
		s.hot.shrink(s.hot.most())
	}
	if !s.opt.Memory.Take(n) {
		s.opt.Memory.Must(n)
		s.short()
	}
}

// short makes room after there was no memory left for the index. The store shrinks by a sixteenth of what it holds,
// and tries to grow again later.
func (s *store) short() {
	held := s.held()
	s.room.Lock()
	defer s.room.Unlock()
	if s.room.scarce > 0 && time.Since(s.room.shortAt) < time.Second {
		return // another writer has just made room
	}
	s.room.scarce = max(held-held/16, unit)
	s.room.shortAt = time.Now()
	s.log.Warn("no memory is left for the index of the objects: the store makes room; see --memory-limit", "objects", s.index.EstimatedSize(), "held", held)
	s.applyLocked()
}
