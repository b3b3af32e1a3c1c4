package cache

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// interim is a 1xx response on its way to the client (RFC 9110 section 15.2).
// It is never stored.
type interim struct {
	status int
	header http.Header
}

// interims are those that wait for a client.
type interims struct {
	more  chan struct{} // has something when there are, or when there is what comes after them
	mu    sync.Mutex
	queue []interim
	trace httptrace.ClientTrace // without a hook, nobody wants them
}

// maxInterim is how many of them wait for the client; a few are passed on of
// however many an origin sends.
const maxInterim = 8

// want is to be called before anything is asked, if a client wants them.
func (is *interims) want() {
	is.trace.Got1xxResponse = is.note
}

// noted makes requests under the returned context note the 1xx responses that they get,
// other than 100 and 101.
func (is *interims) noted(ctx context.Context) context.Context {
	if is.trace.Got1xxResponse == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &is.trace)
}

func (is *interims) note(code int, h textproto.MIMEHeader) error {
	is.mu.Lock()
	defer is.mu.Unlock()
	if code > 101 && len(is.queue) < maxInterim {
		header := http.Header(h).Clone()
		rfc9111.RemoveHopByHop(header)
		is.queue = append(is.queue, interim{code, header})
		is.signal()
	}
	return nil
}

func (is *interims) signal() {
	select {
	case is.more <- struct{}{}:
	default:
	}
}

// write sends i, unless the client can't know such responses.
func (i interim) write(w http.ResponseWriter, r *http.Request) {
	if !r.ProtoAtLeast(1, 1) {
		return
	}
	h := w.Header()
	final := maps.Clone(h)
	clear(h)
	maps.Copy(h, i.header)
	w.WriteHeader(i.status)
	clear(h)
	maps.Copy(h, final)
}

// write sends what waits.
func (is *interims) write(w http.ResponseWriter, r *http.Request) {
	is.mu.Lock()
	queue := is.queue
	is.queue = nil
	is.mu.Unlock()
	for _, i := range queue {
		i.write(w, r)
	}
}
