package store

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync"
)

// remover unlinks files on a goroutine of its own, since the index says under
// its lock which objects left.
type remover struct {
	log  *slog.Logger
	fs   FS
	mu   sync.Mutex
	more sync.Cond
	todo []string
	busy bool // unlinking what it took from todo
	stop bool
	done chan struct{}
}

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
		for _, path := range todo {
			if err := r.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.log.Error("cannot remove an object's file", "error", err)
			}
		}
		r.mu.Lock()
		r.busy = false
		r.mu.Unlock()
		r.more.Broadcast()
	}
}

// idle waits until everything that was to be unlinked is.
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
	r.mu.Unlock()
	r.more.Broadcast()
	<-r.done
}
