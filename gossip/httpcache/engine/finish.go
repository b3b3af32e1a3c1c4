package engine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/internal/planted"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// A cutAnswer is an answer whose body could not be read from the store to its end: the disk
// failed, or the body passed through and did not wait for this client.
type cutAnswer struct {
	id   string
	repr representation
	of   span        // of a slice
	sums bodies.Sums // cover at least the bytes that were sent
	plan rfc9111.Part
}

// unread reports whether a body could not be read from the store, though another source may have it.
func unread(err error) bool {
	return errors.Is(err, bodies.ErrCorrupt) || errors.Is(err, bodies.ErrBehind)
}

// skips returns how many bytes of a body that was fetched again come before those of the answer's: where the answer
// is from a slice and the body is a whole, since the origin knows no ranges. It isn't ok if the body is another one.
func (cut *cutAnswer) skips(repr representation, whole bool) (n int64, ok bool) {
	if !whole || cut.of.size == 0 {
		return 0, repr.Status == cut.repr.Status && repr.same(cut.repr)
	}
	return cut.of.first, repr.Status == cut.repr.Status && repr.StrongValidator() != "" && repr.SameBytes(cut.repr.Response) &&
		(repr.length < 0 || repr.length == cut.of.size)
}

// A way is a way to fetch the rest of a cutAnswer.
type way struct{ pastStore, fromOrigin bool }

// ways are tried in this order: a fetch that stores the response, like any other; one for this
// client alone, since the disk may be bad or the client slow; and one from the origin, since siblings
// may have another version.
var ways = [...]way{{}, {pastStore: true}, {pastStore: true, fromOrigin: true}}

// finish sends the missing rest of an answer. It fetches the body again, and compares it by the
// checksums of its blocks as far as the client has it. A sibling gets no rest, since it
// finds another source itself.
func (c *Cache) finish(w io.Writer, r *request, cut cutAnswer, res *Result) {
	if planted.Fault == "bad-block-cuts" || r.cc.OnlyIfCached {
		return
	}
	behind := errors.Is(res.Err, bodies.ErrBehind)
	for _, by := range ways {
		if by.pastStore || !behind {
			if !c.finishOnce(w, r, &cut, by, res) || !unread(res.Err) && !errors.Is(res.Err, errSource) {
				return
			}
		}
	}
}

// errSource means that the source of a rest broke off.
var errSource = errors.New("cache: the rest broke off")

// A restReader notes whether reading has failed.
type restReader struct {
	io.Reader
	failed bool
}

func (s *restReader) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.failed = err != nil && err != io.EOF
	return n, err
}

// finishOnce fetches the body in one way. It reports whether the next way may help, provided that
// res.Err is still that of the store, or errSource.
func (c *Cache) finishOnce(w io.Writer, r *request, cut *cutAnswer, by way, res *Result) bool {
	r2, key := asNobody(r), cut.id
	if !rfc9111.IsSlice(cut.id) {
		r2.slice = 0
	}
	if by.pastStore {
		r2.cc.NoStore, r2.cc.NoCache, key = true, by.fromOrigin, ""
	}
	anew, joined := c.newFetch(r2, key, nil)
	defer c.leave(anew, joined)
	if !joined {
		defer anew.leave()
		c.lead(anew)
	}
	select {
	case <-anew.ready():
	case <-r.Context().Done():
		return false
	}
	var repr representation
	var body io.Reader
	var whole bool
	switch got := anew.result; {
	case got.into != nil:
		f, ok := got.into.Follow(r.Context())
		if !ok {
			return true
		}
		defer f.Close()
		repr, body, whole = got.entry.representation(got.length), f, got.entry.of.size == 0
	case got.answer != nil && !joined:
		repr, body, whole = got.answer.representation(), got.answer.body, got.answer.status == http.StatusOK
	default: // neither the result of another request's fetch nor advice about slices is of use here
		return joined || errors.Is(got.err, errSliced) || errors.Is(got.err, errUnsliced)
	}
	bySibling := anew.result.peer != ""
	before, ok := cut.skips(repr, whole)
	if !ok {
		return bySibling
	}
	source := &restReader{Reader: body}
	checked := cut.sums.Check(source, 0, math.MaxInt64)
	_, err := io.CopyN(io.Discard, source, before)
	if err == nil {
		_, err = io.CopyN(io.Discard, checked, cut.plan.Offset+res.Bytes)
	}
	if err == nil {
		left := cut.plan.Length
		if left >= 0 {
			left -= res.Bytes
		}
		var n int64
		n, err = c.copyArriving(w, checked, left, func() {})
		res.Bytes += n
	}
	if errors.Is(err, bodies.ErrDiffers) {
		return bySibling // another version, as above, though its header did not show it
	}
	if res.Err = err; err == nil {
		c.BodiesResumed.Add(1)
	} else if source.failed && !unread(err) {
		res.Err = fmt.Errorf("%w: %w", errSource, err)
	}
	if f, ok := body.(*bodies.Follower); ok && before == 0 && unread(err) && f.Sums().Len() > cut.sums.Len() {
		cut.sums = f.Sums()
	}
	return true
}
