package diskstore

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

// unit is the allocation unit of file systems: a file takes whole ones.
const unit = 4 << 10

// grain is the unit in which the index counts bytes on disk.
const grain = 64

// A Store is a bounded store of objects on disk. It is safe for concurrent use.
type Store interface {
	bodies.Store

	// Resize changes the bytes that the store may use: Options.MaxBytes. Objects that no longer fit are evicted
	// soon. Bodies being written are not cut off.
	Resize(maxBytes int64) error
	// Newest returns when the newest object that Open found was stored; the zero Time if it found none.
	Newest() time.Time
	// Stats returns a snapshot.
	Stats() Stats
}

// store is the [Store]. Comments on its methods say what those of the interfaces don't.
type store struct {
	newest   atomic.Int64 // when the newest object that Open found was written, Unix nanoseconds
	opened   int64        // Unix nanoseconds
	opt      Options
	log      *slog.Logger
	lock     io.Closer
	seed     maphash.Seed                  // of the index's keys
	index    *otter.Cache[uint64, *object] // by the hash of the key: of two keys with the same hash, only the later one is kept
	hot      *hotSet                       // nil = none
	files    *openFiles
	copies   copies
	labels   labels
	most     atomic.Int64 // grains that objects may take: the index's maximum
	segments *segments
	exp      *expiries // guarded by mu, as copies and labels are
	loading  bool      // Open fills the index

	reads, writes pace // of the disk; each ends what it began

	buffers sync.Pool // *[blockSize]byte
	records recordPool
	views   sync.Pool // *view

	appending sync.Mutex   // see segments
	closed    bool         // guarded by appending
	tidying   sync.Mutex   // see segments
	mu        sync.RWMutex // see segments
	lastID    atomic.Uint64

	bound   atomic.Int64 // bytes that the store may use now
	written atomic.Int64 // bytes on disk of the objects being written
	room    room

	listed                                                     atomic.Int64
	indexed                                                    atomic.Int64 // bytes of memory of the index
	reloaded, removed, inserts, evictions, corrupt, writeError atomic.Uint64
}

// Open opens the store in o.Dir, removes the incomplete files of a killed process, and calls Hooks.Stored (and
// Listed) for every object found. It refuses a directory that is a file, can't be written, is in use by another
// process ([ErrLocked]) or has files of another version of the format.
func Open(o Options) (Store, error) {
	s, err := openStore(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openStore(o Options) (*store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &store{opt: o, log: o.Logger, seed: maphash.MakeSeed()}
	s.reads.start = time.Now()
	s.writes.start = s.reads.start
	s.buffers.New = func() any { return new([blockSize]byte) }
	s.views.New = func() any { return new(view) }
	s.bound.Store(o.MaxBytes)
	s.room.max, s.room.refused = o.MaxBytes, math.MaxInt64
	s.most.Store(o.MaxBytes / grain)
	if err := s.takeDir(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s.hot = newHotSet(o.MemoryBytes, &s.indexed, o.Memory)
	s.labels.memory = o.LabelMemory
	s.files = newOpenFiles()
	s.exp = newExpiries(s)
	s.segments = &segments{store: s, all: make(map[uint32]*segment)}
	s.segments.wake, s.segments.stop = make(chan struct{}, 1), make(chan struct{})
	s.opened = o.Hooks.Now().UnixNano()
	found, err := s.segments.load()
	n := 0
	for _, f := range found {
		n += len(f.objects)
	}
	s.newIndex(n)
	if err == nil {
		s.loading = true
		err = s.segments.reload(found)
		s.loading = false
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("store: %w", err)
	}
	s.flush()
	s.measure(false)
	s.segments.done.Go(s.segments.run)
	return s, nil
}

// newIndex makes the index, with room for n objects. It begins with a low maximum: for a higher one it would count how
// often each of so many objects is used, which it needs once it is half full.
func (s *store) newIndex(n int) {
	s.exp.queue = make(expiryQueue, 0, n)
	s.index = otter.Must(&otter.Options[uint64, *object]{
		MaximumWeight:    1,
		InitialCapacity:  n,
		Weigher:          func(_ uint64, o *object) uint32 { return o.grains },
		OnAtomicDeletion: s.dropped,
		Executor: func(maintain func()) { // it is short, and a goroutine of its own would wake another thread
			if !s.loading { // see restore
				maintain()
			}
		},
		Logger: &otter.NoopLogger{},
	})
	s.index.SetMaximum(uint64(s.most.Load()))
}

// check reports every mistake in the options and fills in the defaults.
func (o *Options) check() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("store: no directory given"))
	}
	if o.MaxBytes < 1<<20 {
		errs = append(errs, fmt.Errorf("store: a size of %d bytes is less than 1 MiB", o.MaxBytes))
	}
	if o.MaxBytes >= 1<<50 {
		errs = append(errs, fmt.Errorf("store: a size of %d bytes is more than a pebibyte", o.MaxBytes))
	}
	if o.MemoryBytes < 0 {
		errs = append(errs, errors.New("store: the memory size is negative"))
	}
	if o.FS == nil {
		o.FS = system{}
	}
	if o.Beat == nil {
		o.Beat = noBeat{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Hooks.SetDefaults()
	return errors.Join(errs...)
}

func (s *store) Resize(maxBytes int64) error {
	o := s.opt
	o.MaxBytes = maxBytes
	if err := o.check(); err != nil {
		return err
	}
	s.room.Lock()
	s.room.max = maxBytes
	s.room.Unlock()
	s.measure(false)
	s.segments.turn()
	return nil
}

// takeDir makes and locks the directory.
func (s *store) takeDir() error {
	dir := s.opt.Dir
	if err := s.opt.FS.MkdirAll(dir); err != nil {
		return fmt.Errorf("cannot make the directory: %w", err)
	}
	l, err := s.opt.FS.Lock(filepath.Join(dir, "lock"))
	switch {
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("%s: %w", dir, err)
	case err != nil:
		return fmt.Errorf("%s is not writable: %w", dir, err)
	}
	s.lock = l
	if err := s.opt.FS.MkdirAll(filepath.Join(dir, "objects", "bodies")); err != nil {
		s.lock.Close()
		return fmt.Errorf("%s is not writable: %w", dir, err)
	}
	return nil
}

const shards = 256 // directories for the files of bodies, each made when it is first needed

// createFile creates a file and, if that is missing, its directory.
func (s *store) createFile(path string) (File, error) {
	f, err := s.opt.FS.Create(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.opt.FS.MkdirAll(filepath.Dir(path)); err == nil {
			f, err = s.opt.FS.Create(path)
		}
	}
	return f, err
}

func (s *store) path(id uint64) string { return bodyPath(s.opt.Dir, id) }

// bodyPath returns the path of a file of a body in the store in dir.
func bodyPath(dir string, id uint64) string {
	return filepath.Join(dir, "objects", "bodies", fmt.Sprintf("%02x", id%shards), fmt.Sprintf("%016x", id))
}

func (s *store) Get(key string) (bodies.Object, bool) {
	o, ok := s.index.GetIfPresent(s.hash(key))
	if !ok || o.key != key {
		return nil, false
	}
	if state := o.state.Load(); state&(objCopied|objFound) == objCopied {
		o.set(objFound)
	}
	return o, true
}

func (s *store) Peek(key string) (bodies.Object, bool) {
	o, ok := s.peek(key)
	return o, ok
}

func (s *store) peek(key string) (*object, bool) {
	e, ok := s.index.GetEntryQuietly(s.hash(key))
	if !ok || e.Value.key != key {
		return nil, false
	}
	return e.Value, true
}

// Delete returns once the next Open will not find the object, even if it was evicted a moment ago.
func (s *store) Delete(key string) bool {
	done := s.removeIf(key, func(cur *object) bool { return cur.key == key })
	s.flush()
	return done
}

// DeleteObject is like Delete.
func (s *store) DeleteObject(o bodies.Object) bool {
	done := s.removeObject(o.(*object))
	s.flush()
	return done
}

// removeObject is DeleteObject, but doesn't wait for the disk.
func (s *store) removeObject(o *object) bool {
	return s.removeIf(o.key, func(cur *object) bool { return cur == o })
}

// removeIf removes the object under a key from the index if the condition holds for it, and reports whether it did.
func (s *store) removeIf(key string, condition func(cur *object) bool) (done bool) {
	s.index.Compute(s.hash(key), func(cur *object, there bool) (*object, otter.ComputeOp) { // waits for an insertion under way
		if done = there && condition(cur); done {
			return nil, otter.InvalidateOp
		}
		return nil, otter.CancelOp
	})
	return done
}

// hash returns the index's key for a key.
func (s *store) hash(key string) uint64 { return maphash.String(s.seed, key) }

func (s *store) Newest() time.Time { return instant(s.newest.Load()) }

// Keys misses no key of an object that was wanted ([bodies.Meta.Wanted]) before.
func (s *store) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		s.entered()
		for o := range s.index.Values() {
			if !yield(o.key) {
				return
			}
		}
	}
}

func (s *store) Listed() iter.Seq[bodies.Object] {
	return func(yield func(bodies.Object) bool) {
		s.entered()
		for o := range s.index.Values() {
			if o.Listed() && !yield(o) {
				return
			}
		}
	}
}

// entered waits until every object for which hooks were called can be found.
func (s *store) entered() {
	s.appending.Lock()
	defer s.appending.Unlock()
}

func (s *store) Stats() Stats {
	s.room.Lock()
	writing, most, limit := s.room.writing, s.room.max, s.room.limit
	s.room.Unlock()
	s.mu.RLock()
	garbage := s.segments.total - s.segments.live
	s.mu.RUnlock()
	return Stats{
		Objects:      s.index.EstimatedSize(),
		Listed:       int(s.listed.Load()),
		Bytes:        s.held(),
		GarbageBytes: garbage,
		WritingBytes: writing,
		MaxBytes:     most,
		RoomBytes:    s.bound.Load(),
		RoomLimit:    limit,
		MemoryBytes:  s.hot.bytes(),
		IndexBytes:   s.indexed.Load(),
		Reloaded:     s.reloaded.Load(),
		Removed:      s.removed.Load(),
		Inserts:      s.inserts.Load(),
		Evictions:    s.evictions.Load(),
		Corrupt:      s.corrupt.Load(),
		WriteErrors:  s.writeError.Load(),
	}
}

// Close waits for commits and removals under way, stops the store and unlocks the directory. No hook is called for
// the objects, which stay on disk. Open views stay readable; nothing else may be used any more.
func (s *store) Close() error {
	s.appending.Lock()
	was := s.closed
	s.closed = true
	s.appending.Unlock()
	if was {
		return bodies.ErrClosed
	}
	close(s.segments.stop)
	s.segments.done.Wait()
	s.flush()
	s.release()
	return nil
}

// release stops what Open started: each part before those that it uses.
func (s *store) release() {
	s.exp.close()
	s.index.StopAllGoroutines()
	s.hot.close()
	s.files.close()
	for _, sg := range s.segments.all {
		sg.release()
	}
	s.lock.Close()
}
