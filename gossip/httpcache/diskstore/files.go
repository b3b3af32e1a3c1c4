package diskstore

import (
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// maxOpen is how many files of objects in use stay open. Opening and closing one costs as much as sending the body of
// a small object.
const maxOpen = 256

// An openFile is a file that several views may read at once, by offsets. It is closed when the last of them is closed
// and it has left the set of open files.
type openFile struct {
	File
	refs
	trust trust
}

func (o *openFile) release() error {
	if o.drop() {
		return o.File.Close()
	}
	return nil
}

// refs is a reference count.
type refs struct{ n atomic.Int32 }

// acquire takes a reference, unless the count has reached 0.
func (r *refs) acquire() bool {
	for { // each round but the last finds that n has changed
		n := r.n.Load()
		if n == 0 {
			return false
		}
		if r.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// drop gives up a reference, and reports whether it was the last.
func (r *refs) drop() bool { return r.n.Add(-1) == 0 }

// openFiles keeps the most used files open, by their numbers.
type openFiles struct {
	cache  *otter.Cache[uint64, *openFile]
	closed atomic.Bool
}

func newOpenFiles() *openFiles {
	return &openFiles{cache: otter.Must(&otter.Options[uint64, *openFile]{
		MaximumSize:      maxOpen,
		OnAtomicDeletion: func(e otter.DeletionEvent[uint64, *openFile]) { e.Value.release() },
		Logger:           &otter.NoopLogger{},
	})}
}

// get returns an open file with a reference for the caller, or nil.
func (s *openFiles) get(f *file) *openFile {
	o, ok := s.cache.GetIfPresent(f.id)
	if !ok || !o.acquire() {
		return nil
	}
	return o
}

// put keeps o open for the next view. The caller has a reference to it.
func (s *openFiles) put(f *file, o *openFile) {
	if !o.acquire() {
		return
	}
	if _, fresh := s.cache.SetIfAbsent(f.id, o); !fresh {
		o.release()
		return
	}
	if f.n.Load() == 0 || s.closed.Load() { // drop or close came too early
		s.drop(f)
	}
}

// drop removes a file that left the store; it is closed with its last view.
func (s *openFiles) drop(f *file) { s.cache.Invalidate(f.id) }

// close closes all files but those of open views. None is kept from then on.
func (s *openFiles) close() {
	s.closed.Store(true)
	s.cache.InvalidateAll()
	s.cache.StopAllGoroutines()
}
