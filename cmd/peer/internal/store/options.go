package store

import (
	"errors"
	"log/slog"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/budget"
	"github.com/summarycache/summarycache/cmd/peer/internal/health"
)

var (
	// ErrLocked is returned by Open when another process uses the directory.
	ErrLocked = errors.New("directory is in use by another process")
	// ErrTooLarge is returned when an object cannot fit the store.
	ErrTooLarge = errors.New("store: object is larger than the store takes")
	// ErrGone is returned when an object left the store before it was opened or updated.
	ErrGone = errors.New("store: object is gone")
	// ErrCorrupt is returned when bytes of an object differ from the stored ones, or can't be read.
	ErrCorrupt = errors.New("store: object is corrupt")
	// ErrNoMemory is returned when there is no memory for the labels of an object.
	ErrNoMemory = errors.New("store: no memory for the object's labels")
	// ErrClosed is returned by a store that was closed.
	ErrClosed = errors.New("store: closed")
)

// Hooks report to the owner of a [Store] which objects it holds. Each may be nil. They are
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
}

// Options says how to open a store.
type Options struct {
	Dir         string          // made if missing
	MaxBytes    int64           // bytes on disk that the store may use, files being written included; at least 1 MiB; less where the disk has less; a body may take a quarter
	MemoryBytes int64           // bytes of memory for the index and copies of hot objects; a large index leaves these an eighth; 0 = no copies
	Memory      *budget.Account // from which both are taken; nil = only MemoryBytes counts
	LabelMemory *budget.Account // for the labels of objects; nil = no bound
	Hooks       Hooks
	// Decode turns an object's Meta.Data into the value that [View.Value] returns. Its result is
	// kept while the object stays hot; it is shared and must not be changed. An error means that
	// the object is corrupt. nil = the data itself.
	Decode func(key string, data []byte) (any, error)
	// Labels returns the labels of an object, by which [Store.Labelled] finds it, from its
	// Meta.Data. Open also calls it, for all objects. It is called from many goroutines at once
	// and must not keep data. nil = no labels.
	Labels func(data []byte) []string
	// Beat is told when work on an object being written begins and ends, on the disk and in the
	// index; nil = nobody.
	Beat   *health.Heartbeat
	Logger *slog.Logger // nil = discard
	// Scrub is the time in which the whole store is read once in the background, to find
	// disk errors. It takes longer if that would be more than 8 MiB/s. 0 = never.
	Scrub time.Duration
	FS    FS // nil = the system's
	// Now is the wall clock, which may jump; nil = time.Now. It gives the time at which objects
	// were written, and how long an object stays listed when it enters the store. From then
	// on elapsed time counts.
	Now func() time.Time
}

// Meta describes an object to the store.
type Meta struct {
	Data      []byte    // the owner's description of the object, at most 1 MiB; not interpreted
	ListUntil time.Time // when the object stops being listed; zero or past = not listed
	Copied    bool      // another cache has the same object: a full store evicts it before others
	Generated time.Time // when the content was generated, for [Store.Listed]; zero = unknown
}

// Stats is a snapshot of a store's state.
type Stats struct {
	Objects      int   `json:"objects"`       // objects held
	Listed       int   `json:"listed"`        // objects that are listed
	Bytes        int64 `json:"bytes"`         // bytes on disk of the objects held
	GarbageBytes int64 `json:"garbage_bytes"` // bytes on disk that removed objects left behind in segments
	WritingBytes int64 `json:"writing_bytes"` // bytes on disk reserved by objects being written
	MaxBytes     int64 `json:"max_bytes"`     // the bound on the sum of the three, as Options or Resize set it
	RoomBytes    int64 `json:"room_bytes"`    // the bound at present: less than MaxBytes if the disk has less room
	// RoomLimit says why the store may use less than MaxBytes, or what else is wrong with its
	// directory; "" = nothing. It is a sentence without its full stop.
	RoomLimit   string `json:"room_limit,omitempty"`
	MemoryBytes int64  `json:"memory_bytes"` // bytes of hot objects in memory
	IndexBytes  int64  `json:"index_bytes"`  // bytes of memory of the index of all objects

	Reloaded    uint64 `json:"reloaded"`     // objects found at start
	Removed     uint64 `json:"removed"`      // partial, broken or superseded files and objects removed at start
	Inserts     uint64 `json:"inserts"`      // objects committed
	Evictions   uint64 `json:"evictions"`    // objects removed to make room
	Corrupt     uint64 `json:"corrupt"`      // objects found corrupt when read
	WriteErrors uint64 `json:"write_errors"` // objects not stored because of an error of the file system

	ScrubbedBytes uint64 `json:"scrubbed_bytes"` // bytes of bodies read in the background
	ScrubPasses   uint64 `json:"scrub_passes"`   // complete passes over the store
}
