package store

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// remover unlinks files on a goroutine of its own, since the index says under
// its lock which objects left.
type remover struct {
	log    *slog.Logger
	fs     FS
	mu     sync.Mutex
	more   sync.Cond
	todo   []string
	failed []string    // to be tried again
	retry  *time.Timer // when; nil if failed is empty
	busy   bool        // unlinking what it took from todo
	stop   bool
	done   chan struct{}
}

// removeAgain is how long a file that can't be removed is left alone: a later
// start would find the object in it, which must not come back.
const removeAgain = time.Minute

func newRemover(files FS, log *slog.Logger) *remover {
	r := &remover{fs: files, log: log, done: make(chan struct{})}
	r.more.L = &r.mu
	go r.run()
	return r
}

func (r *remover) remove(path string) {
	r.mu.Lock()
	r.todo = append(r.todo, path)
	r.mu.Unlock()
	r.more.Broadcast()
}

func (r *remover) run() {
	defer close(r.done)
	for {
		r.mu.Lock()
		for len(r.todo) == 0 && !r.stop {
			r.more.Wait()
		}
		todo := r.todo
		r.todo, r.busy = nil, len(todo) > 0
		r.mu.Unlock()
		if len(todo) == 0 {
			return
		}
		var failed []string
		var cause error
		for _, path := range todo {
			if err := r.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed, cause = append(failed, path), err
			}
		}
		if cause != nil {
			r.log.Error("cannot remove objects' files, will try again", "files", len(failed), "error", cause)
		}
		r.mu.Lock()
		r.failed = append(r.failed, failed...)
		if len(r.failed) > 0 && r.retry == nil {
			r.retry = time.AfterFunc(removeAgain, r.again)
		}
		r.busy = false
		r.mu.Unlock()
		r.more.Broadcast()
	}
}

// again has what could not be removed tried again.
func (r *remover) again() {
	r.mu.Lock()
	if !r.stop {
		r.todo = append(r.todo, r.failed...)
		r.failed, r.retry = nil, nil
	}
	r.mu.Unlock()
	r.more.Broadcast()
}

// idle waits until everything that was to be unlinked is, or failed to be.
func (r *remover) idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.todo) > 0 || r.busy {
		r.more.Wait()
	}
}

// close unlinks what is left to unlink and returns.
func (r *remover) close() {
	r.mu.Lock()
	r.stop = true
	r.todo = append(r.todo, r.failed...)
	if r.failed = nil; r.retry != nil {
		r.retry.Stop()
	}
	r.mu.Unlock()
	r.more.Broadcast()
	<-r.done
}
