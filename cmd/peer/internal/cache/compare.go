package cache

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
)

const (
	maxComparisons = 4                // at a time; more are left out
	compareTime    = 30 * time.Second // for one
	comparedPart   = 64 << 10         // bytes asked for of a longer body, where a strong validator lets a part be asked for
	maxCompared    = 1 << 20          // bytes looked at of one of which no part can be asked for
	maxRefuted     = 3                // of a sibling's answers that the origin does not give, most of those compared, are a lie
	forgetRefuted  = 64               // comparisons after which older ones count half
)

// compareSome compares one in Config.Compare of the siblings' answers with the origin's,
// when nobody waits for it. Which one it is nobody can tell before.
func (c *Cache) compareSome(f *fetch, obj *store.Object, e *entry) {
	if e.given == nil || c.cfg.Compare <= 0 || rand.IntN(c.cfg.Compare) != 0 {
		return
	}
	select {
	case c.comparing <- struct{}{}:
	default:
		return
	}
	c.background.Go(func() {
		defer func() { <-c.comparing }()
		ctx, cancel := context.WithTimeout(c.stopped, compareTime)
		defer cancel()
		c.compare(ctx, &f.r, &found{obj: obj, entry: e})
	})
}

// A likeness is what comes of comparing a sibling's answer with the origin's.
type likeness int

const (
	unknown  likeness = iota // the origin said nothing of use
	same                     // as far as was looked
	other                    // the origin has something else, by now or always
	disproof                 // the origin has something else under the same strong validator
)

// compare compares a stored response with the origin's. Another is dropped. A sibling whose
// answer is disproved, or of which most are others, is left alone for a time, all that it
// gave is fetched anew, and all peers drop the object.
//
// It is not a validation: a liar repeats the origin's validators. A block is asked for,
// under If-Range, or the whole.
func (c *Cache) compare(ctx context.Context, r *request, f *found) {
	v, err := c.store.Open(f.obj, store.Serve)
	if err != nil {
		return
	}
	defer v.Close()
	mine := f.entry.representation(v.Size())
	tag, conditions := mine.StrongValidator(), http.Header{}
	inPart := tag != "" && mine.length > comparedPart
	offset := int64(0)
	if inPart {
		offset = rand.Int64N((mine.length+comparedPart-1)/comparedPart) * comparedPart
	}
	src := &sources{c: c, f: &fetch{r: *asNobody(r)}} // no siblings: the origin's
	var a *answer
	for { // twice at most
		if inPart {
			conditions["Range"] = []string{fmt.Sprintf("bytes=%d-%d", offset, min(offset+comparedPart, mine.length)-1)}
			conditions["If-Range"] = []string{tag}
		}
		if a, err = src.next(ctx, conditions); err != nil {
			return
		}
		if a.status != http.StatusRequestedRangeNotSatisfiable || offset == 0 {
			break
		}
		a.close()
		offset = 0 // the origin's ends before: how long is it?
	}
	defer a.close()
	like := compared(mine, v.Sums(), a, inPart, offset)
	if like == unknown {
		return
	}
	c.SiblingsCompared.Add(1)
	by := f.entry.given.by
	mostly := c.tallies.note(by, like != same)
	if like == same {
		return
	}
	c.SiblingsRefuted.Add(1)
	c.Invalidated(TargetOf(r.url, false)) // and no sibling brings it back
	if like == other && !mostly {
		c.log.Info("a sibling's answer differs from the origin's", "peer", by, "url", r.url)
		c.cfg.Siblings.Accuse(by, false)
		return
	}
	c.liars.set(by, c.now().steady)
	c.accuse(by, "it gave what the origin did not", "url", r.url)
	c.invalidate(ctx, []string{r.url})
}

// accuse leaves a sibling alone for what it did.
func (c *Cache) accuse(by, of string, about ...any) {
	c.SiblingsAccused.Add(1)
	c.log.Warn("a sibling is quarantined", append([]any{"peer", by, "reason", of}, about...)...)
	c.cfg.Siblings.Accuse(by, true)
}

// compared compares what is stored, by its checksums, with the origin's answer: with the whole, or
// with the part that begins at an offset, if that was asked for.
func compared(mine representation, sums store.Sums, a *answer, inPart bool, offset int64) likeness {
	theirs := a.response()
	from, _, size := a.span()
	partial := a.status == http.StatusPartialContent
	switch {
	case a.status >= 500, a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout,
		a.status == http.StatusRequestedRangeNotSatisfiable:
		return unknown
	case partial && (!inPart || from != offset || size < 0):
		return unknown // it is not what was asked for
	case partial && (theirs.ETag != mine.ETag || mine.ETag == "" && !theirs.LastModified.Equal(mine.LastModified)):
		return other // though If-Range was to keep it from being sent
	case !partial && !theirs.Storable(nil, false):
		return other // for one client alone: nothing to compare with
	}
	// Nothing less is a proof: dates of modification are kept when files are copied to an origin.
	differs := other
	if mine.StrongValidator() != "" && mine.ETag == theirs.ETag && mine.ETag != "" {
		differs = disproof
	}
	if !partial && a.status != mine.Status || !sameMeaning(mine.Header, theirs.Header) || size >= 0 && size != mine.length {
		return differs
	}
	length := min(maxCompared, mine.length-from)
	if partial {
		length = min(comparedPart, length)
	}
	source := &restReader{Reader: a.body}
	_, err := io.CopyN(io.Discard, sums.Check(source, from, from+length), length)
	if err == nil && length == mine.length {
		if n, _ := io.ReadFull(source, make([]byte, 1)); n > 0 {
			return differs // it goes on
		}
	}
	switch {
	case source.failed: // it was cut, and may have been the same
		return unknown
	case err != nil:
		return differs
	}
	return same
}

// tallies count how siblings' answers compared. They are safe for concurrent use.
type tallies struct {
	mu sync.Mutex
	of recent[tally]
}

type tally struct{ compared, refuted int }

// note counts a comparison. It reports whether most of a sibling's latest answers are not
// the origin's, and then begins anew.
func (t *tallies) note(by string, refuted bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, _ := t.of.get(by)
	if n.compared++; n.compared > forgetRefuted {
		n.compared, n.refuted = n.compared/2, n.refuted/2
	}
	if refuted {
		n.refuted++
	}
	mostly := n.refuted >= maxRefuted && 2*n.refuted > n.compared
	if mostly {
		n = tally{}
	}
	t.of.set(by, n)
	return mostly
}

// sameMeaning reports whether two headers let a body mean the same. What the origin's does
// not say, as that of a part need not, is not compared.
func sameMeaning(mine, theirs http.Header) bool {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Location"} {
		if theirs[name] != nil && mine.Get(name) != theirs.Get(name) {
			return false
		}
	}
	return mine["Set-Cookie"] == nil || theirs["Set-Cookie"] != nil
}
