package diskstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

const shortRange = 3 << 10 // ranges up to this length are read and checked before an answer begins

// A view is an object whose body is being read. It stays readable when the object
// leaves the store. It must be closed once; it is not safe for concurrent use.
//
// Its bytes are checked as the package comment says.
type view struct {
	store *store
	obj   *object
	hot   *hotObject    // the description and, if it is in memory, the body
	f     *openFile     // of a large object
	mem   bodies.Memory // the last result of Source, for a body in memory
	span  *span         // the same for one on disk
}

// Describe reads the description of o. It makes no system call for a hot object. It returns
// [bodies.ErrGone] if the object left the store meanwhile. If the object differs from what was
// stored or can't be read, it is removed, and the error wraps [bodies.ErrCorrupt].
func (s *store) Describe(obj bodies.Object) (bodies.Described, error) {
	o := obj.(*object)
	if h, ok := s.hot.get(o); ok {
		return h, nil
	}
	v := view{store: s, obj: o}
	if err := v.read(); err != nil {
		return nil, err
	}
	if v.f != nil {
		v.f.release()
	}
	return v.hot, nil
}

// Open opens the body of o. about is the result of Describe, from which a body in memory is taken; nil = none.
// Errors are those of Describe.
func (s *store) Open(obj bodies.Object, about bodies.Described) (bodies.View, error) {
	o := obj.(*object)
	hot, _ := about.(*hotObject)
	v := s.views.Get().(*view)
	*v = view{store: s, obj: o, hot: hot}
	if hot == nil {
		v.hot, _ = s.hot.get(o)
	}
	switch h := v.hot; {
	case h == nil:
	case h.hasBody:
		return v, nil
	default:
		if v.f = s.files.get(o.file); v.f != nil {
			return v, nil
		}
	}
	if err := v.read(); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// read reads the description from the disk, and with it a small body.
func (v *view) read() error {
	load := v.load
	if v.obj.is(objSmall) {
		load = v.loadSmall
	}
	err := load()
	if errors.Is(err, errBroken) {
		err = v.store.dropCorrupt(v.obj, err)
	}
	if err != nil && v.f != nil {
		v.f.release()
		v.f = nil
	}
	return err
}

// loadSmall reads and decodes the description and the body of a small object.
func (v *view) loadSmall() error {
	o, s := v.obj, v.store
	raw, r, err := s.segments.read(o)
	if err != nil {
		return err
	}
	return v.decode(hotObject{body: r.body, hasBody: true, sum: r.bodySum, size: len(raw)}, r.data)
}

// load opens the file of a larger object, and reads and decodes its description.
func (v *view) load() error {
	o, s := v.obj, v.store
	f, err := s.openShared(s.path(o.file.id))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.file.n.Load() == 0:
		return bodies.ErrGone
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
	if err := v.decode(hotObject{size: len(t.data)}, t.data); err != nil {
		return err
	}
	s.files.put(o.file, f)
	return nil
}

// decode decodes the description, unless that was done already, and adds it, with what h has of the
// body, to the hot objects.
func (v *view) decode(h hotObject, data []byte) (err error) {
	if v.hot != nil {
		h.value = v.hot.value
	} else if h.value, err = v.store.opt.Hooks.Decode(v.obj.key, data); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	v.hot = &h
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
func (v *view) Value() any { return v.hot.value }

// Size returns the length of the body in bytes.
func (v *view) Size() int64 { return v.obj.Size() }

// Source returns a reader of n bytes of the body from offset off on. For connections of package
// conn, the reader of a body in memory has a method Bytes, and that of one which is on disk those of
// conn.Spans. It is valid until the view is closed or Source is called again.
//
// Source checks the first block, or all of a short range, so that no answer begins whose
// first bytes are bad. The rest is checked as it is read. An error, of Source or of the reader,
// wraps [bodies.ErrCorrupt] if the bytes differ from what was stored or can't be read. Then the
// object was removed, and no byte of the bad block was returned.
func (v *view) Source(off, n int64) (io.Reader, error) {
	switch {
	case off < 0 || n < 0 || off+n > v.Size():
		return nil, fmt.Errorf("store: range %d+%d of %d bytes", off, n, v.Size())
	case v.hot.hasBody:
		v.mem.Rest = v.hot.body[off : off+n]
		return &v.mem, nil
	case v.span != nil:
		v.span.Park()
	}
	s := &span{obj: v.obj, off: off, end: off + n, blocks: blocks{store: v.store, f: v.f, body: v.Size(), sums: v.f.sums, trust: &v.f.trust}}
	v.span = s
	if n <= shortRange && off/blockSize < (off+n-1)/blockSize { // it is in two blocks
		b := make([]byte, n)
		_, err := io.ReadFull(s, b)
		return &bodies.Memory{Rest: b}, err
	}
	if s.trusted(off+1) > 0 {
		return s, nil
	}
	if _, err := s.Next(); err != nil && err != io.EOF {
		return nil, err
	}
	return s, nil
}

// Sums returns the checksums of the whole body.
func (v *view) Sums() bodies.Sums {
	switch {
	case v.hot.hasBody && v.Size() > 0:
		return bodies.Sums{Blocks: []uint64{v.hot.sum}, Size: v.Size()}
	case v.f != nil:
		return bodies.Sums{Blocks: v.f.sums, Size: v.Size()}
	}
	return bodies.Sums{}
}

// Close frees the view.
func (v *view) Close() error {
	var err error
	if v.span != nil {
		v.span.Park()
	}
	if v.f != nil {
		err = v.f.release()
	}
	s := v.store
	*v = view{}
	s.views.Put(v)
	return err
}
