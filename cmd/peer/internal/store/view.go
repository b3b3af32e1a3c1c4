package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cespare/xxhash/v2"
)

const (
	hotBody    = 64 << 10 // bodies up to this length are kept in memory when hot
	verifyBody = 1 << 20  // reloaded bodies up to this length are verified before their first byte is served
)

// A View is an object opened for reading. It stays readable when the object
// leaves the store. It must be closed; it is not safe for concurrent use.
type View struct {
	store *Store
	obj   *Object
	value any
	data  []byte // the body, if it is in memory
	inMem bool
	f     *openFile
	sums  []uint64 // of the body's chunks, if they must be checked while it is read
}

// Open opens o. Without body, only its description is wanted, and a hot object
// costs no system call. It returns [ErrGone] if the object left the store
// meanwhile and [ErrCorrupt], having removed it, if it is not what was stored.
func (s *Store) Open(o *Object, body bool) (View, error) {
	v := View{store: s, obj: o}
	if h, ok := s.hot.get(o); ok {
		v.value, v.data, v.inMem = h.value, h.body, h.hasBody
		if h.hasBody || !body {
			return v, nil
		}
		if o.file.verified.Load() {
			if v.f = s.files.get(o.file); v.f != nil {
				return v, nil
			}
		}
	}
	if err := v.load(); err != nil {
		v.Close()
		if errors.Is(err, errBroken) {
			s.corrupt.Add(1)
			s.DeleteObject(o)
			s.log.Error("object is corrupt, removed", "key", o.key, "error", err)
			return View{}, ErrCorrupt
		}
		return View{}, err
	}
	return v, nil
}

// load opens the file, reads and decodes its description and, if it is short,
// its body, and verifies what it can before anything is served.
func (v *View) load() error {
	o, s := v.obj, v.store
	f, err := openShared(s.path(o.file.id))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	} else if err != nil {
		return err
	}
	v.f = f
	o.file.tail.RLock()
	data, sums, err := readTail(f.File, o.file.body, o.key)
	o.file.tail.RUnlock()
	if err != nil {
		return err
	}
	if v.value == nil {
		if v.value, err = s.opt.Decode(o.key, data); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	if !o.file.verified.Load() {
		v.sums = sums
	}
	short := s.hot != nil && o.file.body <= hotBody
	if short {
		v.data = make([]byte, o.file.body)
		v.inMem = true
		if _, err := io.ReadFull(io.NewSectionReader(f, 0, o.file.body), v.data); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	if v.sums != nil && o.file.body <= verifyBody {
		if err := v.verify(); err != nil {
			return err
		}
	}
	s.hot.put(o, hotObject{value: v.value, body: v.data, hasBody: v.inMem, size: len(data) + len(v.data)})
	switch {
	case v.inMem:
		f.release()
		v.f = nil
	case v.sums == nil:
		s.files.put(o.file, f)
	}
	return nil
}

// verify checks the whole body against its sums.
func (v *View) verify() error {
	buf := v.data
	if !v.inMem {
		buf = make([]byte, chunkSize)
	}
	for i := range v.sums {
		b, err := v.chunk(i, buf)
		if err != nil {
			return err
		}
		if xxhash.Sum64(b) != v.sums[i] {
			return fmt.Errorf("%w: checksum of chunk %d", errBroken, i)
		}
	}
	v.sums = nil
	v.obj.file.verified.Store(true)
	return nil
}

// chunk returns the i-th chunk of the body, read into buf unless it is in memory.
func (v *View) chunk(i int, buf []byte) ([]byte, error) {
	off := int64(i) * chunkSize
	n := min(chunkSize, v.obj.file.body-off)
	if v.inMem {
		return v.data[off : off+n], nil
	}
	if _, err := v.f.ReadAt(buf[:n], off); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	return buf[:n], nil
}

// Value returns the decoded description. It is shared: don't change it.
func (v *View) Value() any { return v.value }

// Size returns the length of the body in bytes.
func (v *View) Size() int64 { return v.obj.file.body }

// WriteRange writes n bytes of the body from offset off on to w. No byte that fails its checksum is written: then the object
// is removed and [ErrCorrupt] returned.
func (v *View) WriteRange(w io.Writer, off, n int64) (int64, error) {
	if off < 0 || n < 0 || off+n > v.Size() {
		return 0, fmt.Errorf("store: range %d+%d of %d bytes", off, n, v.Size())
	}
	switch {
	case v.inMem:
		k, err := w.Write(v.data[off : off+n])
		return int64(k), err
	case v.f == nil:
		return 0, errors.New("store: view was opened without its body")
	case v.sums != nil:
		return v.writeVerified(w, off, n)
	}
	k, err := io.Copy(w, &span{v.f.File, off, n})
	if err == nil && k < n {
		err = io.ErrUnexpectedEOF
	}
	return k, err
}

// writeVerified is WriteRange for a body whose sums weren't checked yet.
func (v *View) writeVerified(w io.Writer, off, n int64) (int64, error) {
	var done int64
	buf := make([]byte, chunkSize)
	for done < n {
		at := off + done
		i := int(at / chunkSize)
		b, err := v.chunk(i, buf)
		if err == nil && xxhash.Sum64(b) != v.sums[i] {
			err = errBroken
		}
		if err != nil {
			v.store.corrupt.Add(1)
			v.store.DeleteObject(v.obj)
			return done, ErrCorrupt
		}
		b = b[at%chunkSize:]
		k, err := w.Write(b[:min(int64(len(b)), n-done)])
		done += int64(k)
		if err != nil {
			return done, err
		}
	}
	if n == v.Size() {
		v.obj.file.verified.Store(true)
	}
	return done, nil
}

// Close frees the view.
func (v *View) Close() error {
	if v.f == nil {
		return nil
	}
	err := v.f.release()
	v.f = nil
	return err
}

// readTail reads and verifies what follows the body of a file: the owner's data
// and the chunks' sums.
func readTail(f *os.File, body int64, key string) (data []byte, sums []uint64, err error) {
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	n := st.Size() - body
	if n < footerSize || n > footerSize+8*chunks(body)+maxKey+maxData {
		return nil, nil, fmt.Errorf("%w: length", errBroken)
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, body); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	ft, err := parseFooter(b[n-footerSize:], st.Size())
	if err != nil {
		return nil, nil, err
	}
	b = b[:n-footerSize]
	if ft.body != body || xxhash.Sum64(b) != ft.tailSum {
		return nil, nil, fmt.Errorf("%w: checksum", errBroken)
	}
	sums = make([]uint64, chunks(body))
	for i := range sums {
		sums[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	b = b[8*len(sums):]
	if string(b[:ft.key]) != key {
		return nil, nil, fmt.Errorf("%w: it holds another key", errBroken)
	}
	return b[ft.key:], sums, nil
}
