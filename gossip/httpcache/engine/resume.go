package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/sibling"
)

const (
	stallTime     = time.Second             // without a byte, after which an attempt begins
	siblingStall  = 500 * time.Millisecond  // the same for a sibling, since another source is likely to be faster
	arrivingStall = 1500 * time.Millisecond // the same if the sender is itself waiting for the body: it should begin an attempt first
	aloneStall    = 10 * time.Second        // the same for an origin with a single client, if the rest can be requested; doubled for each attempt that found no source
	otherPatience = 4                       // multiplies an attempt's patience: an origin that always pauses at the same place costs one request
	maxFruitless  = 3                       // attempts in a row that found no source, before the body is given up
	maxMeanwhile  = 256 << 10               // bytes that a source may send beside an attempt that must compare them, or follows it
	retryPause    = 100 * time.Millisecond  // before the second attempt without a source; doubled for each further one
)

// errUnattended ends a body that no request waits for and that isn't worth finishing.
var errUnattended = errors.New("cache: nobody waits for the rest")

// errSuperseded ends a body that stalls when no other source can finish it.
var errSuperseded = errors.New("cache: the origin may have another representation by now, and no source has the rest of this one")

// A body is the body of a response whose bytes come from one source after another. It
// is read by one goroutine.
//
// If its source ends before the body does, Read waits for an attempt to find another source
// that continues at the same byte. If the source only makes too little progress, an attempt runs beside
// it, and the first to reach the next byte is the source from then on. There is one attempt
// at a time, however many clients wait.
//
// A body may be a part of a representation. Then the rest of the part is requested.
type body struct {
	c    *Cache
	f    *fetch
	repr representation
	w    *bodies.Stream // receives the bytes; nil = they are not kept

	first, size int64            // of a part: its offset in the whole, and the length of the whole; otherwise 0. size = -1: several parts, which can't be continued
	passed      *bodies.Received // checksums of the bytes so far, if these are not kept and there is no strong validator; otherwise nil

	mu         sync.Mutex
	from       *answer   // the source
	at         int64     // bytes received
	reading    time.Time // since when Read waits for the source; zero = it doesn't
	may        allowance // how long the source may be waited for until an attempt begins; most is doubled for each fruitless one
	state      bodyState
	attempt    *attempt      // nil = none under way
	fruitless  int           // attempts since the last byte
	helper     *given        // the first sibling that was a source; nil = none
	superseded bool          // the origin has another representation by now, and no source the rest of this one
	err        error         // how it ended, io.EOF = complete; nil = it has not ended
	changed    chan struct{} // closed when any of this changes, for moving; nil = nobody waits
	watch      *alarm        // nil once the body has ended
}

func (c *Cache) newBody(f *fetch, a *answer, w *bodies.Stream) *body {
	b := &f.body
	if b.c != nil {
		b = new(body)
	}
	*b = body{c: c, f: f, repr: a.representation(), w: w, from: a, may: a.allowance(), helper: a.given}
	if a.status == http.StatusPartialContent {
		first, end, size := a.span()
		if planted.Fault != "part-cut" && size >= 0 && (a.length < 0 || a.length == end-first) {
			b.first, b.size, b.repr.length = first, size, end-first // even if the answer is chunked
		} else {
			b.size = -1
		}
	}
	if planted.Fault != "part-forgotten" && w == nil && b.repr.StrongValidator() == "" && (b.size > 0 || a.derived == nil && f.r.othersMayStore(a.response())) {
		b.passed = new(bodies.Received)
	}
	b.mu.Lock() // wakeUp uses b.watch
	b.watch = c.alarm(b, arrivingTime)
	b.mu.Unlock()
	return b
}

// given returns the sibling that was a source of the body; nil = none was.
func (b *body) given() *given {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.helper
}

// Read reads from the current source. An error other than io.EOF is final: no source can finish the
// body, and no attempt asks any. Each round of the loop returns, or is followed by one with another source.
func (b *body) Read(p []byte) (int, error) {
	for {
		b.mu.Lock()
		from := b.from
		b.reading = time.Now()
		b.mu.Unlock()
		n, err := 0, from.err
		if err == nil {
			n, err = from.body.Read(p)
		}
		b.mu.Lock()
		waited := time.Since(b.reading)
		b.reading = time.Time{}
		if b.from != from { // another source was faster
			b.mu.Unlock()
			from.close()
			continue
		}
		if b.superseded && b.at == 0 { // the clients begin another fetch: these bytes must not be sent
			n, err = 0, errSuperseded
		}
		b.may.charge(waited, n)
		b.advance(p[:n])
		whole := err == io.EOF && (planted.Fault != "eof-with-bytes" || n == 0) && (b.repr.length < 0 || b.at == b.repr.length)
		b.mu.Unlock()
		switch {
		case whole:
			if o := b.f.replaces; o != nil {
				b.c.store.DeleteObject(o)
			}
			return n, io.EOF
		case err == io.EOF:
			err = io.ErrUnexpectedEOF
		}
		if from.err = err; n > 0 || err == nil {
			return n, nil
		}
		if err := b.resume(from); err != nil {
			return 0, err
		}
	}
}

// advance notes that the bytes p have arrived. b.mu is held.
func (b *body) advance(p []byte) {
	if len(p) == 0 {
		return
	}
	b.at += int64(len(p))
	b.fruitless = 0
	if b.passed != nil {
		b.passed.Add(p)
	}
	if b.attempt != nil {
		b.attempt.meanwhile(p)
	}
	b.wake()
}

// wake wakes the requests in moving. b.mu is held.
func (b *body) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// resume waits until the body has another source than from, which has ended, or returns
// the error of from. Its loop ends: each round but the first follows an attempt, and
// the number of fruitless ones is limited.
func (b *body) resume(from *answer) error {
	from.close()
	for {
		b.mu.Lock()
		if b.from != from {
			b.mu.Unlock()
			return nil
		}
		if b.become(bodySought); b.attempt == nil {
			if b.fruitless >= maxFruitless || !b.mayResume() {
				if b.superseded || b.replaceable() {
					from.err = errSuperseded
				}
				b.mu.Unlock()
				return from.err
			}
			b.begin()
		}
		done := b.attempt.done
		b.mu.Unlock()
		<-done // the waits of an attempt are bounded
	}
}

// mayResume reports whether another source may be asked: a client waits for the rest, and there is a
// strong validator or a part that the new source can be compared with, and the origin has shown no other
// representation. If no client has the header and the source has ended, the fetch uses the next source. b.mu is held.
func (b *body) mayResume() bool {
	return planted.Fault != "no-resume" && (b.f.delivered() || !b.state.waits()) && b.f.waiters.n.Load() > 0 && b.err == nil && !b.superseded && b.size >= 0 && b.c.stopped.Err() == nil &&
		((b.w != nil || b.passed != nil) && b.at > 0 || b.repr.StrongValidator() != "")
}

// replaceable reports whether the clients can begin another fetch and use its header: no byte was
// sent, and without a strong validator nothing would show that another source's body belongs to
// this header. For an origin that pauses each time, that ends after a while. b.mu is held.
func (b *body) replaceable() bool {
	return (b.w != nil || b.size > 0 || b.from.sibling != nil) && b.at == 0 && b.f.delivered() && b.repr.StrongValidator() == "" &&
		b.c.now().steady-b.f.r.now.steady < 2*b.c.tuning.Load().BetweenBytesTimeout
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
	if !b.reading.IsZero() {
		idle, limit := time.Since(b.reading), b.limit()
		switch {
		case idle >= limit && planted.Fault != "stall-for-ever":
			b.from.cancel(errBetweenBytes)
		case idle >= b.may.left && limit < forever:
			b.overtake()
		}
		for _, d := range [...]time.Duration{limit - idle, b.may.left - idle} {
			if d > 0 {
				next = min(next, d)
			}
		}
	}
	b.watch.clock.Reset(next)
}

// limit returns how long the source may pause. b.mu is held.
func (b *body) limit() time.Duration {
	if b.w == nil {
		return b.c.betweenBytes(b.from)
	}
	return b.c.tuning.Load().BetweenBytesTimeout
}

// alone reports whether the source is the origin and there is a single client.
func (b *body) alone() bool { return b.from.sibling == nil && b.f.waiters.followers.Load() == 0 }

// local reports whether the origin is in this process.
func (b *body) local() bool {
	local, _ := b.c.cfg.Source(b.f.r.Context())
	return local
}

// overtake begins an attempt beside a source that may still continue. An origin with a
// single client may just be slow: the rest is requested from it much later, and the
// whole body never again. One in this process is the fastest that there is. b.mu is held.
func (b *body) overtake() {
	if planted.Fault == "no-takeover" || planted.Fault == "stall-for-ever" {
		return
	}
	idle := time.Since(b.reading)
	switch {
	case b.attempt != nil, b.from.sibling == nil && b.local():
	case b.superseded:
		if b.from.sibling != nil || idle >= b.may.most && !b.alone() { // no other source has the rest
			b.drop()
		}
	case b.replaceable():
		if !b.alone() {
			b.superseded = true
			b.drop()
		}
	case b.alone() && (b.repr.StrongValidator() == "" || idle < aloneStall<<b.fruitless):
	case b.mayResume():
		b.begin()
	case !b.f.delivered() && b.from.sibling != nil: // the fetch can use the next source
		b.drop()
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
	return !b.stalledLocked() && !b.superseded && (b.err == nil || b.err == io.EOF)
}

// stalledLocked reports whether the body makes no progress. b.mu is held.
func (b *body) stalledLocked() bool {
	return b.err == nil && (b.state.waits() || !b.reading.IsZero() && time.Since(b.reading) >= b.from.allowance().most)
}

// moving waits until the body makes progress. An error means that it has ended, or that no source
// can continue it.
func (b *body) moving(ctx context.Context) error {
	for {
		b.mu.Lock()
		switch {
		case b.superseded:
			b.mu.Unlock()
			return errSuperseded
		case b.err != nil && b.err != io.EOF:
			b.mu.Unlock()
			return b.err
		case !b.stalledLocked():
			b.mu.Unlock()
			return nil
		case !b.state.waits() && time.Since(b.reading) >= b.may.left:
			b.overtake()
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

// end ends the body, with io.EOF if it is complete, and closes its source.
func (b *body) end(err error) {
	b.mu.Lock()
	b.err = err
	if err == io.EOF {
		b.become(bodyWhole)
	} else {
		b.become(bodyCut)
	}
	if b.watch != nil {
		b.c.silence(b.watch)
		b.watch = nil
	}
	if b.attempt != nil {
		b.attempt.cancel(sibling.ErrOvertaken)
	}
	b.wake()
	from := b.from
	b.mu.Unlock()
	from.close()
}

// Close ends a body that was handed over.
func (b *body) Close() error {
	b.end(io.EOF)
	return nil
}
