package diskstore

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// An object is one object of a store. It is immutable; a new description of the same body (Update) is a new object.
type object struct {
	// There may be millions. 64 bytes are a size class of the allocator.
	key       string
	file      *file // has the body; nil = the record has it
	seq       uint64
	listUntil uint32 // Unix seconds; 0 = never listed
	due       uint32 // when it is unlisted, see expiries; 0 = never
	seg       uint32 // number of the segment that has its record and entry, which turnover changes; guarded by store.mu
	at        uint32 // offset of the record, in units of 8 bytes; likewise
	size      uint32 // bytes of the body or, if that is a file, of record and entry
	grains    uint32 // room on disk
	generated uint32 // Unix seconds; 0 = unknown
	state     atomic.Uint32
}

// The bits of an object's state.
const (
	objCopied    = 1 << iota // another cache has a copy
	objLabelled              // it is in store.labels
	objListed                // it is listed now
	objLeft                  // it left the index, or has not entered it
	objFound                 // Get has found it since it was stored, or since eviction last spared it; only for copies
	objWritten               // its entry is in the log
	objDiscarded             // its record is garbage
)

func (o *object) is(bit uint32) bool { return o.state.Load()&bit != 0 }

// set sets a bit and reports whether it was clear.
func (o *object) set(bit uint32) bool { return o.state.Or(bit)&bit == 0 }

// clear clears a bit and reports whether it was set.
func (o *object) clear(bit uint32) bool { return o.state.And(^bit)&bit != 0 }

// bytes returns the room that the object takes on disk, in whole grains.
func (o *object) bytes() int64 { return int64(o.grains) * grain }

// logged returns what of it the object takes in its segment.
func (o *object) logged() int64 {
	if o.file != nil {
		return rounded(int64(o.size))
	}
	return o.bytes()
}

func (o *object) Key() string { return o.key }

func (o *object) Size() int64 {
	if o.file == nil {
		return int64(o.size)
	}
	return o.file.body
}

func (o *object) Listed() bool { return o.is(objListed) }

// ListUntil returns when the object stops being listed, in whole seconds; zero = it never is.
func (o *object) ListUntil() time.Time { return instant(int64(o.listUntil) * 1e9) }

// Generated returns when the content was generated, in whole seconds; zero = unknown.
func (o *object) Generated() time.Time { return instant(int64(o.generated) * 1e9) }

// Copied reports whether another cache has a copy ([bodies.Meta.Copied]).
func (o *object) Copied() bool { return o.is(objCopied) }

// A file is a body of more than one block, and is shared by the successive Objects that describe it. It is unlinked
// when the last of them has left the index.
type file struct {
	refs // by Objects that are in the index or about to be
	id   uint64
	body int64
}

// newFile returns the file of one object, with one reference.
func newFile(id uint64, body int64) *file {
	f := &file{id: id, body: body}
	f.n.Store(1)
	return f
}

// newObject makes an object whose record and entry have that size, and whose body has size bytes. It takes over one
// reference to f, the file of the body; nil = the record has it.
func newObject(key string, f *file, seq uint64, logged, size int64, st stamp) *object {
	o := &object{key: key, file: f, seq: seq, listUntil: seconds(st.listUntil), generated: seconds(st.generated), size: uint32(size)}
	if logged = rounded(logged); f != nil {
		o.size = uint32(logged)
		logged += (size + unit - 1) / unit * unit
	}
	o.grains = uint32(logged / grain)
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

// insert puts o into the index if may agrees, and returns whether it did. may gets the object that is there under the
// key, nil if there is none. Nothing can be found, replaced or removed under the key while may works. store.appending
// is held, but by reload, and enter was called.
func (s *store) insert(o *object, may func(cur *object) bool) (done bool) {
	if o.file == nil || o.file.n.Load() == 1 { // a new description of a file takes no more room
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

// dropped is called by the index, with a lock held, when an object leaves it.
func (s *store) dropped(e otter.DeletionEvent[uint64, *object]) {
	if e.Cause == otter.CauseOverflow {
		s.evictions.Add(1)
	}
	s.leave(e.Value)
}

// enter calls the hooks for o, which can't be found yet, and adds it to the lists.
func (s *store) enter(o *object, labels []uint64) {
	s.announce(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listLocked(o, labels)
}

// announce calls the hooks for objects, and counts them.
func (s *store) announce(all ...*object) {
	var memory, listed int64
	for _, o := range all {
		memory += o.memory()
		s.opt.Hooks.Stored(o.key)
		if o.due > 0 {
			s.opt.Hooks.Listed(o.key)
			o.set(objListed)
			listed++
		}
	}
	s.listed.Add(listed)
	s.charge(memory)
}

// listLocked adds o to the lists. store.mu is held.
func (s *store) listLocked(o *object, labels []uint64) {
	s.copies.add(o)
	s.labels.add(o, labels)
	s.segments.holdLocked(o, o.logged())
	if o.due > 0 {
		s.exp.add(o)
	}
}

// leave undoes enter, and frees the object's room on disk. It is called once.
func (s *store) leave(o *object) {
	o.set(objLeft)
	s.indexed.Add(-o.memory())
	s.opt.Memory.Give(o.memory())
	s.unlist(o)
	s.mu.Lock()
	s.copies.forget(o)
	sweep := s.labels.forget(o)
	s.exp.forget(o)
	s.segments.discardLocked(o)
	s.mu.Unlock()
	if sweep {
		go s.sweep() // locks of the index are held here
	}
	s.opt.Hooks.Evicted(o.key)
	s.hot.drop(o)
}

// unlist ends o's listing, unless it has ended already.
func (s *store) unlist(o *object) {
	if o.clear(objListed) {
		s.listed.Add(-1)
		s.opt.Hooks.Unlisted(o.key)
	}
}

// Update's error is [bodies.ErrTooLarge] if the description and the body don't fit into a segment.
func (s *store) Update(old bodies.Object, m bodies.Meta) (bodies.Object, error) {
	o := old.(*object)
	if cur, ok := s.peek(o.key); !ok || cur != o {
		return nil, bodies.ErrGone
	}
	raw := s.records.get(o.logged())
	defer s.records.put(raw)
	r, err := s.segments.read(o, *raw)
	var fresh *object
	if err == nil {
		if o.file != nil && !o.file.acquire() {
			return nil, bodies.ErrGone
		}
		m.Copied, m.Wanted = o.Copied(), nil
		fresh, err = s.commit(o.key, o.file, r.content, r.sum, o.Size(), m, func(cur *object) bool { return cur == o })
	}
	switch {
	case err == nil:
		return fresh, nil
	case errors.Is(err, bodies.ErrGone), errors.Is(err, bodies.ErrClosed):
		return nil, err
	case errors.Is(err, bodies.ErrUnwanted): // another is there, or none
		return nil, bodies.ErrGone
	case errors.Is(err, errBroken):
		return nil, s.unreadable(o, err)
	case ourFault(err):
		return nil, err
	}
	s.DeleteObject(o)
	s.failed(err)
	return nil, err
}
