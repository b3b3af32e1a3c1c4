package engine

import (
	"io"
	"math"
	"strings"
	"time"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// A source that brings fewer bytes a second makes too little progress. Another source is then looked
// for, and the first to reach the next byte continues the body. Only what several clients wait for,
// or what a sibling sends, has such a floor: for a single client, the origin has no better source.
const (
	siblingFloor = 128 << 10 // of a sibling's body: two blocks, since a block is checked before any of it counts
	sharedFloor  = 500       // of the origin's body, also if it comes through a sibling that is receiving it: as Apache's MinRate
)

// An allowance is how long a source may still be waited for. Waiting uses it up, bytes renew it.
type allowance struct {
	left, most time.Duration
	rate       int       // bytes that renew a second; 0 = any byte renews all of it
	since      time.Time // it has been waited since then; zero = it is not
}

func allow(most time.Duration, rate int) allowance {
	return allowance{left: most, most: most, rate: rate}
}

// wait notes that waiting begins.
func (a *allowance) wait() { a.since = time.Now() }

// waited returns how long it has been waited; 0 = it is not.
func (a *allowance) waited() time.Duration {
	if a.since.IsZero() {
		return 0
	}
	return time.Since(a.since)
}

// charge notes that waiting ended with n bytes.
func (a *allowance) charge(n int) {
	if a.rate > 0 {
		a.left = min(a.most, a.left-a.waited()+time.Duration(n)*time.Second/time.Duration(a.rate))
	}
	a.since = time.Time{}
}

// allowance returns how long an answer may be waited for until another source is looked for.
func (a *answer) allowance() allowance {
	switch {
	case a.arriving():
		return allow(arrivingStall, sharedFloor)
	case a.sibling != nil:
		return allow(siblingStall, siblingFloor)
	}
	return allow(stallTime, sharedFloor)
}

// forever is the limit of what has none.
const forever = time.Duration(math.MaxInt64)

// betweenBytes returns how long the body of an answer that is passed on may pause. What the client
// may wait for without end may pause until the client leaves, as a tunnel may.
func (c *Cache) betweenBytes(a *answer) time.Duration {
	of, _, _ := strings.Cut(strings.ToLower(a.header.Get("Content-Type")), ";")
	if of == "text/event-stream" || of == "application/grpc" || strings.HasPrefix(of, "application/grpc+") {
		return forever
	}
	return c.tuning.Load().BetweenBytesTimeout
}

// A paced body is that of an answer that is passed on. Its source may be waited for as long as its allowance says.
type paced struct {
	io.ReadCloser
	c     *Cache
	a     *answer
	may   allowance
	watch *alarm // nil once it went off, or the body is closed
}

// pace limits how long the source of an answer that is passed on may be waited for.
func (c *Cache) pace(a *answer) {
	may := allow(c.betweenBytes(a), 0)
	if a.sibling != nil && may.most < forever {
		may = allow(floorTime, sharedFloor)
	}
	a.paced = paced{ReadCloser: a.body, c: c, a: a, may: may}
	a.paced.watch = c.alarm(&a.paced, forever)
	a.body = &a.paced
}

func (p *paced) wakeUp() {
	if p.a.sibling != nil {
		p.a.cancel(sibling.ErrStalled)
	} else {
		p.a.cancel(errBetweenBytes)
	}
}

func (p *paced) Read(b []byte) (int, error) {
	if p.watch == nil {
		return p.ReadCloser.Read(b)
	}
	p.may.wait()
	p.watch.clock.Reset(p.may.left)
	n, err := p.ReadCloser.Read(b)
	if !p.watch.clock.Reset(forever) {
		p.watch.clock.Stop()
		p.watch = nil
	}
	p.may.charge(n)
	return n, err
}

func (p *paced) Close() error {
	if p.watch != nil {
		p.c.silence(p.watch)
		p.watch = nil
	}
	return p.ReadCloser.Close()
}
