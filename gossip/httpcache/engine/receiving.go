package engine

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

const (
	stallTime     = time.Second             // without a byte, after which another source is looked for
	siblingStall  = 500 * time.Millisecond  // the same for a sibling, since another source is likely to be faster
	arrivingStall = 1500 * time.Millisecond // the same if the sender is itself waiting for the body: it should look for another source first
	aloneStall    = 10 * time.Second        // the same for an origin with a single client, if a strong validator makes another try worth it
	maxFruitless  = 3                       // fetches in a row that were no faster than a body without a byte, before it is given up
)

var (
	// errUnattended ends a body that no request waits for and that isn't worth finishing.
	errUnattended = errors.New("cache: nobody waits for the rest")
	// errSuperseded ends a body that stalls when the origin has another version.
	errSuperseded = errors.New("cache: the origin may have another representation by now, and no source has the rest of this one")
	// errOvertaken ends a body that another fetch has overtaken.
	errOvertaken = errors.New("cache: another fetch of the same was faster")
	// errStandsStill ends a body that no source can bring any further.
	errStandsStill = errors.New("cache: the body stands still, and no other source has more of it")
)

// A body is the body of a response that is received from one source, and read by one goroutine. It is watched: a source
// that is silent for too long is ended, and beside one that makes too little progress another fetch begins (overtake.go).
type body struct {
	c    *Cache
	f    *fetch
	from *answer // its source

	mu      sync.Mutex
	at      int64         // bytes received
	may     allowance     // until another fetch begins; most is doubled for each fruitless one
	beside  beside        // the fetch that may overtake this body
	err     error         // how it ended, io.EOF = complete; nil = it has not ended
	changed chan struct{} // closed when any of this changes, for moving; nil = nobody waits
	watch   *alarm        // nil once the body has ended
}

func (c *Cache) newBody(f *fetch, a *answer) *body {
	b := &body{c: c, f: f, from: a, may: a.allowance()}
	a.response()                                          // which others read
	if o := f.over.Load(); o != nil && a.sibling == nil { // it was begun since a source is slow, and so may this be
		o.mu.Lock()
		b.may = allow(max(b.may.most, otherPatience*o.may.most), b.may.rate)
		o.mu.Unlock()
	}
	b.mu.Lock() // wakeUp uses b.watch
	b.watch = c.alarm(b, arrivingTime)
	b.mu.Unlock()
	return b
}

// Read reads from the source. The body is complete at io.EOF, and at no other error.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.may.wait()
	b.mu.Unlock()
	n, err := b.from.body.Read(p)
	b.mu.Lock()
	b.may.charge(n)
	switch {
	case b.err != nil: // another fetch was faster
		n, err = 0, b.err
	case b.beside.superseded && b.at == 0: // the clients begin another fetch: these bytes must not be sent
		n, err = 0, errSuperseded
	}
	if b.at += int64(n); n > 0 {
		b.advanced()
	}
	length := b.from.bodyLength()
	if err == io.EOF && length >= 0 && b.at != length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF && b.err == nil {
		b.err = err
	}
	b.mu.Unlock()
	return n, err
}

// wake wakes the requests in moving. b.mu is held.
func (b *body) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// wakeUp advertises the arriving body, and acts if its source makes too little progress.
func (b *body) wakeUp() {
	b.c.advertiseArriving(b.f)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	next := arrivingTime
	if !b.may.since.IsZero() {
		idle, limit := b.may.waited(), b.c.tuning.Load().BetweenBytesTimeout
		switch {
		case idle >= limit:
			b.from.cancel(errBetweenBytes)
		case idle >= b.may.left:
			b.slow(idle)
		}
		for _, d := range [...]time.Duration{limit - idle, b.may.left - idle} {
			if d > 0 {
				next = min(next, d)
			}
		}
	}
	b.watch.clock.Reset(next)
}

// slow acts on a source that has used up its allowance: it is ended if that costs no client anything, or another fetch
// begins beside it. An origin with a single client may just be slow, and one in this process is the fastest that
// there is. b.mu is held.
func (b *body) slow(idle time.Duration) {
	single := b.from.sibling == nil && b.f.waiters.followers.Load() == 0
	local, _ := b.c.cfg.Source(b.f.r.Context())
	switch {
	case b.beside.f != nil, local && b.from.sibling == nil:
	case b.f.over.Load() != nil: // it does not overtake
		b.drop()
	case b.beside.superseded:
		if b.from.sibling != nil || idle >= b.may.most && !single { // no other source has the rest
			b.drop()
		}
	case b.at == 0 && !b.f.delivered(): // a sibling's: the fetch takes its next answer
		b.drop()
	case single && (b.from.response().StrongValidator() == "" || idle < aloneStall<<b.beside.fruitless):
	case b.f.waiters.n.Load() > 0:
		b.lookBeside()
	}
}

// drop ends the source. For a sibling that counts as a failure. b.mu is held.
func (b *body) drop() {
	cause := errSuperseded
	if b.from.sibling != nil {
		cause = sibling.ErrStalled
	}
	b.from.cancel(cause)
}

// followable reports whether another request may follow the body: it makes progress or is complete.
func (b *body) followable() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.stalledLocked() && !b.beside.superseded && (b.err == nil || b.err == io.EOF)
}

// stalledLocked reports whether the body makes no progress. b.mu is held.
func (b *body) stalledLocked() bool {
	return b.err == nil && b.may.waited() >= b.from.allowance().most
}

// moving waits until the body makes progress. An error means that it has ended, or that the origin has another version.
func (b *body) moving(ctx context.Context) error {
	for {
		b.mu.Lock()
		idle := b.may.waited()
		switch {
		case b.beside.superseded:
			b.mu.Unlock()
			return errSuperseded
		case b.err != nil && b.err != io.EOF:
			b.mu.Unlock()
			return b.err
		case !b.stalledLocked():
			b.mu.Unlock()
			return nil
		case idle >= b.may.left:
			b.slow(idle)
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end ends the body, with io.EOF if it is complete, and closes its source. If it broke off, its clients join the fetch that
// was begun beside it, if there is one; if it stood still, that one ends, too.
func (b *body) end(err error) (joined bool) {
	b.mu.Lock()
	if b.err == nil {
		b.err = err
	}
	if b.watch != nil {
		b.c.silence(b.watch)
		b.watch = nil
	}
	next := b.beside.f
	b.beside.f = nil
	b.wake()
	b.mu.Unlock()
	b.from.close()
	if joined = next != nil && err != io.EOF && !errors.Is(err, errBetweenBytes); joined {
		b.c.replace(b.f, next)
	} else if next != nil {
		next.ctx.cancel()
	}
	return joined
}
