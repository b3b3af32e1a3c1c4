package diskstore

import (
	"container/list"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/internal/planted"
)

// An object is one object of a store. It is immutable; a new description of the same body (Update) is a new object.
type object struct {
	// There may be millions. 80 bytes are a size class of the allocator.
	key       string
	file      *file // a small object's is that of its segment, which turnover may change; guarded by segments.mu
	seq       uint64
	listUntil int64         // Unix nanoseconds; 0 = never listed
	turn      *list.Element // in the order of the copies; guarded by their lock
	at, entry uint32        // offsets of a small object's record and entry, in units of 8 bytes; guarded by segments.mu
	size      uint32        // bytes of a small object's body
	grains    uint32        // room on disk
	generated uint32        // Unix seconds; 0 = unknown
	place     int32         // in the queue of expiries, -1 = not there; guarded by its lock
	state     atomic.Uint32
}

// The bits of an object's state. The first three are set before it can be found.
const (
	objSmall     = 1 << iota // it is in a segment
	objCopied                // another cache has a copy
	objLabelled              // it is in store.labels
	objListed                // it is listed now
	objLeft                  // it left the index, or has not entered it
	objFound                 // Get has found it since it was stored, or since eviction last spared it; only for copies
	objDiscarded             // its record is garbage
)

func (o *object) is(bit uint32) bool { return o.state.Load()&bit != 0 }

// set sets a bit and reports whether it was clear.
func (o *object) set(bit uint32) bool { return o.state.Or(bit)&bit == 0 }

// clear clears a bit and reports whether it was set.
func (o *object) clear(bit uint32) bool { return o.state.And(^bit)&bit != 0 }

// bytes returns the room that the object takes on disk, in whole grains.
func (o *object) bytes() int64 { return int64(o.grains) * grain }

// Key returns the key under which the object is stored.
func (o *object) Key() string { return o.key }

// Size returns the length of the body in bytes.
func (o *object) Size() int64 {
	if o.is(objSmall) {
		return int64(o.size)
	}
	return o.file.body
}

// Listed reports whether the object is listed now.
func (o *object) Listed() bool { return o.is(objListed) }

// ListUntil returns when the object stops being listed.
func (o *object) ListUntil() time.Time { return instant(o.listUntil) }

// Generated returns when the content was generated, in whole seconds; zero = unknown.
func (o *object) Generated() time.Time {
	if o.generated == 0 {
		return time.Time{}
	}
	return time.Unix(int64(o.generated), 0)
}

// Copied reports whether another cache has a copy ([bodies.Meta.Copied]).
func (o *object) Copied() bool { return o.is(objCopied) }

// A file holds a body, and is shared by the successive Objects that describe it. It is unlinked
// when the last of them has left the index. The small objects of a segment share the segment's.
type file struct {
	refs // by Objects that are in the index or about to be
	id   uint64
	seg  *segment // nil = the file of one object
	body int64
	tail sync.RWMutex // guards the part of the file after the body
}

func (s *store) unref(f *file) {
	if f.drop() {
		s.files.drop(f)
		s.trash.remove(s.path(f.id))
	}
}

// newFile returns the file of one object, with one reference.
func newFile(id uint64, body int64) *file {
	f := &file{id: id, body: body}
	f.n.Store(1)
	return f
}

// newObject makes an object that takes over one reference to f, a file of size bytes.
func newObject(key string, f *file, seq uint64, size int64, st stamp) *object {
	size = (size + unit - 1) / unit * unit
	return stamped(&object{key: key, file: f, seq: seq, grains: uint32(size / grain)}, st)
}

// newSmall makes a small object. size is that of its record and entry together.
func newSmall(key string, seq uint64, size int64, body uint32, st stamp) *object {
	o := stamped(&object{key: key, seq: seq, grains: uint32(rounded(size) / grain), size: body}, st)
	o.set(objSmall)
	return o
}

func stamped(o *object, st stamp) *object {
	o.listUntil, o.generated, o.place = st.listUntil, seconds(st.generated), -1
	if st.copied {
		o.set(objCopied)
	}
	return o
}

// rounded rounds a size up to whole grains.
func rounded(size int64) int64 { return (size + grain - 1) / grain * grain }

// seconds converts a time from nanoseconds, clamped to its range. Only 0 becomes 0.
func seconds(nanos int64) uint32 {
	if nanos == 0 {
		return 0
	}
	return uint32(min(max(nanos/1e9, 1), math.MaxUint32))
}

// insert puts o into the index if may agrees and there is memory for its labels, and reports whether
// it did. may gets the object that is there under the key, nil if there is none. The hooks are called
// before o can be found.
func (s *store) insert(o *object, labels []uint64, may func(cur *object) bool) (done bool) {
	s.entering.RLock()
	defer s.entering.RUnlock()
	if !s.labels.enter(o, labels) {
		s.discard(o)
		return false
	}
	s.enter(o)
	if o.is(objSmall) || o.file.n.Load() == 1 { // a new description of a file takes no more room
		s.spare(o)
	}
	s.index.Compute(s.hash(o.key), func(cur *object, _ bool) (*object, otter.ComputeOp) {
		if done = may(cur); done {
			return o, otter.WriteOp
		}
		return nil, otter.CancelOp
	})
	if !done {
		s.leave(o)
	}
	return done
}

// swap puts o into the index if old is still there, and reports whether it did. The entry of a
// small o is marked as held only then, and before old's is marked as removed: a start must not
// find o if old was replaced or removed meanwhile, and must find one of the two if not.
func (s *store) swap(old, o *object, labels []uint64) bool {
	done := s.insert(o, labels, func(cur *object) bool {
		if cur == old && o.is(objSmall) {
			s.segments.hold(o)
		}
		return cur == old
	})
	s.trash.drain()
	return done
}

// dropped is called by the index, with a lock held, when an object leaves it.
func (s *store) dropped(e otter.DeletionEvent[uint64, *object]) {
	if e.Cause == otter.CauseOverflow {
		s.evictions.Add(1)
	}
	s.leave(e.Value)
}

// maxListed is short enough that sums of durations don't overflow.
const maxListed = 100 * 365 * 24 * time.Hour

// enter calls the hooks for o, which can't be found yet, and queues its unlisting.
func (s *store) enter(o *object) {
	s.charge(o)
	s.opt.Hooks.Stored(o.key)
	s.copies.enter(o)
	after := min(o.ListUntil().Sub(s.opt.Hooks.Now()), maxListed)
	if after <= 0 {
		return
	}
	s.opt.Hooks.Listed(o.key)
	s.listed.Add(1)
	o.set(objListed)
	s.exp.add(o, after)
}

// leave undoes enter, and frees the object's room on disk. It is called once.
func (s *store) leave(o *object) {
	o.set(objLeft)
	s.discharge(o)
	s.copies.leave(o)
	s.labels.leave(o)
	s.exp.remove(o)
	if planted.Fault != "digest-leak" {
		s.unlist(o)
	}
	s.opt.Hooks.Evicted(o.key)
	s.hot.drop(o)
	s.discard(o)
}

// discard frees the room on disk of an object that is not in the index.
func (s *store) discard(o *object) {
	if o.is(objSmall) {
		s.segments.discard(o)
	} else {
		s.unref(o.file)
	}
}

// unlist ends o's listing, unless it has ended already.
func (s *store) unlist(o *object) {
	if o.clear(objListed) {
		s.listed.Add(-1)
		s.opt.Hooks.Unlisted(o.key)
	}
}

// Update replaces the description of o's body and returns the new object. This one is marked as a
// copy if o is. Update returns [bodies.ErrGone] if o is no longer in the store. After any other error o
// is removed; [bodies.ErrTooLarge] means that the description and the body don't fit into a segment.
func (s *store) Update(old bodies.Object, m bodies.Meta) (bodies.Object, error) {
	o := old.(*object)
	if len(m.Data) > maxData {
		return nil, bodies.ErrTooLarge
	}
	s.committing.RLock()
	defer s.committing.RUnlock()
	if s.closed {
		return nil, bodies.ErrClosed
	}
	if cur, ok := s.peek(o.key); !ok || cur != o {
		return nil, bodies.ErrGone
	}
	m.Copied = o.Copied()
	fresh, pinned, err := s.describe(o, m.Data, stampOf(m, s.opt.Hooks.Now().UnixNano()))
	switch {
	case errors.Is(err, bodies.ErrGone):
		return nil, err
	case errors.Is(err, errBroken):
		return nil, s.dropCorrupt(o, err)
	case errors.Is(err, bodies.ErrTooLarge):
		s.DeleteObject(o)
		return nil, err
	case err != nil:
		s.DeleteObject(o)
		s.failed(err)
		return nil, err
	}
	defer s.segments.unpin(pinned)
	if !s.swap(o, fresh, s.labelsOf(m.Data)) {
		s.DeleteObject(o) // it is there if there is no memory for the labels
		return nil, bodies.ErrGone
	}
	return fresh, nil
}

// describe writes a new description of o's body into its file or, if o is small, into a new record
// together with the body. For pinned see [store.put].
func (s *store) describe(o *object, data []byte, st stamp) (fresh *object, pinned *segment, err error) {
	if o.is(objSmall) {
		return s.describeSmall(o, data, st)
	}
	if !o.file.acquire() {
		return nil, nil, bodies.ErrGone
	}
	size, err := s.rewriteTail(o, data, st)
	if err != nil {
		s.unref(o.file)
		return nil, nil, err
	}
	return newObject(o.key, o.file, s.lastID.Add(1), size, st), nil, nil
}

// rewriteTail overwrites the part of o's file that follows the body, in place. A crash
// meanwhile costs the object but causes no wrong answer: the file then has no valid footer.
func (s *store) rewriteTail(o *object, data []byte, st stamp) (size int64, err error) {
	f := o.file
	f.tail.Lock()
	defer f.tail.Unlock()
	h, err := s.opt.FS.Edit(s.path(f.id))
	if err != nil {
		return 0, err
	}
	defer h.Close()
	t, err := readTailOf(h, o)
	if err != nil {
		return 0, err
	}
	tail := appendTail(nil, f.body, decodeUint64s(t.sums), o.key, data, st)
	if _, err := h.WriteAt(tail, f.body); err != nil {
		return 0, err
	}
	size = f.body + int64(len(tail))
	return size, h.Truncate(size)
}
