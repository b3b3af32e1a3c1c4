package diskstore

import (
	"errors"
	"io"
	"iter"
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

// Inspect yields the objects of the store in dir, in no order, and changes nothing. The store may be
// in use, or may not have been closed. Of an object that changes meanwhile, Inspect may yield the
// old and the new one. It yields an error for each file that can't be read completely, and goes on.
func Inspect(dir string) iter.Seq2[Held, error] {
	return func(yield func(Held, error) bool) {
		for _, pattern := range []string{"segments/*.index", "??/????????????????"} {
			paths, err := filepath.Glob(filepath.Join(dir, "objects", pattern))
			if err != nil && !yield(Held{}, err) {
				return
			}
			for _, path := range paths {
				if !inspectFile(dir, path, yield) {
					return
				}
			}
		}
	}
}

// inspectFile yields the objects of one file. It returns false if the caller wants no more.
func inspectFile(dir, path string, yield func(Held, error) bool) bool {
	name, _ := filepath.Rel(dir, path)
	f, err := system{}.Open(path)
	if err != nil {
		return yield(Held{File: name}, err)
	}
	defer f.Close()
	if filepath.Ext(path) != ".index" {
		o, err := readTail(f, -1, make([]byte, 4<<10))
		return yield(Held{o.key, o.body, instant(o.listUntil), time.Unix(0, o.written), o.copied, name}, err)
	}
	if err := checkMagic(f, indexFamily, indexMagic); err != nil {
		return yield(Held{File: name}, err)
	}
	for r := newEntryReader(f, make([]byte, 64<<10)); ; {
		e, _, _, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return yield(Held{File: name}, err)
		case e.held && !yield(Held{string(e.key), int64(e.body), instant(e.listUntil), time.Unix(0, e.written), e.copied, name}, nil):
			return false
		}
	}
}
