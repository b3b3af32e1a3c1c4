package diskstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

const (
	measureEvery = 5 * time.Second  // how often the store looks how much room its disk has
	refusedFor   = 10 * time.Minute // how long it uses less after the disk refused bytes that it seems to have, or after memory was short
	believed     = 8                // refusals in a row after which free bytes count for nothing
	keptFree     = 64               // the store leaves one of so many bytes of its room on the disk free, for others
	steady       = 128              // a change of the room by less than one of so many bytes is ignored
	mostWritten  = 2 << 20          // no write has more bytes
	leastRoom    = 1 << 20          // the store tries to use so much even where the disk refused it
)

// A room counts what limits the objects of a store to less than Options.MaxBytes.
type room struct {
	sync.Mutex
	max      int64     // see Options.MaxBytes
	writing  int64     // bytes reserved for objects being written
	segments int64     // bytes of all segments
	applied  int64     // takenLocked when the index's maximum was last set
	refusals int       // in a row of a disk with free bytes
	refused  int64     // bytes that the disk took before it refused more, although some were free
	until    time.Time // how long refused counts
	limit    string    // see Stats.RoomLimit
	scarce   int64     // bytes of objects for whose index there is memory; 0 = no bound
	shortAt  time.Time // when memory was last short
}

// maxObject returns the length of the longest body that the store takes.
func (s *store) maxObject() int64 {
	return min(s.bound.Load()/4, maxBody)
}

// held returns the bytes on disk of the objects held.
func (s *store) held() int64 { return int64(s.index.WeightedSize()) * grain }

// used returns the bytes of segments and of files, without those being written.
func (s *store) used() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.segments.total + max(0, s.copies.held*grain-s.segments.live)
}

// reserve takes n bytes of the store's room for an object being written, or gives them back if n is negative. The
// index's maximum changes in steps of 1 MiB, since every change starts a search for objects to evict.
func (s *store) reserve(n int64) {
	s.room.Lock()
	defer s.room.Unlock()
	s.room.writing += n
	if d := s.takenLocked() - s.room.applied; d >= 1<<20 || d <= -1<<20 || s.room.writing == 0 && d != 0 {
		s.applyLocked()
	}
}

// allow notes the total size of the segments, and keeps room for their garbage.
func (s *store) allow(segments int64) {
	s.room.Lock()
	defer s.room.Unlock()
	s.room.segments = segments
	s.applyLocked()
}

// takenLocked returns the bytes that the index may not fill. s.room is locked.
func (s *store) takenLocked() int64 {
	return s.room.writing + allowance(s.room.segments, s.bound.Load())
}

func (s *store) applyLocked() {
	s.room.applied = s.takenLocked()
	most := max(s.bound.Load()-s.room.applied, unit) / grain
	if s.room.scarce > 0 {
		most = min(most, s.room.scarce/grain)
	}
	s.most.Store(most)
	s.spare(nil)
	s.index.SetMaximum(uint64(most))
}

// measure sets the bound to the room that the disk has: what the store uses, and what is free. refused means that the
// disk has just refused bytes. It reports whether the bound fell.
func (s *store) measure(refused bool) (fell bool) {
	s.flush() // what is being removed is neither in use nor free
	s.room.Lock()
	gone := s.gone()
	s.room.Unlock()
	free, err := s.opt.FS.Free(s.opt.Dir)
	used := s.used() + s.written.Load()
	room, limit := int64(math.MaxInt64), ""
	if err == nil {
		room = used + free
		room -= room / keptFree
		limit = fmt.Sprintf("the disk has no more room: %d bytes are free", free)
	}
	s.room.Lock()
	defer s.room.Unlock()
	now := time.Now()
	if refused && (err != nil || free > room/keptFree+mostWritten) { // others may just have given it back
		s.room.refusals++
	}
	if s.room.refusals > believed {
		s.room.refusals = 0
		s.room.refused, s.room.until = max(used-used/8, leastRoom), now.Add(refusedFor)
	}
	if s.room.refused < room && now.Before(s.room.until) {
		room, limit = s.room.refused, "the disk refuses more, by a quota perhaps"
	}
	was, is := s.bound.Load(), max(min(room, s.room.max), 0)
	if is != s.room.max && max(is-was, was-is) < was/steady && was <= s.room.max {
		is = was
	}
	if is == s.room.max {
		limit = ""
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		limit = err.Error()
	}
	if gone {
		limit = "its directory was replaced by another process's, or cannot be made again"
	}
	switch {
	case s.room.limit == "" && limit != "":
		s.log.Warn("the disk has less room than the store may use", "may use", s.room.max, "has", is, "cause", limit)
	case s.room.limit != "" && limit == "":
		s.log.Info("the disk has room for the whole store again", "may use", s.room.max)
	}
	s.room.limit = limit
	enough := s.room.scarce > 0 && now.Sub(s.room.shortAt) > refusedFor
	if enough {
		s.room.scarce = 0
	}
	if is != was || enough {
		s.bound.Store(is)
		s.applyLocked()
	}
	return is < was
}

// gone reports whether the directory is no longer the one that was locked. One that is missing, or has no lock, is made
// and locked again. s.room is locked.
func (s *store) gone() bool {
	f, ok := s.lock.(*os.File)
	if !ok {
		return false
	}
	was, err := f.Stat()
	is, missing := os.Stat(f.Name())
	if errors.Is(missing, fs.ErrNotExist) && s.takeDir() == nil {
		f.Close()
		s.segments.lost.Store(true)
		s.log.Warn("the store's directory was removed, and is made again: what was in it is lost", "dir", s.opt.Dir)
		return false
	}
	return err == nil && (errors.Is(missing, fs.ErrNotExist) || missing == nil && !os.SameFile(was, is))
}

// failed counts an error if it is one of the file system, and makes room if the disk is full.
func (s *store) failed(err error) {
	others := []error{bodies.ErrUnwanted, bodies.ErrNoMemory, bodies.ErrClosed, bodies.ErrCorrupt, bodies.ErrTooLarge}
	if slices.ContainsFunc(others, func(e error) bool { return errors.Is(err, e) }) {
		return
	}
	s.writeError.Add(1)
	if isFull(err) {
		s.measure(true)
		s.makeRoom()
	}
}
