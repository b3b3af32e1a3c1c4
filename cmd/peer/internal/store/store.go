package store

import (
	"errors"
	"io"
	"iter"
	"log/slog"
	"time"
)

var (
	// ErrLocked is returned by Open when another process uses the directory.
	ErrLocked = errors.New("store: directory is in use by another process")
	// ErrTooLarge is returned when an object cannot fit the store.
	ErrTooLarge = errors.New("store: object is larger than the store takes")
	// ErrGone is returned when an object left the store before it was opened.
	ErrGone = errors.New("store: object is gone")
	// ErrCorrupt is returned when an object's bytes are not those that were stored.
	ErrCorrupt = errors.New("store: object is corrupt")
	// ErrClosed is returned by a store that was closed.
	ErrClosed = errors.New("store: closed")
)

// Hooks tell the owner of a [Store] what it holds. Each may be nil. They are
// called from many goroutines at once, some under locks of the index: they must
// be quick and must not call the store.
//
// Stored(k) is called before an object can be found under k, Evicted(k) once it
// can't be found any more; replacing an object calls Stored, then Evicted, so
// that whoever counts never drops to zero in between. Listed and Unlisted do the
// same for objects that are listed ([Meta.ListUntil]). At any moment at which no
// call is under way, the calls of Stored less the calls of Evicted for a key are
// 1 if the store holds it and 0 if not; likewise for Listed and Unlisted.
type Hooks struct {
	Stored, Evicted  func(key string)
	Listed, Unlisted func(key string)
}

// Options says how to open a store.
type Options struct {
	Dir         string // made if missing
	MaxBytes    int64  // bytes on disk that the store may use, files being written included; > 0
	MaxObject   int64  // longest body in bytes; 0 = a quarter of MaxBytes
	MemoryBytes int64  // bytes of hot objects kept in memory besides; 0 = none
	Hooks       Hooks
	Logger      *slog.Logger // nil = discard
}

// Meta is what a store keeps beside a body.
type Meta struct {
	Data      []byte    // the owner's description of the object; not interpreted
	ListUntil time.Time // when the object stops being listed; zero = never listed
}

// Stats is a snapshot of a store's state.
type Stats struct {
	Objects      int   `json:"objects"`       // objects held
	Listed       int   `json:"listed"`        // objects that are listed
	Bytes        int64 `json:"bytes"`         // bytes on disk of the objects held, in whole KiB
	WritingBytes int64 `json:"writing_bytes"` // bytes on disk reserved by objects being written
	MaxBytes     int64 `json:"max_bytes"`
	MemoryBytes  int64 `json:"memory_bytes"` // bytes of hot objects in memory

	Reloaded   uint64 `json:"reloaded"`    // objects found at start
	Removed    uint64 `json:"removed"`     // partial or broken files removed at start
	Inserts    uint64 `json:"inserts"`     // objects committed
	Evictions  uint64 `json:"evictions"`   // objects that left for want of room
	Corrupt    uint64 `json:"corrupt"`     // objects found corrupt when read
	WriteError uint64 `json:"write_error"` // objects given up for an error of the file system
}

type (
	// Store is a bounded store of objects on disk. It is safe for concurrent use.
	Store struct{}
	// Object is one object of a store; it is immutable.
	Object struct{}
	// Writer receives the body of an object.
	Writer struct{}
)

// Open opens the store in o.Dir, removes what a killed process left half
// written, and calls Hooks.Stored (and Listed) for every object found. It
// refuses a directory that is a file, can't be written or is in use by another
// process.
func Open(o Options) (*Store, error) { return nil, errors.ErrUnsupported }

// Get returns the object under key; finding it counts as a use.
func (s *Store) Get(key string) (*Object, bool) { return nil, false }

// Delete removes the object under key and reports whether there was one.
func (s *Store) Delete(key string) bool { return false }

// Keys returns the keys held, in no order.
func (s *Store) Keys() iter.Seq[string] { return func(func(string) bool) {} }

// Stats returns a snapshot.
func (s *Store) Stats() Stats { return Stats{} }

// Close waits for removals under way, stops the store and frees the directory.
func (s *Store) Close() error { return nil }

// Create starts an object; size is the body's length in bytes, -1 if unknown.
func (s *Store) Create(key string, size int64) (*Writer, error) { return nil, errors.ErrUnsupported }

var _ io.Writer
