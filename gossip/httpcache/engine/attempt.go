package engine

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

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// An attempt looks for another source of a body, from byte at on. Its waits are bounded: for
// a header by the time for the first byte, for each read by a few times the patience that
// it began with, and for a sibling by its floor.
type attempt struct {
	b        *body
	at       int64
	from     int64         // <= at; requested if there is a strong validator: what lies between is compared
	strong   bool          // a strong validator shows whether the new source has the same bytes
	since    []byte        // if not strong: what the old source has sent since, to be compared; b.mu guards it
	pause    time.Duration // before the first request
	patience time.Duration
	received *bodies.Sums  // of the bytes before at; nil = unknown
	done     chan struct{} // closed at the end

	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin starts an attempt. b.mu is held, and b.w is not being written to, since Read is waiting.
func (b *body) begin() {
	t := &attempt{b: b, at: b.at, strong: b.repr.StrongValidator() != "", patience: b.may.most, done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(&b.f.ctx)
	if b.state.waits() && b.fruitless > 0 {
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
	if t.from = t.at; b.helper != nil && t.received != nil { // a sibling may repeat the origin's validator
		t.from = max(0, t.at-1) / comparedPart * comparedPart
	}
	b.attempt = t
	if !b.state.waits() {
		b.become(bodyRaced)
	}
	b.c.background.Go(t.run)
}

func (t *attempt) run() {
	b := t.b
	found := t.find()
	b.mu.Lock()
	if b.attempt == t {
		b.attempt = nil
		if b.state == bodyRaced {
			b.become(bodyFlows)
		}
	}
	if b.superseded && !found && (b.at == 0 || b.from.sibling != nil) {
		b.drop() // the clients can begin another fetch if no byte was sent; a slow sibling is wrong or out of date
	}
	if !found {
		b.fruitless++
		b.may.most = min(2*b.may.most, b.c.tuning.Load().BetweenBytesTimeout)
		b.may.left = b.may.most
		if !b.reading.IsZero() {
			b.may.left += time.Since(b.reading)
		}
	}
	b.wake()
	b.mu.Unlock()
	if !found {
		t.cancel(nil)
	}
	close(t.done)
}

// conclude draws the conclusions from the origin's answer: if it has another representation, the requests that wait
// begin another fetch.
func (t *attempt) conclude(like likeness) {
	b := t.b
	delivered := b.f.delivered() // otherwise the fetch uses the next source
	if like == other || like == disproof {
		b.mu.Lock()
		b.superseded = true
		b.wake()
		b.mu.Unlock()
		if delivered {
			b.c.forget(b.f)
		}
	}
	if by := b.given(); by != nil && t.at > 0 && delivered && b.f.outcome.derived == nil {
		b.c.judge(&b.f.ctx, &b.f.r, by.by, like)
	}
}

// find asks the remaining siblings and the origin. The loop ends: each round uses up a sibling, or ends with
// the origin's answer, the second where that refuses the first request.
func (t *attempt) find() (found bool) {
	b := t.b
	patient := allow(otherPatience*t.patience, 0)
	select {
	case <-time.After(t.pause):
	case <-t.ctx.Done():
		return false
	}
	conditions := t.conditions()
	src := &b.f.sources
	defer func(was int) { src.begun, src.plain = was, nil }(src.begun)
	src.begun = b.repr.Status
	if b.size > 0 {
		src.begun = http.StatusOK
	}
	for {
		a, err := src.next(t.ctx, conditions)
		switch {
		case err != nil:
			return false
		case planted.Fault == "crawling-rescue" && a.sibling != nil:
			if t.take(a, patient) == same {
				return true
			}
		case a.sibling != nil:
			if t.take(a, a.allowance()) == same {
				return true
			}
		case b.given() != nil && src.plainly(a, b.repr.Response):
			a.close()
		default:
			like := t.take(a, patient)
			t.conclude(like)
			return like == same
		}
		if t.ctx.Err() != nil {
			return false
		}
	}
}

// conditions returns the fields that request the rest of the body, or all of it if there is no
// strong validator. nil = the whole representation.
func (t *attempt) conditions() http.Header {
	b, from, v := t.b, t.b.first, t.b.repr.StrongValidator()
	if v != "" {
		from += t.from
	}
	wanted := "bytes=" + strconv.FormatInt(from, 10) + "-"
	switch {
	case b.size > 0:
		last := b.first + b.repr.length - 1
		if planted.Fault == "range-too-long" {
			last++
		}
		wanted += strconv.FormatInt(last, 10)
	case v == "" || from == 0:
		return nil
	}
	h := http.Header{"Range": {wanted}}
	if v != "" {
		h["If-Range"] = []string{v}
	}
	return h
}

// take makes an answer the body's source, if it is the same as far as that can be compared, or closes
// it. may is how long the answer is waited for.
func (t *attempt) take(a *answer, may allowance) likeness {
	cause := error(errBetweenBytes)
	if a.sibling != nil {
		cause = sibling.ErrStalled
	}
	from := &rest{answer: a, pausing: newPausing(a.body, may, a.cancel, cause)}
	from.limited = io.LimitedReader{R: from.pausing, N: math.MaxInt64}
	from.Reader = bufio.NewReaderSize(&from.limited, 32<<10)
	a.body = closing{from, a.body}
	like := t.position(from)
	if like == same {
		like = t.lead(from)
	}
	if like != same {
		a.close()
	}
	return like
}

// A rest is an answer that may have the rest of a body.
type rest struct {
	*answer
	*bufio.Reader // reads from limited, which reads from pausing
	limited       io.LimitedReader
	pausing       *pausing
}

// position reads an answer up to the byte at which the body goes on, compares the bytes before
// that, and waits for it. The result is unknown if the answer does not have the rest.
func (t *attempt) position(from *rest) likeness {
	a, b, whole, received := from.answer, t.b, &t.b.repr, t.received
	begins, start := int64(0), b.first // of the answer, and of what is compared
	switch {
	case a.status == http.StatusPartialContent && (whole.Status == http.StatusOK || b.size > 0):
		if !t.hasRest(a) || a.sibling != nil && a.header.Get("Content-Encoding") != whole.Header.Get("Content-Encoding") { // siblings send it with a part, too
			return unknown
		}
		if begins, _, _ = a.span(); t.strong {
			start += t.from
		}
	case b.isWhole(a):
		from.limited.N = b.first + whole.length
	case a.status != whole.Status && a.passing():
		return unknown
	case a.status != whole.Status, planted.Fault != "copy-mixed" && !whole.same(a.representation()):
		return other
	}
	if received == nil {
		start = b.first + t.at // the bytes before need not be compared
	}
	if start < begins {
		return unknown
	}
	if _, err := io.CopyN(io.Discard, from, start-begins); err != nil {
		return unknown
	}
	if before := b.first + t.at - start; before > 0 {
		end := int64(math.MaxInt64)
		if planted.Fault == "resume-blindly" {
			end = 0
		}
		_, err := io.CopyN(io.Discard, received.Check(from, start-b.first, end), before)
		switch {
		case errors.Is(err, bodies.ErrDiffers) && !errors.Is(err, io.ErrUnexpectedEOF):
			return t.differs()
		case err != nil:
			return unknown
		}
	}
	if _, err := from.Peek(1); err != nil && (err != io.EOF || whole.length >= 0) {
		return unknown
	}
	return same
}

// differs returns the likeness of an answer with other bytes. Only an entity tag proves anything.
func (t *attempt) differs() likeness {
	if t.strong && t.b.repr.ETag != "" {
		return disproof
	}
	return other
}

// hasRest reports whether a 206 begins where it was requested: at byte from or, without a strong
// validator, at the beginning of the body.
func (t *attempt) hasRest(a *answer) bool {
	b := t.b
	end := b.first + b.repr.length
	switch {
	case !t.strong:
		from, to, size := a.span()
		return from == b.first && to == end && size == b.size && b.repr.SameBytes(a.response())
	case b.size > 0:
		return b.repr.HasRest(a.header, b.first+t.from, end, b.size)
	}
	return b.repr.HasRest(a.header, t.from, -1, b.repr.length)
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
// present one. It gives up if that has sent much meanwhile. The loop ends: each round reads more of
// the answer's body.
func (t *attempt) lead(from *rest) likeness {
	b := t.b
	begun := int64(-1)
	for pos := t.at; ; {
		_, err := from.Peek(1)
		b.mu.Lock()
		if begun < 0 {
			begun = b.at
		}
		if b.err != nil || t.ctx.Err() != nil || b.at-begun > maxMeanwhile {
			b.mu.Unlock()
			return unknown
		}
		n := min(b.at-pos, int64(from.Buffered()))
		if !t.strong {
			if p, _ := from.Peek(int(n)); !bytes.Equal(p, t.since[:n]) {
				b.mu.Unlock()
				return t.differs()
			}
			t.since = t.since[n:]
		}
		pos += n
		from.Discard(int(n))
		if pos == b.at && (from.Buffered() > 0 || err == io.EOF && b.repr.length < 0) {
			t.takeLocked(from)
			b.mu.Unlock()
			return same
		}
		b.mu.Unlock()
		if err != nil {
			return unknown
		}
	}
}

// takeLocked makes an answer the body's source. b.mu is held.
func (t *attempt) takeLocked(from *rest) {
	b := t.b
	old := b.from
	from.pausing.may = allowance{} // from now on the body's own alarm watches it
	b.from, b.attempt = from.answer, nil
	if b.helper == nil {
		b.helper = from.given
	}
	b.may = b.from.allowance()
	if b.state == bodySought {
		b.c.BodiesResumed.Add(1)
	} else {
		b.c.BodiesTakenOver.Add(1)
	}
	b.become(bodyFlows)
	if b.reading.IsZero() {
		old.close()
	} else {
		old.cancel(sibling.ErrStalled) // Read closes it
		b.reading = time.Now()
	}
}
