package sibling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
)

// flights has the fetches in flight at this peer, by identity. Concurrent requests for an identity
// share one. It is safe for concurrent use.
type flights struct {
	mu sync.Mutex
	of map[string]*flight
}

// A flight is one fetch. Its leader, the first caller, ends it; the others wait.
type flight struct {
	in       *flights
	identity string
	waiting  int                // callers, the leader included; at 0 the flight is canceled and can no longer be joined
	cancel   context.CancelFunc // nil = it lasts until the leader ends it
	once     sync.Once
	done     chan struct{} // closed when o and err are set
	o        *Object
	err      error
}

// do returns the result of fetch, or joins the flight of the identity, if there is one, and calls
// joined. The fetch lasts as long as a caller waits for it.
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
		fs.of[identity] = f
	}
	f.waiting++
	return f, leader
}

// join waits for the flight of an identity and returns its object. It returns nil if there is no
// such flight, or it fails.
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

// wait returns the result of the flight, or the error of ctx.
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
		f.remove()
	}
	return nil, context.Cause(ctx)
}

// end ends the flight with a result, unless it has ended.
func (f *flight) end(o *Object, err error) {
	f.once.Do(func() {
		f.in.mu.Lock()
		f.remove()
		f.in.mu.Unlock()
		f.o, f.err = o, err
		close(f.done)
		if f.cancel != nil {
			f.cancel()
		}
	})
}

// remove prevents further requests from joining the flight. f.in.mu is held.
func (f *flight) remove() {
	if f.in.of[f.identity] == f {
		delete(f.in.of, f.identity)
	}
}

// forget prevents further requests from joining the flights of matching identities. These
// objects were invalidated, and the flights may bring the old versions.
func (fs *flights) forget(matches func(identity string) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	maps.DeleteFunc(fs.of, func(identity string, _ *flight) bool { return matches(identity) })
}

// errExit is the error of a load that ended its goroutine.
var errExit = errors.New("sibling: load called runtime.Goexit")

// A panicked error carries the panic of a load to the goroutines that wait for it.
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
