// Package bodies has what a cache and its stores say to each other of the bodies of responses: their
// checksums, the stream of a body that is arriving, and the names of what stores return.
//
// It knows neither HTTP nor any place where bodies are kept.
package bodies

import (
	"bytes"
	"errors"
	"io"
	"time"
)

var (
	// ErrTooLarge is returned when an object cannot fit the store.
	ErrTooLarge = errors.New("store: object is larger than the store takes")
	// ErrGone is returned when an object left the store before it was opened or updated.
	ErrGone = errors.New("store: object is gone")
	// ErrCorrupt is returned when bytes of an object differ from the stored ones, or can't be read.
	ErrCorrupt = errors.New("store: object is corrupt")
	// ErrNoMemory is returned when there is no memory for an object, or for its labels.
	ErrNoMemory = errors.New("store: no memory for the object's labels")
	// ErrUnwanted is returned by Commit if [Meta.Wanted] said so.
	ErrUnwanted = errors.New("store: object is not wanted any more")
	// ErrClosed is returned by a store that was closed.
	ErrClosed = errors.New("store: closed")
	// ErrBrokenOff is returned to the followers of a body that ended before it was complete.
	ErrBrokenOff = errors.New("store: body broke off")
	// ErrNoFollower is returned when a body is neither stored nor followed.
	ErrNoFollower = errors.New("store: body can't be stored, and nobody follows it")
	// ErrBehind is returned to a follower that was so slow that others went on without it.
	ErrBehind = errors.New("store: body can't be stored, and others did not wait for this reader of it")
	// ErrTooLong is returned for bytes beyond the announced length of a body.
	ErrTooLong = errors.New("store: body is longer than announced")
	// ErrDiffers is returned when a source sends bytes that differ from those received before.
	ErrDiffers = errors.New("store: body differs from the bytes received before")
)

// Meta describes an object to the store.
type Meta struct {
	Data      []byte    // the owner's description of the object, at most 1 MiB; not interpreted
	ListUntil time.Time // when the object stops being listed; zero or past = not listed
	Copied    bool      // another cache has the same object: a full store evicts it before others
	Generated time.Time // when the content was generated; zero = unknown
	// Wanted is asked right before the object can be found, when no removal of its key can come
	// between: if it returns false, the object is not stored. It must not call the store. nil = it is
	// wanted. Only Commit asks.
	Wanted func() bool
}

// Hooks connect a store with its owner.
//
// The first four report which objects the store holds. Each may be nil. They are
// called from many goroutines at once, sometimes with locks of the index held: they must
// be quick and must not call the store.
//
// Stored(k) is called before an object can be found under k, and Evicted(k) once it
// can't be found any more. Replacing an object calls Stored, then Evicted, so that a
// count of the two never drops to zero in between. Listed and Unlisted are called likewise
// for objects that are listed ([Meta.ListUntil]). While no call is under way, the number of
// calls of Stored minus that of Evicted is 1 for a key that the store holds and 0 for any other;
// likewise for Listed and Unlisted.
type Hooks struct {
	Stored, Evicted  func(key string)
	Listed, Unlisted func(key string)
	// Decode turns an object's Meta.Data into the value that [Described.Value] returns. Its result is
	// kept while the object stays hot; it is shared and must not be changed. It must not keep data,
	// whose memory is used again. An error means that the object is corrupt. nil = a copy of the data.
	Decode func(key string, data []byte) (any, error)
	// Labels returns the labels by which an object is found, from its Meta.Data. Opening a store
	// also calls it, for all objects. It is called from many goroutines at once and must not keep
	// data. nil = no labels.
	Labels func(data []byte) []string
	// Now is the wall clock, which may jump; nil = time.Now. It gives the time at which objects
	// were written, and how long an object stays listed when it enters the store. From then
	// on elapsed time counts.
	Now func() time.Time
}

// SetDefaults replaces the hooks that are nil.
func (h *Hooks) SetDefaults() {
	for _, hook := range []*func(string){&h.Stored, &h.Evicted, &h.Listed, &h.Unlisted} {
		if *hook == nil {
			*hook = func(string) {}
		}
	}
	if h.Decode == nil {
		h.Decode = func(_ string, data []byte) (any, error) { return bytes.Clone(data), nil }
	}
	if h.Labels == nil {
		h.Labels = func([]byte) []string { return nil }
	}
	if h.Now == nil {
		h.Now = time.Now
	}
}

// An Object is one object of a store. It is immutable; a new description of the same body is a new
// Object. Of one store, two that are equal (==) are the same.
type Object interface {
	Key() string  // under which the object is stored
	Size() int64  // length of the body in bytes
	Listed() bool // now
}

// Described is the description of an object, and what the store had to read with it.
type Described interface {
	Value() any // what Hooks.Decode made of the description
}

// A View is an object whose body is being read. It stays readable when the object
// leaves the store. It must be closed once; it is not safe for concurrent use.
type View interface {
	// Source returns a reader of n bytes of the body from offset off on, which is valid until the
	// view is closed or Source is called again. An error, of Source or of the reader, wraps
	// [ErrCorrupt] if the bytes differ from what was stored or can't be read.
	Source(off, n int64) (io.Reader, error)
	// Sums returns the checksums of the whole body.
	Sums() Sums
	Close() error
}
