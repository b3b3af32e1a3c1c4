package store

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// A remover removes from the disk what left the index: it unlinks files, and marks the
// entries of small objects. It works in goroutines of its own, since the index says under
// its lock which objects left. To know that everything so far is removed, call drain.
type remover struct {
	log  *slog.Logger
	fs   FS
	work sync.Mutex // held while something is removed, in the order of todo

	running sync.WaitGroup // what was started and has not ended, retry included; nothing is started after closed

	mu     sync.Mutex
	todo   []removal
	coming bool        // a goroutine that will take todo was started
	failed []removal   // to be tried again
	retry  *time.Timer // when; nil if failed is empty
	closed bool
}

// A removal is a file to be unlinked, or the state that an entry of a segment gets.
type removal struct {
	path  string
	seg   *segment
	at    int64
	state byte
}

// removeAgain is the time until a failed removal is tried again. It is tried for as long as
// the store is open: a later start would find the object, which must not come back.
const removeAgain = time.Minute

func newRemover(files FS, log *slog.Logger) *remover { return &remover{fs: files, log: log} }

func (r *remover) remove(path string) { r.add(removal{path: path}) }

// mark changes the state of an entry. The segment's files stay open until that is done, and it
// is done even if they are to be removed as well: a start in between would read them.
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

// drain returns when everything that was to be removed is, or failed to be.
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
			if what.state == stateRemoved { // the other is not to be done later: the object may have gone
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

// release lets go of the segment that a removal is about, if any.
func (what removal) release() {
	if what.seg != nil {
		what.seg.release()
	}
}

// again tries once more what failed, besides what there is to be done anyway.
func (r *remover) again() {
	r.mu.Lock()
	r.todo = append(r.todo, r.failed...)
	r.failed, r.retry = nil, nil
	r.mu.Unlock()
	r.drain()
}

// close tries once more to remove what is left, and returns when nothing is under way.
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
