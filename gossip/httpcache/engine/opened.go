package engine

import (
	"io"
	"maps"
	"net/http"
	"sync/atomic"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// An opened answer is the origin's to a request for a whole that is to be kept in slices. The fetch becomes one of the first
// slice, and reads that from it, while the second slice is requested. The answer stays open until that is found to fit: if it does not,
// since the origin's servers disagree about the version, the client gets all of it.
type opened struct {
	*answer
	users atomic.Int32 // the request that has it, and the fetch that reads it
	at    int64        // bytes read
}

func newOpened(a *answer) *opened {
	o := &opened{answer: a}
	o.users.Store(1)
	return o
}

// release closes the answer after its last user.
func (o *opened) release() {
	if o != nil && o.users.Add(-1) == 0 {
		o.close()
	}
}

func (o *opened) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	o.at += int64(n)
	return n, err
}

// left reports whether the answer can be read from byte o.at on, by the request that has it.
func (o *opened) left() bool { return o != nil && o.at == min(o.length, SliceSize) }

// firstSlice returns the answer as one to a request for the first slice.
func (o *opened) firstSlice() *answer {
	o.users.Add(1)
	a, n := *o.answer, min(o.length, SliceSize)
	a.header = maps.Clone(o.header)
	a.header["Content-Range"] = []string{rfc9111.FormatContentRange(0, n, o.length)}
	a.status, a.length, a.described = http.StatusPartialContent, n, nil
	a.body = closing{io.LimitReader(o, n), onClose(o.release)}
	a.cancel = func(cause error) {
		if cause != nil {
			o.cancel(cause)
		}
	}
	return &a
}

// onClose is called by Close.
type onClose func()

func (f onClose) Close() error { f(); return nil }
