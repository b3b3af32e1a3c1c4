package cache

import (
	"errors"
	"io"

	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A cutAnswer is one whose body the disk failed to give back in the middle.
type cutAnswer struct {
	id   string
	repr representation
	sums store.Sums // reach past what was sent
	plan rfc9111.Part
}

// finishStored is finish for a stored body.
func (c *Cache) finishStored(w io.Writer, r *request, f *found, v *store.View, p rfc9111.Part, res *Result) {
	if errors.Is(res.Err, store.ErrCorrupt) {
		c.finish(w, r, cutAnswer{f.obj.Key(), f.entry.representation(f.obj.Size()), v.Sums(), p}, res)
	}
}

// finish sends what is missing of an answer whose body on disk, stored or being
// received, turned out to be unreadable: it is fetched anew, and must be the same as
// far as the client has it, by the sums of its blocks. What is fetched may pass over
// the same bad disk, or come from a sibling that has another version: then it is
// fetched once more, from the origin and past the disk. A sibling that asked is left
// to find the rest itself.
func (c *Cache) finish(w io.Writer, r *request, cut cutAnswer, res *Result) {
	for _, pastDisk := range []bool{false, true} {
		if r.cc.OnlyIfCached || !errors.Is(res.Err, store.ErrCorrupt) || !c.finishOnce(w, r, &cut, pastDisk, res) {
			return
		}
	}
}

// finishOnce fetches the body once. It reports whether another time may help where
// res.Err is what it was.
func (c *Cache) finishOnce(w io.Writer, r *request, cut *cutAnswer, pastDisk bool, res *Result) bool {
	r2, key := unattended(r), cut.id
	if pastDisk {
		r2.cc.NoStore, r2.cc.NoCache, key = true, true, ""
	}
	anew, joined := c.newFetch(r2, key, nil, "miss")
	defer anew.waiters.leave(joined)
	if !joined {
		defer anew.leave()
		c.lead(anew)
	}
	select {
	case <-anew.ready:
	case <-r.Context().Done():
		return false
	}
	var repr representation
	var body io.Reader
	switch got := anew.result; {
	case got.into != nil:
		f, ok := got.into.Follow(r.Context())
		if !ok {
			return true
		}
		defer f.Close()
		repr, body = got.entry.representation(got.length), f
	case got.answer != nil && !joined:
		repr, body = got.answer.representation(), got.answer.body
	default:
		return joined // what another request asked for is of no use here
	}
	if repr.Status != cut.repr.Status || !repr.same(cut.repr) {
		return anew.result.peer != "" // a sibling has another version; the origin may have this one
	}
	checked := cut.sums.Check(body)
	_, err := io.CopyN(io.Discard, checked, cut.plan.Offset+res.Bytes)
	if err == nil {
		rest := cut.plan.Length
		if rest >= 0 {
			rest -= res.Bytes
		}
		var n int64
		n, err = copyArriving(w, checked, rest, func() {})
		res.Bytes += n
	}
	if errors.Is(err, store.ErrDiffers) && anew.result.peer != "" {
		return true // as above, but nothing in its header said so
	}
	if res.Err = err; err == nil {
		c.BodiesResumed.Add(1)
	}
	if f, ok := body.(*store.Follower); ok && errors.Is(err, store.ErrCorrupt) && f.Sums().Len() > cut.sums.Len() {
		cut.sums = f.Sums()
	}
	return true
}
