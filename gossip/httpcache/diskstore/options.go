package diskstore

import (
	"errors"
	"log/slog"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/budget"
)

// ErrLocked is returned by Open when another process uses the directory.
var ErrLocked = errors.New("directory is in use by another process")

// Options says how to open a store.
type Options struct {
	Dir         string          // made if missing
	MaxBytes    int64           // bytes on disk that the store may use, files being written included; at least 1 MiB; less where the disk has less; a body may take a quarter
	MemoryBytes int64           // bytes of memory for the index and copies of hot objects; a large index leaves these an eighth; 0 = no copies
	Memory      *budget.Account // from which both are taken; nil = only MemoryBytes counts
	LabelMemory *budget.Account // for the labels of objects; nil = no bound
	Hooks       bodies.Hooks
	// Beat is told when work on an object being written begins and ends, on the disk and in the index, so that a
	// watchdog can see that it hangs; nil = nobody.
	Beat interface {
		Begin()
		End()
	}
	Logger *slog.Logger // nil = discard
	FS     FS           // nil = the system's
}

// Open opens a store with these options and the hooks of a cache.
func (o Options) Open(h bodies.Hooks) (bodies.Store, error) {
	o.Hooks = h
	return Open(o)
}

type noBeat struct{}

func (noBeat) Begin() {}
func (noBeat) End()   {}

// Stats is a snapshot of a store's state.
type Stats struct {
	Objects      int   `json:"objects"`       // objects held
	Listed       int   `json:"listed"`        // objects that are listed
	Bytes        int64 `json:"bytes"`         // bytes on disk of the objects held
	GarbageBytes int64 `json:"garbage_bytes"` // bytes on disk that removed objects left behind in segments
	WritingBytes int64 `json:"writing_bytes"` // bytes on disk reserved by objects being written
	MaxBytes     int64 `json:"max_bytes"`     // the bound on the sum of the three, as Options or Resize set it
	RoomBytes    int64 `json:"room_bytes"`    // the bound at present: less than MaxBytes if the disk has less room
	// RoomLimit says why the store may use less than MaxBytes, or what else is wrong with its directory; "" =
	// nothing. It is a sentence without its full stop.
	RoomLimit   string `json:"room_limit,omitempty"`
	MemoryBytes int64  `json:"memory_bytes"` // bytes of hot objects in memory
	IndexBytes  int64  `json:"index_bytes"`  // bytes of memory of the index of all objects

	Reloaded    uint64 `json:"reloaded"`     // objects found at start
	Removed     uint64 `json:"removed"`      // partial, broken or superseded files and objects removed at start
	Inserts     uint64 `json:"inserts"`      // objects committed
	Evictions   uint64 `json:"evictions"`    // objects removed to make room
	Corrupt     uint64 `json:"corrupt"`      // objects found corrupt when read
	WriteErrors uint64 `json:"write_errors"` // objects not stored because of an error of the file system
}
