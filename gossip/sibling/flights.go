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

// A flight is one fetch. Its leader, the first that asked, ends it; the others wait.
type flight struct {
	in       *flights
	identity string
	waiting  int                // the leader and the others; at 0 it is canceled, and joined by nobody
	cancel   context.CancelFunc // nil = it lasts until the leader ends it
	once     sync.Once
	done     chan struct{} // closed when o and err are there
	o        *Object
	err      error
}

// do returns what fetch does. One that is under way already is joined, and joined is
// called. The fetch lasts as long as anybody waits for it.
func (fs *flights) do(ctx context.Context, identity string, joined func(), fetch func(context.Context) (*Object, error)) (*Object, error) {
	f, leader := fs.begin(identity)
	if !leader {
		joined()
		return f.wait(ctx)
	}
	shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	go func() { f.end(fetch(shared)) }()
	return f.wait(ctx)
}

// begin returns the flight of an identity, and whether the caller leads it.
func (fs *flights) begin(identity string) (f *flight, leader bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.of[identity]
	if leader = f == nil; leader {
		f = &flight{in: fs, identity: identity, done: make(chan struct{})}
		if fs.of == nil {
			fs.of = make(map[string]*flight)
		}
		fs.of[identity] = f
	}
	f.waiting++
	return f, leader
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
	f.waiting++
	fs.mu.Unlock()
	o, _ := f.wait(ctx)
	return o
}

// wait returns what the flight brings, or the error of ctx.
func (f *flight) wait(ctx context.Context) (*Object, error) {
	select {
	case <-f.done:
		return f.o, f.err
	case <-ctx.Done():
	}
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		f.leave()
	}
	return nil, context.Cause(ctx)
}

// end ends a flight, unless it has ended.
func (f *flight) end(o *Object, err error) {
	f.once.Do(func() {
		f.in.mu.Lock()
		f.leave()
		f.in.mu.Unlock()
		f.o, f.err = o, err
		close(f.done)
		if f.cancel != nil {
			f.cancel()
		}
	})
}

// leave lets nobody join the flight any more. f.in.mu is held.
func (f *flight) leave() {
	if f.in.of[f.identity] == f {
		delete(f.in.of, f.identity)
	}
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
