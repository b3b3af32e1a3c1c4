package store

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// A remover removes from the disk what left the index: it unlinks files, and marks the
// entries of small objects. It has a goroutine of its own, since the index says under
// its lock which objects left; whoever must know that it is done calls drain.
type remover struct {
	log    *slog.Logger
	fs     FS
	work   sync.Mutex // held while something is removed, in the order of todo
	mu     sync.Mutex
	more   sync.Cond
	todo   []removal
	failed []removal   // to be tried again
	retry  *time.Timer // when; nil if failed is empty
	stop   bool
	done   chan struct{}
}

// A removal is a file to be unlinked, or the state that an entry of a segment gets.
type removal struct {
	path  string
	seg   *segment
	at    int64
	state byte
}

// removeAgain is how long what can't be removed is left alone: a later start would
// find the object, which must not come back.
const removeAgain = time.Minute

func newRemover(files FS, log *slog.Logger) *remover {
	r := &remover{fs: files, log: log, done: make(chan struct{})}
	r.more.L = &r.mu
	go r.run()
	return r
}

func (r *remover) remove(path string) { r.add(removal{path: path}) }

// mark changes the state of an entry. The segment's files stay open for it, and it is done
// although they are to be removed meanwhile: until that is done a start would read them.
func (r *remover) mark(sg *segment, at int64, state byte) {
	if sg.acquire() { // always: whoever marks knows that the segment is not gone
		r.add(removal{seg: sg, at: at, state: state})
	}
}

func (r *remover) add(what removal) {
	r.mu.Lock()
	r.todo = append(r.todo, what)
	r.mu.Unlock()
	r.more.Signal()
}

func (r *remover) run() {
	defer close(r.done)
	for {
		r.mu.Lock()
		for len(r.todo) == 0 && !r.stop {
			r.more.Wait()
		}
		idle := len(r.todo) == 0
		r.mu.Unlock()
		if idle {
			return
		}
		r.drain()
	}
}

// drain returns when everything that was to be removed is, or failed to be.
func (r *remover) drain() {
	r.work.Lock()
	defer r.work.Unlock()
	r.mu.Lock()
	todo := r.todo
	r.todo = nil
	r.mu.Unlock()
	var failed []removal
	var cause error
	for _, what := range todo {
		err := r.do(what)
		if err != nil {
			cause = err
			if what.state == stateRemoved { // the other is not to be done later: the object may have gone
				failed = append(failed, what)
				continue
			}
		}
		if what.seg != nil {
			what.seg.release()
		}
	}
	if cause != nil {
		r.log.Error("cannot remove objects from the disk, will try again", "objects", len(failed), "error", cause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, failed...)
	if len(r.failed) > 0 && r.retry == nil {
		r.retry = time.AfterFunc(removeAgain, r.again)
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

// again has what could not be removed tried again.
func (r *remover) again() {
	r.mu.Lock()
	if !r.stop {
		r.todo = append(r.todo, r.failed...)
		r.failed, r.retry = nil, nil
	}
	r.mu.Unlock()
	r.more.Signal()
}

// close removes what is left to be removed and returns.
func (r *remover) close() {
	r.mu.Lock()
	r.stop = true
	r.todo = append(r.todo, r.failed...)
	if r.failed = nil; r.retry != nil {
		r.retry.Stop()
	}
	r.mu.Unlock()
	r.more.Signal()
	<-r.done
	for _, what := range r.failed {
		if what.seg != nil {
			what.seg.release()
		}
	}
}
