package diskstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// A view is a [bodies.View]. Its bytes are checked as the package comment says.
type view struct {
	store *store
	obj   *object
	hot   *hotObject    // the description and, if the record has it, the body
	lent  *[]byte       // memory of hot that goes back to store.records; nil = none
	f     *openFile     // of a body that is a file
	mem   bodies.Memory // the last result of Source, for a body in memory
	span  *span         // the same for one on disk
}

func (s *store) Describe(obj bodies.Object) (bodies.Described, error) {
	h, err := s.describe(obj.(*object))
	if err != nil {
		return nil, err
	}
	return h, nil
}

// describe reads and decodes the record of o, unless that is in memory.
func (s *store) describe(o *object) (*hotObject, error) {
	if h, ok := s.hot.get(o); ok {
		return h, nil
	}
	keep, raw := s.hot.wants(o), s.records.get(o.logged())
	h := &hotObject{size: len(*raw), hasBody: o.file == nil}
	r, err := s.segments.read(o, *raw)
	if err == nil {
		if h.value, err = s.opt.Hooks.Decode(o.key, r.data); err != nil {
			err = fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	if err != nil {
		s.records.put(raw)
		return nil, s.unreadable(o, err)
	}
	if h.hasBody {
		h.body, h.one[0], h.sums = r.content, r.sum, h.one[:]
	} else {
		h.sums = decodeUint64s(r.content)
	}
	if h.hasBody && !keep {
		h.lent = raw
		return h, nil
	}
	h.body = bytes.Clone(h.body)
	s.records.put(raw)
	if keep {
		s.hot.put(o, h)
	}
	return h, nil
}

// unreadable removes o if it could not be read as it was stored.
func (s *store) unreadable(o *object, err error) error {
	if errors.Is(err, errBroken) {
		return s.dropCorrupt(o, err)
	}
	return err
}

func (s *store) Open(obj bodies.Object, about bodies.Described) (_ bodies.View, err error) {
	o := obj.(*object)
	hot, _ := about.(*hotObject)
	if hot == nil || !hot.take() {
		if hot, err = s.describe(o); err != nil {
			return nil, err
		}
		hot.take()
	}
	var f *openFile
	if !hot.hasBody {
		if f, err = s.openBody(o); err != nil {
			return nil, s.unreadable(o, err)
		}
	}
	v := s.views.Get().(*view)
	*v = view{store: s, obj: o, hot: hot, lent: hot.lent, f: f}
	return v, nil
}

// openBody opens the file of a body, or takes it if it is open.
func (s *store) openBody(o *object) (*openFile, error) {
	if f := s.files.get(o.file); f != nil {
		return f, nil
	}
	if err := s.reads.begin(); err != nil {
		return nil, err
	}
	file, err := s.opt.FS.Open(s.path(o.file.id))
	s.reads.end()
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist) && o.file.n.Load() == 0:
		return nil, bodies.ErrGone
	case ourFault(err):
		return nil, err
	default:
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	f := &openFile{File: file}
	f.n.Store(1)
	f.trust.body = o.file.body
	f.trust.file, _ = file.(resident)
	s.files.put(o.file, f)
	return f, nil
}

// ourFault reports whether a file can't be opened or read now, for lack of resources or since the disk hangs, so that it
// may be all right.
func ourFault(err error) bool {
	for _, e := range []error{errHangs, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (v *view) Value() any { return v.hot.value }

func (v *view) Size() int64 { return v.obj.Size() }

// For connections of package conn, the reader of a body in memory has a method Bytes, and that of one which is on disk
// those of conn.Spans.
//
// Source checks the first block, so that no answer begins whose first bytes are bad. The rest is checked as it is
// read. After an error that wraps [bodies.ErrCorrupt] the object was removed. No byte of the bad block was returned.
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
	s := &span{obj: v.obj, off: off, end: off + n, blocks: blocks{store: v.store, f: v.f, body: v.Size(), sums: v.hot.sums, trust: &v.f.trust}}
	v.span = s
	if s.trusted(off+1) > 0 {
		return s, nil
	}
	if _, err := s.Next(); err != nil && err != io.EOF {
		return nil, err
	}
	return s, nil
}

func (v *view) Sums() bodies.Sums {
	if v.Size() == 0 {
		return bodies.Sums{}
	}
	return bodies.Sums{Blocks: v.hot.sums, Size: v.Size()}
}

func (v *view) Close() error {
	var err error
	if v.span != nil {
		v.span.Park()
	}
	if v.f != nil {
		err = v.f.release()
	}
	s := v.store
	if v.lent != nil {
		s.records.put(v.lent)
	}
	*v = view{}
	s.views.Put(v)
	return err
}
