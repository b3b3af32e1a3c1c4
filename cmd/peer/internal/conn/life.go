package conn

import (
	"context"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A life is the context of a request that no server of net/http has read. It ends with its request, or when the client
// has left. That is looked for only if somebody wants to know, and once a second: nearly every request is over by then.
type life struct {
	context.Context // of the connection
	c               *Conn

	mu    sync.Mutex
	ended bool
	inner atomic.Pointer[ending] // nil = nobody wants to know
}

// ending is what ends.
type ending struct {
	context.Context
	end context.CancelFunc
}

const looksForLeave = time.Second

// Done implements [context.Context].
func (l *life) Done() <-chan struct{} {
	if in := l.inner.Load(); in != nil {
		return in.Done()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.inner.Load()
	if in == nil {
		in = new(ending)
		if in.Context, in.end = context.WithCancel(l.Context); l.ended {
			in.end()
		}
		l.inner.Store(in)
		if !l.ended {
			l.c.pass.gate.watch(l.c)
		}
	}
	return in.Done()
}

// Err implements [context.Context].
func (l *life) Err() error {
	if in := l.inner.Load(); in != nil {
		return in.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return context.Canceled
	}
	return nil
}

type quickly struct{} // the key of a life

// MayStay reports whether the goroutine of a request may go on when its client has left: the connection has ended by
// then, and the gate counts neither any more. ctx is the request's.
func MayStay(ctx context.Context) bool { return ctx.Value(quickly{}) != nil }

// Value implements [context.Context].
func (l *life) Value(key any) any {
	if key == (quickly{}) {
		return l
	}
	if in := l.inner.Load(); in != nil {
		return in.Value(key)
	}
	return l.Context.Value(key)
}

// end ends it.
func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if in := l.inner.Load(); in != nil {
		in.end()
	}
}

// left reports whether the client has left, as far as that can be told.
func (c *Conn) left() bool {
	if of, ok := c.Conn.(interface{ Peek() (int, error) }); ok {
		n, err := of.Peek()
		return n == 0 && err != nil && !os.IsTimeout(err)
	}
	return c.ended()
}

// watch has it looked whether the client of a connection has left, as long as somebody waits to know.
func (g *Gate) watch(c *Conn) {
	if c.quick.watched.Swap(true) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watched = append(g.watched, c); len(g.watched) == 1 {
		time.AfterFunc(looksForLeave, g.lookForLeave)
	}
}

// lookForLeave ends requests whose clients have left. Connections without a request to end are watched no longer.
func (g *Gate) lookForLeave() {
	g.mu.Lock()
	list := slices.Clone(g.watched)
	g.mu.Unlock()
	over := make(map[*Conn]bool)
	for _, c := range list {
		switch l := c.quick.waited(); {
		case l != nil && c.left():
			l.end()
			c.Close() // the handler may stay for a while
		case l == nil:
			c.quick.watched.Store(false)
			over[c] = c.quick.waited() == nil || c.quick.watched.Swap(true) // one may have come meanwhile
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	stays := g.watched[len(list):] // those that came meanwhile, one of which may have been over just before
	g.watched = slices.DeleteFunc(list, func(c *Conn) bool { return over[c] })
	if g.watched = append(g.watched, stays...); len(g.watched) > 0 {
		time.AfterFunc(looksForLeave, g.lookForLeave)
	}
}

// waited returns the life of the request under way, if somebody wants to know when it ends.
func (q *quick) waited() *life {
	if l := q.life.Load(); l != nil && l.inner.Load() != nil {
		return l
	}
	return nil
}
