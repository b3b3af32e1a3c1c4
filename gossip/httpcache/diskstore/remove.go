package diskstore

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// A remover removes from the disk the objects that left the index: it unlinks files, and marks the
// entries of small objects. It works in goroutines of its own, since the index reports removed
// objects while it holds a lock. drain waits until everything so far is removed.
type remover struct {
	log  *slog.Logger
	fs   FS
	work sync.Mutex // held while something is removed, in the order of todo

	running sync.WaitGroup // goroutines, and retry until it has run; none is started after closed

	mu     sync.Mutex
	todo   []removal
	coming bool        // a goroutine was started that will take todo
	failed []removal   // to be tried again
	retry  *time.Timer // that will try failed again; nil = none
	closed bool
}

// A removal is a file to be unlinked, or the new state of an entry in a segment.
type removal struct {
	path  string   // "" = an entry
	seg   *segment // has the entry; nil = a file
	at    int64    // offset of the entry
	state byte
}

// removeAgain is the time until a failed removal is tried again. That is repeated as long as
// the store is open, because the next start would find the object.
const removeAgain = time.Minute

func newRemover(files FS, log *slog.Logger) *remover { return &remover{fs: files, log: log} }

func (r *remover) remove(path string) { r.add(removal{path: path}) }

// mark changes the state of an entry. The segment's files stay open until then. It is done even if
// these files are about to be removed, because a start could come before that and read them.
func (r *remover) mark(sg *segment, at int64, state byte) {
	if sg.acquire() { // always: the caller knows that the segment is not gone
		r.add(removal{seg: sg, at: at, state: state})
	}
}

func (r *remover) add(what removal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.todo = append(r.todo, what)
	if !r.coming && !r.closed {
		r.coming = true
		r.running.Go(r.drain)
	}
}

// drain makes all removals queued so far, and returns when they are done or have failed.
func (r *remover) drain() {
	r.work.Lock()
	defer r.work.Unlock()
	r.mu.Lock()
	todo := r.todo
	r.todo, r.coming = nil, false
	r.mu.Unlock()
	var failed []removal
	var cause error
	for _, what := range todo {
		if err := r.do(what); err != nil {
			cause = err
			if what.state == stateRemoved { // a mark as held is not repeated: the object may be gone by then
				failed = append(failed, what)
				continue
			}
		}
		what.release()
	}
	if cause != nil {
		r.log.Error("cannot remove objects from the disk, will try again", "objects", len(failed), "error", cause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, failed...)
	if len(r.failed) > 0 && r.retry == nil && !r.closed {
		r.running.Add(1)
		r.retry = time.AfterFunc(removeAgain, func() {
			defer r.running.Done()
			r.again()
		})
	}
}

func (r *remover) do(what removal) error {
	if what.seg != nil {
		_, err := what.seg.index.WriteAt([]byte{what.state}, what.at)
		return err
	}
	if err := r.fs.Remove(what.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// release gives up the reference to the segment, if there is one.
func (what removal) release() {
	if what.seg != nil {
		what.seg.release()
	}
}

// again tries failed removals again, together with those queued.
func (r *remover) again() {
	r.mu.Lock()
	r.todo = append(r.todo, r.failed...)
	r.failed, r.retry = nil, nil
	r.mu.Unlock()
	r.drain()
}

// close makes the last removals, and returns when none is under way.
func (r *remover) close() {
	r.mu.Lock()
	r.closed = true
	if r.retry != nil && r.retry.Stop() {
		r.running.Done()
	}
	r.mu.Unlock()
	r.again()
	r.running.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range r.failed {
		what.release()
	}
}
