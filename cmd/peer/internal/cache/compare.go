package cache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
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
	c.background.Add(1)
	go func() {
		defer c.background.Done()
		defer func() { <-c.comparing }()
		ctx, cancel := context.WithTimeout(c.stopped, compareTime)
		defer cancel()
		c.compare(ctx, &f.r, &found{obj: obj, entry: e})
	}()
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
	mine := f.entry.representation(f.obj.Size())
	offset := int64(0)
	if mine.StrongValidator() != "" && mine.length > comparedPart {
		offset = rand.Int64N((mine.length+comparedPart-1)/comparedPart) * comparedPart
	}
	a, err := c.originsPart(ctx, r, mine, offset)
	if err == nil && a.status == http.StatusRequestedRangeNotSatisfiable && offset > 0 { // the origin's ends before: how long is it?
		a.close()
		offset = 0
		a, err = c.originsPart(ctx, r, mine, offset)
	}
	if err != nil {
		return
	}
	defer a.close()
	like := c.likeness(f, mine, a, offset)
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

// originsPart asks the origin for a block, where it has the same representation, or for the
// whole.
func (c *Cache) originsPart(ctx context.Context, r *request, mine representation, offset int64) (*answer, error) {
	conditions := http.Header{}
	if v := mine.StrongValidator(); v != "" && mine.length > comparedPart {
		last := min(offset+comparedPart, mine.length) - 1
		conditions["Range"] = []string{"bytes=" + strconv.FormatInt(offset, 10) + "-" + strconv.FormatInt(last, 10)}
		conditions["If-Range"] = []string{v}
	}
	src := &sources{c: c, f: &fetch{r: *unattended(r)}} // no siblings: the origin's
	return src.next(ctx, conditions)
}

// accuse leaves a sibling alone for what it did.
func (c *Cache) accuse(by, of string, about ...any) {
	c.SiblingsAccused.Add(1)
	c.log.Warn("a sibling is quarantined", append([]any{"peer", by, "reason", of}, about...)...)
	c.cfg.Siblings.Accuse(by, true)
}

// likeness compares what is stored with the origin's answer, which has the body from an
// offset on.
func (c *Cache) likeness(f *found, mine representation, a *answer, offset int64) likeness {
	theirs := a.response()
	switch {
	case a.status >= 500, a.status == http.StatusTooManyRequests, a.status == http.StatusRequestTimeout,
		a.status == http.StatusRequestedRangeNotSatisfiable:
		return unknown
	case a.status == http.StatusPartialContent:
		from, _, size := a.span()
		switch {
		case from != offset || mine.length <= comparedPart || mine.StrongValidator() == "":
			return unknown // it is not what was asked for
		case theirs.ETag != mine.ETag || mine.ETag == "" && !theirs.LastModified.Equal(mine.LastModified):
			return other // though If-Range was to keep it from being sent
		case size != mine.length:
			return disproof
		}
	case !theirs.Storable(nil, false):
		return other // for one client alone: nothing to compare with
	}
	// Nothing less is a proof: dates of modification are kept when files are copied to an origin.
	differs := other
	if mine.StrongValidator() != "" && mine.ETag == theirs.ETag && mine.ETag != "" {
		differs = disproof
	}
	if a.status != http.StatusPartialContent && a.status != mine.Status || !sameMeaning(mine.Header, theirs.Header) {
		return differs
	}
	part, limit := min(comparedPart, mine.length-offset), a.length
	if a.status != http.StatusPartialContent {
		if offset, part = 0, min(maxCompared, mine.length); limit >= 0 && limit != mine.length {
			return differs
		}
	}
	v, err := c.store.Open(f.obj, store.Serve)
	if err != nil {
		return unknown
	}
	defer v.Close()
	ours, err := v.Source(offset, part)
	if err != nil {
		return unknown
	}
	switch equal, err := sameBytes(ours, a.body, part == mine.length); {
	case err != nil:
		return unknown
	case !equal:
		return differs
	}
	return same
}

// tallies count how siblings' answers compared. They are safe for concurrent use.
type tallies struct {
	mu     sync.Mutex
	byName map[string]*tally
}

type tally struct{ compared, refuted int }

// note counts a comparison. It reports whether most of a sibling's latest answers are not
// the origin's, and then begins anew.
func (t *tallies) note(by string, refuted bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byName[by]
	if n == nil {
		if t.byName == nil || len(t.byName) >= maxLiars {
			t.byName = make(map[string]*tally)
		}
		n = &tally{}
		t.byName[by] = n
	}
	if n.compared++; n.compared > forgetRefuted {
		n.compared, n.refuted = n.compared/2, n.refuted/2
	}
	if refuted {
		n.refuted++
	}
	if n.refuted < maxRefuted || 2*n.refuted <= n.compared {
		return false
	}
	delete(t.byName, by)
	return true
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

// sameBytes reports whether theirs begins with ours, or is the same if it is the whole. An
// error says that it can't be known.
func sameBytes(ours, theirs io.Reader, whole bool) (bool, error) {
	a, b := make([]byte, 16<<10), make([]byte, 16<<10)
	for {
		n, err := io.ReadFull(ours, a)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false, err
		}
		over := err != nil
		k, err := io.ReadFull(theirs, b[:n])
		switch {
		case err != nil && err != io.EOF:
			return false, err // it was cut, and may have been the same
		case k < n || !bytes.Equal(a[:n], b[:n]):
			return false, nil
		case over && !whole:
			return true, nil
		case over:
			switch _, err := io.ReadFull(theirs, b[:1]); {
			case err == io.EOF:
				return true, nil
			case err == nil:
				return false, nil
			default:
				return false, errors.Join(errUnfit, err)
			}
		}
	}
}
