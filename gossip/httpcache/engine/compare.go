package engine

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
)

const (
	maxComparisons = 4                // at a time; others are skipped
	compareTime    = 30 * time.Second // for one
	maxCompared    = DefaultLarge     // bytes compared of a body, at most
	maxRefuted     = 3                // a sibling lies if so many of its answers, and most of those compared, differ from the origin's
	forgetRefuted  = 64               // comparisons after which all counts are halved
)

// compareSome compares one in Config.Compare of the siblings' answers with the origin's,
// in the background. It is chosen at random, so that a sibling can't predict it.
func (c *Cache) compareSome(f *fetch, obj bodies.Object, e *entry) {
	if e.given == nil || c.tuning.Load().Compare <= 0 || rand.IntN(c.tuning.Load().Compare) != 0 {
		return
	}
	c.atMost(c.comparing, func() {
		ctx, cancel := context.WithTimeout(c.stopped, compareTime)
		defer cancel()
		c.compare(ctx, &f.r, &found{obj: obj, entry: e})
	})
}

// atMost runs f in the background, unless as many run as there are tokens, or the cache closes; it reports which.
func (c *Cache) atMost(tokens chan struct{}, f func()) bool {
	select {
	case tokens <- struct{}{}:
	default:
		return false
	}
	began := c.work.Go(func() {
		defer func() { <-tokens }()
		f()
	})
	if !began {
		<-tokens
	}
	return began
}

// A likeness is the result of comparing a sibling's answer with the origin's.
type likeness int

const (
	unknown  likeness = iota // the origin's answer can't be compared
	same                     // all compared bytes
	other                    // the origin has another response, now or always
	disproof                 // the origin has another response with the same strong validator
)

// compare compares a stored response with the origin's. If they differ, it is removed. A sibling
// whose answer is disproved, or most of whose answers differ, is quarantined; all responses
// that it gave are fetched again, and all peers remove the object.
//
// This is not a validation, since a liar would repeat the origin's validators. It requests the same again: the whole, or
// the slice with If-Range.
func (c *Cache) compare(ctx context.Context, r *request, f *found) {
	v, err := c.store.Open(f.obj, nil)
	if err != nil {
		return
	}
	defer v.Close()
	mine, of := f.entry.representation(f.obj.Size()), f.entry.of
	conditions := http.Header{}
	if of.size > 0 {
		conditions = ofSlice(of.first/SliceSize+1, nil)
		conditions["If-Range"] = []string{mine.StrongValidator()}
	}
	src := &sources{c: c, f: &fetch{r: *asNobody(r)}} // without siblings
	a, err := src.next(ctx, conditions)
	if err == nil && src.plainly(a, mine.Response) {
		a.close()
		a, err = src.next(ctx, conditions)
	}
	if err != nil {
		return
	}
	defer a.close()
	c.judge(ctx, r, f.entry.given.by, compared(mine, of, v.Sums(), a), nil)
}

// judge draws the conclusions from a comparison with the origin's answer, which the fetch f has brought; nil = it is not
// stored.
func (c *Cache) judge(ctx context.Context, r *request, by string, like likeness, f *fetch) {
	if like == unknown {
		return
	}
	c.SiblingsCompared.Add(1)
	mostly := c.noteComparison(by, like != same)
	if like == same {
		return
	}
	c.SiblingsRefuted.Add(1)
	if f == nil {
		c.Purge(TargetOf(r.url)) // which also keeps siblings from bringing it back
	} else {
		c.purged.set(r.url, f.began.steady-1)
	}
	if like == other && !mostly {
		c.log.Info("a sibling's answer differs from the origin's", "peer", by, "url", r.url)
		c.cfg.Siblings.Accuse(by, false)
		return
	}
	c.liars.set(by, c.now().steady)
	c.accuse(by, "it sent a body that the origin did not", "url", r.url)
	c.invalidate(ctx, []string{r.url})
}

// accuse quarantines a sibling; of is the reason.
func (c *Cache) accuse(by, of string, about ...any) {
	c.SiblingsAccused.Add(1)
	c.log.Warn("a sibling is quarantined", append([]any{"peer", by, "reason", of}, about...)...)
	c.cfg.Siblings.Accuse(by, true)
}

// compared compares a stored body, by its checksums, with the origin's answer: with the whole, or with the slice that of
// says it is.
func compared(mine representation, of place, sums bodies.Sums, a *answer) likeness {
	theirs := a.response()
	from, _, size := a.span()
	if from -= of.first; of.size > 0 && size == of.size {
		size = mine.length
	}
	partial := a.status == http.StatusPartialContent
	switch {
	case a.passing(), a.status == http.StatusRequestedRangeNotSatisfiable:
		return unknown
	case partial && (of.size == 0 || from != 0 || size < 0), !partial && of.size > 0:
		return unknown // it is not the part that was requested
	case partial && (theirs.ETag != mine.ETag || mine.ETag == "" && !theirs.LastModified.Equal(mine.LastModified)):
		return other // the origin has ignored If-Range
	case !partial && !theirs.Storable(nil, false):
		return other // it is for one client only: there is nothing to compare with
	}
	// Only an entity tag proves it: files may keep their modification dates when they are copied to an origin.
	differs := other
	if mine.StrongValidator() != "" && mine.ETag == theirs.ETag && mine.ETag != "" {
		differs = disproof
	}
	if !partial && a.status != mine.Status || !sameMeaning(mine.Header, theirs.Header) || size >= 0 && size != mine.length {
		return differs
	}
	length := min(maxCompared, mine.length)
	source := &source{Reader: a.body}
	_, err := io.CopyN(io.Discard, sums.Check(source, 0, length), length)
	if err == nil && length == mine.length {
		if n, _ := io.ReadFull(source, make([]byte, 1)); n > 0 {
			return differs // the origin's body is longer
		}
	}
	switch {
	case source.err != nil: // it was cut off, and may have been the same
		return unknown
	case err != nil:
		return differs
	}
	return same
}

// passing reports whether an answer says nothing about what the origin has.
func (a *answer) passing() bool {
	return a.status >= 500 || a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout
}

// A tally counts the comparisons of a sibling's answers.
type tally struct{ compared, refuted int }

// noteComparison counts a comparison. It reports whether most of a sibling's latest answers differ
// from the origin's; if so, it resets the counts.
func (c *Cache) noteComparison(by string, refuted bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := c.tallies.get(by)
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
	c.tallies.set(by, n)
	return mostly
}

// sameMeaning reports whether two headers give a body the same meaning. Fields that the origin's
// lacks are not compared, since a part need not repeat them.
func sameMeaning(mine, theirs http.Header) bool {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Location"} {
		if theirs[name] != nil && mine.Get(name) != theirs.Get(name) {
			return false
		}
	}
	return mine["Set-Cookie"] == nil || theirs["Set-Cookie"] != nil
}
