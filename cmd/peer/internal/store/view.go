package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/cespare/xxhash/v2"
)

const hotBody = blockSize // bodies up to this length, one block, are kept in memory when hot

// Access says what an object is opened for.
type Access int

// What an object can be opened for.
const (
	Describe Access = iota // its description
	Serve                  // that and its body, for a client
	Share                  // that and its body, for another cache: memory is checked too
)

// A View is an object opened for reading. It stays readable when the object
// leaves the store. It must be closed; it is not safe for concurrent use.
//
// Its bytes are checked as the package's comment says; with [Share] each time.
type View struct {
	store *Store
	obj   *Object
	value any
	data  []byte // the body, if it is in memory
	sum   uint64 // of it
	inMem bool
	f     *openFile
	span  *span // of the body on disk, once it was asked for
	share bool
}

// Open opens o for what a says. A hot object whose description alone is wanted
// costs no system call. It returns [ErrGone] if the object left the store
// meanwhile and an error that wraps [ErrCorrupt], having dropped the object, if it
// is not what was stored or can't be read.
func (s *Store) Open(o *Object, a Access) (View, error) {
	v := View{store: s, obj: o, share: a == Share}
	if h, ok := s.hot.get(o); ok {
		v.value, v.data, v.sum, v.inMem = h.value, h.body, h.sum, h.hasBody
		switch {
		case a == Share && h.hasBody && xxhash.Sum64(h.body) != h.sum:
			return View{}, s.spoiled(o, fmt.Errorf("%w: checksum of a body in memory", errBroken))
		case h.hasBody || a == Describe:
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
			err = s.spoiled(o, err)
		}
		return View{}, err
	}
	return v, nil
}

// Again returns a view of the object for what a says, out of the memory of v, which may be
// closed. It isn't ok if the body isn't there, or is not to be given as it is: Open tells.
func (v *View) Again(a Access) (again View, ok bool) {
	if !v.inMem || a == Share && xxhash.Sum64(v.data) != v.sum {
		return View{}, false
	}
	return View{store: v.store, obj: v.obj, value: v.value, data: v.data, sum: v.sum, inMem: true, share: a == Share}, true
}

// loadSmall reads and decodes the description and the body of a small object.
func (v *View) loadSmall() error {
	o, s := v.obj, v.store
	raw, r, err := s.segments.read(o)
	if err != nil {
		return err
	}
	if v.value == nil {
		if v.value, err = s.opt.Decode(o.key, r.data); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	v.data, v.sum, v.inMem = r.body, r.bodySum, true
	s.hot.put(o, hotObject{value: v.value, body: r.body, hasBody: true, sum: r.bodySum, size: len(raw)})
	return nil
}

// load opens the file, reads and decodes its description and, if it is short and
// may stay in memory, its body.
func (v *View) load() error {
	o, s := v.obj, v.store
	f, err := s.openShared(s.path(o.file.id))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.file.refs.Load() == 0:
		return ErrGone
	case err != nil && ourFault(err):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	v.f = f
	o.file.tail.RLock()
	key, data, sums, err := readTail(f, o.file.body)
	o.file.tail.RUnlock()
	switch {
	case err != nil:
		return err
	case key != o.key:
		return fmt.Errorf("%w: it holds another key", errBroken)
	}
	f.sums, f.trust.body = sums, o.file.body
	if file, ok := f.File.(resident); ok && o.file.body > blockSize {
		f.trust.file = file
	}
	if v.value == nil {
		if v.value, err = s.opt.Decode(o.key, data); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	h := hotObject{value: v.value, size: len(data)}
	if s.hot != nil && o.file.body <= hotBody {
		if err := v.loadBody(); err != nil {
			return err
		}
		h.body, h.hasBody, h.size = v.data, true, h.size+len(v.data)
		if len(sums) > 0 {
			h.sum = sums[0]
		} else {
			h.sum = xxhash.Sum64(nil)
		}
		v.sum = h.sum
	}
	s.hot.put(o, h)
	if v.inMem {
		f.release()
		v.f = nil
	} else {
		s.files.put(o.file, f)
	}
	return nil
}

// loadBody reads a body of one block into memory.
func (v *View) loadBody() error {
	v.data, v.inMem = make([]byte, v.Size()), true
	if v.Size() == 0 {
		return nil
	}
	b := v.blocks()
	defer b.park()
	all, err := b.at(0)
	copy(v.data, all)
	return err
}

// ourFault reports whether a file can't be opened for a want of this process or
// machine, that says nothing of the file.
func ourFault(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Value returns the decoded description. It is shared: don't change it.
func (v *View) Value() any { return v.value }

// InMemory reports whether the body is in memory, so that reading it can't fail.
func (v *View) InMemory() bool { return v.inMem }

// Size returns the length of the body in bytes.
func (v *View) Size() int64 { return v.obj.Size() }

func (v *View) blocks() blocks {
	return blocks{store: v.store, f: v.f, body: v.Size(), sums: v.f.sums}
}

// Check reads and checks the block that offset off stands in, so that whoever finds
// it corrupt has not begun an answer. The blocks after it are checked as they are
// read. An error, here or there, wraps [ErrCorrupt] where the bytes are not those
// that were stored or can't be read: the object was dropped then, and nothing of
// the bad block was given.
func (v *View) Check(off int64) error {
	switch {
	case off < 0 || off > v.Size():
		return fmt.Errorf("store: offset %d of %d bytes", off, v.Size())
	case v.inMem:
		return nil
	case v.f == nil:
		return errors.New("store: view was opened without its body")
	}
	if v.span == nil {
		v.span = &span{obj: v.obj, blocks: v.blocks()}
		if !v.share {
			v.span.blocks.trust = &v.f.trust
		}
	}
	if v.span.ready && v.span.off == off {
		return nil
	}
	v.span.off, v.span.end, v.span.ready = off, v.Size(), true
	if v.span.trusted(off+1) > 0 {
		return nil
	}
	if _, err := v.span.Next(); err != nil && err != io.EOF {
		v.span.ready = false
		return err
	}
	return nil
}

// Source returns n bytes of the body from offset off on, for a connection that
// knows how to send them (see package conn): a body in memory has a method Bytes,
// one on disk those of conn.Spans. The first block was checked. It is valid until the view is closed or Source is called again.
func (v *View) Source(off, n int64) (io.Reader, error) {
	if off < 0 || n < 0 || off+n > v.Size() {
		return nil, fmt.Errorf("store: range %d+%d of %d bytes", off, n, v.Size())
	}
	if v.inMem {
		return &memory{v.data[off : off+n]}, nil
	}
	if err := v.Check(off); err != nil {
		return nil, err
	}
	v.span.end = off + n
	return v.span, nil
}

// WriteRange writes n bytes of the body from offset off on to w, as they come from
// [View.Source]. With an error it returns how many went out before.
func (v *View) WriteRange(w io.Writer, off, n int64) (int64, error) {
	if v.inMem && off >= 0 && n >= 0 && off+n <= v.Size() {
		k, err := w.Write(v.data[off : off+n])
		return int64(k), err
	}
	src, err := v.Source(off, n)
	if err != nil {
		return 0, err
	}
	return src.(io.WriterTo).WriteTo(w)
}

// Close frees the view.
func (v *View) Close() error {
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

// readTail reads and verifies what follows the body of a file: the blocks' sums, the
// key and the owner's data.
func readTail(f File, body int64) (key string, data []byte, sums []uint64, err error) {
	size, err := f.Size()
	if err != nil {
		return "", nil, nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	n := size - body
	if n < footerSize || n > footerSize+8*blockCount(body)+maxKey+maxData {
		return "", nil, nil, fmt.Errorf("%w: length", errBroken)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, body); err != nil {
		return "", nil, nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	ft, err := parseFooter(b[n-footerSize:], size)
	if err != nil {
		return "", nil, nil, err
	}
	b = b[:n-footerSize]
	if ft.body != body || xxhash.Sum64(b) != ft.tailSum {
		return "", nil, nil, fmt.Errorf("%w: checksum", errBroken)
	}
	sums = make([]uint64, blockCount(body))
	for i := range sums {
		sums[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	b = b[8*len(sums):]
	return string(b[:ft.key]), b[ft.key:], sums, nil
}
