package cache

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// An attempt looks for another source of a body, from byte at on. Its waits are bounded: for
// a header by the time for the first byte, for each read by a few times the patience that
// it began with.
type attempt struct {
	b          *body
	at         int64
	superseded bool          // the body was when the attempt began: only the store may have the rest
	strong     bool          // a strong validator shows whether the new source has the same bytes
	since      []byte        // if not strong: what the old source has sent since, to be compared; b.mu guards it
	slow       bool          // the body's source is a sibling that makes too little progress
	pause      time.Duration // before the first request
	patience   time.Duration
	received   *store.Sums   // of the bytes before at; nil = unknown
	done       chan struct{} // closed at the end

	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin starts an attempt. b.mu is held, and b.w is not being written to, since Read is waiting.
func (b *body) begin() {
	t := &attempt{b: b, at: b.at, strong: b.repr.StrongValidator() != "", superseded: b.superseded, slow: !b.resuming && b.from.sibling != nil, patience: b.patience, done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(&b.f.ctx)
	if b.resuming && b.fruitless > 0 {
		t.pause = retryPause << (b.fruitless - 1)
	}
	switch {
	case b.w != nil:
		sums := b.w.Received()
		t.received = &sums
	case b.passed != nil:
		sums := b.passed.Sums()
		t.received = &sums
	}
	b.attempt = t
	b.c.background.Go(t.run)
}

func (t *attempt) run() {
	b := t.b
	found, superseded := t.find()
	b.mu.Lock()
	if b.attempt == t {
		b.attempt = nil
	}
	if superseded {
		b.superseded = true
		if b.at == 0 {
			b.from.cancel(errSuperseded) // no byte was sent: the clients can begin another fetch
		}
	}
	if !found && (b.resuming || !t.superseded) {
		b.fruitless++
		b.patience = min(2*b.patience, b.c.cfg.BetweenBytesTimeout)
		b.retry = time.Now().Add(b.patience)
	}
	b.wake()
	b.mu.Unlock()
	if !found {
		t.cancel(nil)
	}
	if superseded {
		b.c.forget(b.f) // new requests begin another fetch
	}
	close(t.done)
}

// find looks into the store, then asks the remaining siblings, the origin and, if the origin does
// not have the rest, all siblings for a stale copy. superseded means that the origin has another
// representation by now. The loop ends: each round uses up a sibling, or ends
// with the origin's answer.
func (t *attempt) find() (found, superseded bool) {
	b := t.b
	if a := t.stored(); a != nil {
		if found, _ := t.take(a); found {
			return true, false
		}
	}
	if t.superseded { // no other source has the rest
		return false, false
	}
	select {
	case <-time.After(t.pause):
	case <-t.ctx.Done():
		return false, false
	}
	conditions := t.conditions()
	b.src.begun = b.repr.Status
	if b.size > 0 {
		b.src.begun = http.StatusOK
	}
	if in := b.src.siblings; in != nil && t.slow {
		in.OriginFirst() // the client has waited long enough for a slow sibling
	}
	for {
		a, err := b.src.next(t.ctx, conditions)
		if err != nil {
			return t.stale(conditions), false
		}
		found, other := t.take(a)
		switch {
		case found || t.ctx.Err() != nil:
			return found, other && a.sibling == nil
		case a.sibling == nil:
			return t.stale(conditions), other
		}
	}
}

// conditions returns the fields that request the rest of the body, or all of it if there is no
// strong validator. nil = the whole representation.
func (t *attempt) conditions() http.Header {
	b, from, v := t.b, t.b.first, t.b.repr.StrongValidator()
	if v != "" {
		from += t.at
	}
	wanted := "bytes=" + strconv.FormatInt(from, 10) + "-"
	switch {
	case b.size > 0:
		wanted += strconv.FormatInt(b.first+b.repr.length-1, 10)
	case v == "" || from == 0:
		return nil
	}
	h := http.Header{"Range": {wanted}}
	if v != "" {
		h["If-Range"] = []string{v}
	}
	return h
}

// take makes an answer the body's source, or closes it. For other see position. A sibling
// may take no longer than the origin would.
func (t *attempt) take(a *answer) (found, other bool) {
	if a.sibling != nil {
		defer time.AfterFunc(t.worth(a), func() { a.cancel(sibling.ErrStalled) }).Stop()
	}
	from := &rest{answer: a, pausing: newPausing(a.body, otherPatience*t.patience, a.cancel)}
	from.limited = io.LimitedReader{R: from.pausing, N: math.MaxInt64}
	from.Reader = bufio.NewReaderSize(&from.limited, 32<<10)
	a.body = closing{from, a.body}
	other, err := t.position(from)
	if err == nil {
		other, err = t.lead(from)
	}
	if err != nil {
		a.close()
	}
	return err == nil, other
}

// A rest is an answer that may have the rest of a body.
type rest struct {
	*answer
	*bufio.Reader // reads from limited, which reads from pausing
	limited       io.LimitedReader
	pausing       *pausing
}

// worth returns how long a sibling may take to become the body's source.
func (t *attempt) worth(a *answer) time.Duration {
	before := t.at
	if a.status == http.StatusPartialContent && t.strong {
		before = 0
	}
	if seconds, known := t.b.worth(before, crawlTime); known {
		return max(stallTime, time.Duration(seconds*float64(time.Second)))
	}
	return otherPatience * t.patience
}

// stored returns the copy in the store if there is a strong validator to compare it by, nil = none.
// It may be stale, or another fetch may have stored it meanwhile. If the bytes before at are
// unknown, so that they can't be compared, it is only the rest. Each object is tried once.
func (t *attempt) stored() *answer {
	b := t.b
	if !t.strong {
		return nil
	}
	f := b.c.peek(b.identity())
	if f == nil || f.entry.overdue(b.c.now()) || b.c.discredited(f.entry) {
		return nil
	}
	b.mu.Lock()
	again := b.tried == f.obj
	b.tried = f.obj
	b.mu.Unlock()
	if again {
		return nil
	}
	v, err := b.c.store.Open(f.obj, store.Share) // its bytes are stored again, so all are checked
	if err != nil {
		return nil
	}
	a := &answer{status: f.entry.Status, header: f.entry.Header, length: v.Size(), received: f.entry.received,
		given: f.entry.given, described: f.entry.Response, cancel: func(error) {}}
	if t.received == nil {
		a.from = b.first + t.at
	}
	src, err := v.Source(a.from, v.Size()-a.from)
	if err != nil {
		v.Close()
		return nil
	}
	a.body = closing{src, &v}
	return a
}

// stale takes the rest from a sibling's stale copy.
func (t *attempt) stale(conditions http.Header) bool {
	if !t.strong {
		return false
	}
	a := t.b.c.staleElsewhere(t.ctx, t.b.src, 0, conditions)
	if a == nil {
		return false
	}
	found, _ := t.take(a)
	return found
}

var errUnfit = errors.New("cache: not the rest of this response")

// position reads an answer up to the byte at which the body goes on, compares the bytes before
// that, and waits for it. other means that the source has another representation.
func (t *attempt) position(from *rest) (other bool, err error) {
	a, whole, received := from.answer, &t.b.repr, t.received
	begins := a.from
	switch {
	case a.status == http.StatusPartialContent && (whole.Status == http.StatusOK || t.b.size > 0):
		if !t.hasRest(a) || a.sibling != nil && a.header.Get("Content-Encoding") != whole.Header.Get("Content-Encoding") { // siblings send it with a part, too
			return false, errUnfit
		}
		if begins, _, _ = a.span(); t.strong {
			received = nil
		}
	case t.b.isWhole(a):
		from.limited.N = t.b.first + whole.length - begins
	case a.status != whole.Status:
		return a.status < 500, errUnfit
	case !whole.same(a.representation()):
		return true, errUnfit
	}
	start := t.b.first
	if received == nil {
		start += t.at // the bytes before need not be compared
	}
	if start < begins {
		return false, errUnfit
	}
	if _, err := io.CopyN(io.Discard, from, start-begins); err != nil {
		return false, errUnfit
	}
	if received != nil {
		_, err := io.CopyN(io.Discard, received.Check(from, 0, math.MaxInt64), t.at)
		switch {
		case errors.Is(err, store.ErrDiffers) && !errors.Is(err, io.ErrUnexpectedEOF):
			return true, err
		case err != nil:
			return false, errUnfit
		}
	}
	if _, err := from.Peek(1); err != nil && (err != io.EOF || whole.length >= 0) {
		return false, errUnfit
	}
	return false, nil
}

// hasRest reports whether a 206 begins at byte at or, if the bytes must be compared, at the
// beginning of the body.
func (t *attempt) hasRest(a *answer) bool {
	b := t.b
	end := b.first + b.repr.length
	switch {
	case !t.strong:
		from, to, size := a.span()
		return from == b.first && to == end && size == b.size && b.repr.SameBytes(a.response())
	case b.size > 0:
		return b.repr.HasRest(a.header, b.first+t.at, end, b.size)
	}
	return b.repr.HasRest(a.header, t.at, -1, b.repr.length)
}

// isWhole reports whether the body is a part and an answer is the whole: its sender does not
// support ranges.
func (b *body) isWhole(a *answer) bool {
	if b.size == 0 || a.length >= 0 && a.length != b.size {
		return false
	}
	whole := *b.repr.Response
	whole.Status = http.StatusOK
	return whole.SameBytes(a.response())
}

// meanwhile notes bytes that the body's source has sent since the attempt began. If there are many,
// the attempt ends. b.mu is held.
func (t *attempt) meanwhile(p []byte) {
	switch {
	case t.strong:
	case len(t.since)+len(p) > maxMeanwhile:
		t.cancel(sibling.ErrOvertaken)
	default:
		t.since = append(t.since, p...)
	}
}

// lead makes an answer that is in position the body's source, as soon as it is further than the
// present one. For other see position. The loop ends: each round reads more of the answer's body.
func (t *attempt) lead(from *rest) (other bool, err error) {
	b := t.b
	for pos := t.at; ; {
		_, err := from.Peek(1)
		b.mu.Lock()
		if b.ended || t.ctx.Err() != nil {
			b.mu.Unlock()
			return false, sibling.ErrOvertaken
		}
		n := min(b.at-pos, int64(from.Buffered()))
		if !t.strong {
			if p, _ := from.Peek(int(n)); !bytes.Equal(p, t.since[:n]) {
				b.mu.Unlock()
				return true, store.ErrDiffers
			}
			t.since = t.since[n:]
		}
		pos += n
		from.Discard(int(n))
		if pos == b.at && (from.Buffered() > 0 || err == io.EOF && b.repr.length < 0) {
			t.takeLocked(from)
			b.mu.Unlock()
			return false, nil
		}
		b.mu.Unlock()
		if err != nil {
			return false, errUnfit
		}
	}
}

// takeLocked makes an answer the body's source. b.mu is held.
func (t *attempt) takeLocked(from *rest) {
	b := t.b
	old := b.from
	from.pausing.limit = 0 // from now on the body's own alarm watches it
	b.from, b.attempt = from.answer, nil
	if b.helper == nil {
		b.helper = from.given
	}
	b.patience = b.stall()
	b.again = time.Now().Add(aloneStall)
	if b.resuming {
		b.c.BodiesResumed.Add(1)
	} else {
		b.c.BodiesTakenOver.Add(1)
	}
	if b.reading.IsZero() {
		old.close()
	} else {
		old.cancel(sibling.ErrStalled) // Read closes it
		b.waitedLocked()
	}
	b.mark = progress{b.at, b.waited}
}
