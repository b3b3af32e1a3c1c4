package sibling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
)

// flights are the fetches under way at this peer, by identity, each for all that ask
// meanwhile. It is safe for concurrent use; the zero value has none.
type flights struct {
	mu sync.Mutex
	of map[string]*flight
}

type flight struct {
	done    chan struct{} // closed when o and err are there
	o       *Object
	err     error
	waiting int  // callers; at 0 it is canceled, and joined by nobody, unless it is kept
	kept    bool // until its caller ends it
	ended   bool
	cancel  context.CancelFunc
}

// do returns what fetch does. One that is under way already is joined, and joined is
// called. The fetch lasts as long as anybody waits for it.
func (fs *flights) do(ctx context.Context, identity string, joined func(), fetch func(context.Context) (*Object, error)) (*Object, error) {
	fs.mu.Lock()
	f := fs.of[identity]
	if f == nil {
		shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = fs.add(identity, cancel)
		go func() {
			o, err := fetch(shared)
			fs.end(identity, f, o, err)
		}()
	} else {
		joined()
	}
	return fs.wait(ctx, identity, f)
}

// begin begins a flight that the caller ends, unless one is under way: nil.
func (fs *flights) begin(identity string) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.of[identity] != nil {
		return nil
	}
	f := fs.add(identity, func() {})
	f.kept = true
	return f
}

// add is called with fs.mu held.
func (fs *flights) add(identity string, cancel context.CancelFunc) *flight {
	f := &flight{done: make(chan struct{}), cancel: cancel}
	if fs.of == nil {
		fs.of = make(map[string]*flight)
	}
	fs.of[identity] = f
	return f
}

// join returns what the fetch of an identity brings that is under way; nil if there is
// none, or it brings nothing.
func (fs *flights) join(ctx context.Context, identity string) *Object {
	fs.mu.Lock()
	f := fs.of[identity]
	if f == nil {
		fs.mu.Unlock()
		return nil
	}
	o, err := fs.wait(ctx, identity, f)
	if err != nil {
		return nil
	}
	return o
}

// wait is called with fs.mu held, and releases it.
func (fs *flights) wait(ctx context.Context, identity string, f *flight) (*Object, error) {
	f.waiting++
	fs.mu.Unlock()
	select {
	case <-f.done:
		return f.o, f.err
	case <-ctx.Done():
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.waiting--; f.waiting == 0 && !f.kept {
		f.cancel()
		if fs.of[identity] == f {
			delete(fs.of, identity)
		}
	}
	return nil, context.Cause(ctx)
}

// end ends a flight, unless it has ended.
func (fs *flights) end(identity string, f *flight, o *Object, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.ended {
		return
	}
	if fs.of[identity] == f {
		delete(fs.of, identity)
	}
	f.ended, f.o, f.err = true, o, err
	close(f.done)
	f.cancel()
}

// forget lets nobody join the fetches any more of what is concerned: what they bring may be
// older than what removed it.
func (fs *flights) forget(concerned func(identity string) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	maps.DeleteFunc(fs.of, func(identity string, _ *flight) bool { return concerned(identity) })
}

// errExit is the error of a load that ended its goroutine.
var errExit = errors.New("sibling: load called runtime.Goexit")

// A panicked is the error of a load that panicked, for the goroutines that wait for it.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// guarded calls f, and returns a panic or an exit of the goroutine as an error.
func guarded(f func() error) error {
	ended := make(chan error, 1)
	go func() {
		err := errExit
		defer func() {
			if v := recover(); v != nil {
				err = &panicked{v, debug.Stack()}
			}
			ended <- err
		}()
		err = f()
	}()
	return <-ended
}
