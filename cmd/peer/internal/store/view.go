package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/cespare/xxhash/v2"
)

const shortRange = 3 << 10 // ranges up to this length are read and checked before an answer begins

// Access says which parts of an object are read, and for whom.
type Access int

// The kinds of access.
const (
	Describe Access = iota // the description
	Serve                  // the description and the body, for a client
	Share                  // the description and the body, for another cache: a body in memory is checked too
)

// A View is an object opened for reading. It stays readable when the object
// leaves the store. It must be closed; it is not safe for concurrent use.
//
// Its bytes are checked as the package comment says; with [Share] each time.
type View struct {
	store *Store
	obj   *Object
	hot   hotObject // the description and, if it is in memory, the body
	f     *openFile // of a large object, or from which the kernel can send a hot body
	mem   *memory   // the last result of Source, for a body in memory; nil = none
	span  *span     // the same for one on disk
	share bool
}

// Open opens o for the access a. It makes no system call for the description of a hot object.
// It returns [ErrGone] if the object left the store meanwhile. If the object differs from what was
// stored or can't be read, it is removed, and the error wraps [ErrCorrupt].
func (s *Store) Open(o *Object, a Access) (View, error) {
	v := View{store: s, obj: o, share: a == Share}
	if h, ok := s.hot.get(o); ok {
		v.hot = h
		switch {
		case a == Share && h.hasBody && xxhash.Sum64(h.body) != h.sum:
			return View{}, s.dropCorrupt(o, fmt.Errorf("%w: checksum of a body in memory", errBroken))
		case h.hasBody || a == Describe:
			v.useSendable(a)
			return v, nil
		}
		if !o.is(objSmall) {
			if v.f = s.files.get(o.file); v.f != nil {
				return v, nil
			}
		}
	}
	load := v.load
	if o.is(objSmall) {
		load = v.loadSmall
	}
	if err := load(); err != nil {
		v.Close()
		if errors.Is(err, errBroken) {
			err = s.dropCorrupt(o, err)
		}
		return View{}, err
	}
	return v, nil
}

// Again returns another view of the object, with the body that v, which may be closed, has in
// memory. It isn't ok if v has no body in memory, or a damaged one: then use Open.
func (v *View) Again(a Access) (again View, ok bool) {
	if !v.hot.hasBody || a == Share && xxhash.Sum64(v.hot.body) != v.hot.sum {
		return View{}, false
	}
	again = View{store: v.store, obj: v.obj, hot: v.hot, share: a == Share}
	again.useSendable(a)
	return again, true
}

// loadSmall reads and decodes the description and the body of a small object.
func (v *View) loadSmall() error {
	o, s := v.obj, v.store
	raw, r, err := s.segments.read(o)
	if err != nil {
		return err
	}
	v.hot.body, v.hot.hasBody, v.hot.sum = r.body, true, r.bodySum
	return v.decode(r.data, len(raw))
}

// load opens the file of a larger object, and reads and decodes its description.
func (v *View) load() error {
	o, s := v.obj, v.store
	f, err := s.openShared(s.path(o.file.id))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.file.n.Load() == 0:
		return ErrGone
	case err != nil && ourFault(err):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	v.f = f
	o.file.tail.RLock()
	t, err := readTailOf(f, o)
	o.file.tail.RUnlock()
	if err != nil {
		return err
	}
	f.sums, f.trust.body = decodeUint64s(t.sums), o.file.body
	if file, ok := f.File.(resident); ok && o.file.body > blockSize {
		f.trust.file = file
	}
	if err := v.decode(t.data, len(t.data)); err != nil {
		return err
	}
	s.files.put(o.file, f)
	return nil
}

// decode decodes the description, unless that was done already, and adds it to the hot objects,
// where it counts as size bytes.
func (v *View) decode(data []byte, size int) (err error) {
	if v.hot.value == nil {
		if v.hot.value, err = v.store.opt.Decode(v.obj.key, data); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	v.hot.size = size
	v.store.hot.put(v.obj, v.hot)
	return nil
}

// ourFault reports whether a file can't be opened for lack of resources, so that the file may be
// all right.
func ourFault(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Value returns the decoded description. It is shared and must not be changed.
func (v *View) Value() any { return v.hot.value }

// Size returns the length of the body in bytes.
func (v *View) Size() int64 { return v.obj.Size() }

// Source returns a reader of n bytes of the body from offset off on. For connections of package
// conn, the reader of a body in memory has a method Bytes, and that of one which is on disk, or has
// a copy for the kernel to send, has those of conn.Spans. It is valid until the view is closed or
// Source is called again.
//
// Source checks the first block, or all of a short range, so that no answer begins whose
// first bytes are bad. The rest is checked as it is read. An error, of Source or of the reader,
// wraps [ErrCorrupt] if the bytes differ from what was stored or can't be read. Then the
// object was removed, and no byte of the bad block was returned.
func (v *View) Source(off, n int64) (io.Reader, error) {
	switch {
	case off < 0 || n < 0 || off+n > v.Size():
		return nil, fmt.Errorf("store: range %d+%d of %d bytes", off, n, v.Size())
	case v.hot.hasBody:
		b := v.hot.body[off : off+n]
		if v.f != nil && n >= minSendable {
			return &sendable{memory{b}, v.f.File.(systemFile).File, off + n}, nil
		}
		if v.mem == nil {
			v.mem = v.store.memories.Get().(*memory)
		}
		v.mem.b = b
		return v.mem, nil
	case v.f == nil:
		return nil, errors.New("store: view was opened without its body")
	case v.span != nil:
		v.span.Park()
	}
	s := &span{obj: v.obj, off: off, end: off + n, blocks: blocks{store: v.store, f: v.f, body: v.Size(), sums: v.f.sums}}
	if !v.share {
		s.blocks.trust = &v.f.trust
	}
	v.span = s
	if n <= shortRange && off/blockSize < (off+n-1)/blockSize { // it is in two blocks
		b := make([]byte, n)
		_, err := io.ReadFull(s, b)
		return &memory{b}, err
	}
	if s.trusted(off+1) > 0 {
		return s, nil
	}
	if _, err := s.Next(); err != nil && err != io.EOF {
		return nil, err
	}
	return s, nil
}

// Close frees the view.
func (v *View) Close() error {
	if v.mem != nil {
		v.mem.b = nil
		v.store.memories.Put(v.mem)
		v.mem = nil
	}
	if v.f == nil {
		return nil
	}
	if v.span != nil {
		v.span.Park()
	}
	err := v.f.release()
	v.f = nil
	return err
}
