package diskstore

import (
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"
)

// A Held is an object in a store's directory.
type Held struct {
	Key       string    `json:"key"`
	Bytes     int64     `json:"bytes"` // of the body
	ListUntil time.Time `json:"list_until,omitzero"`
	Written   time.Time `json:"written"`
	Copied    bool      `json:"copied,omitempty"`
	File      string    `json:"file"` // that has it, relative to the directory
}

// Inspect yields the objects of the store in dir, in no order, and changes nothing. The store may be in use, or may
// not have been closed. Of an object that changes meanwhile, Inspect may yield the old and the new one. It yields an
// error for each file that can't be read completely, and goes on. A directory without a store is an error, too.
func Inspect(dir string) iter.Seq2[Held, error] {
	return func(yield func(Held, error) bool) {
		objects := filepath.Join(dir, "objects")
		if _, err := os.Stat(objects); err != nil {
			yield(Held{}, fmt.Errorf("store: %s has none: %w", dir, err))
			return
		}
		paths, err := fs.Glob(os.DirFS(objects), "segments/*.index")
		if err != nil && !yield(Held{}, err) {
			return
		}
		for _, path := range paths {
			if !inspectFile(dir, filepath.Join(objects, path), yield) {
				return
			}
		}
	}
}

// inspectFile yields the objects of one segment, by its index. It returns false if the caller wants no more.
func inspectFile(dir, path string, yield func(Held, error) bool) bool {
	name, _ := filepath.Rel(dir, path)
	f, err := opened(os.Open(path))
	if err != nil {
		return yield(Held{File: name}, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil {
		err = checkMagic(f, indexFamily, indexMagic)
	}
	held := map[uint64]Held{} // by their numbers
	for r := newEntryReader(f, make([]byte, 64<<10), size); err == nil; {
		e, _, at, errNext := r.next()
		switch err = errNext; {
		case err == io.EOF && at < size:
			err = fmt.Errorf("%w: an entry is cut off", errBroken)
		case err != nil:
		case e.state == stateRemoval:
			delete(held, e.seq)
		case e.state == stateHeld:
			file := name
			if e.file != 0 {
				file = bodyPath("", e.file)
			}
			held[e.seq] = Held{string(e.key), e.body, instant(e.listUntil), time.Unix(0, e.written), e.copied, file}
		}
	}
	for _, h := range held {
		if !yield(h, nil) {
			return false
		}
	}
	return err == io.EOF || yield(Held{File: name}, err)
}
