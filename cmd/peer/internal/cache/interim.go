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

// maxInterim is how many 1xx responses (RFC 9110 section 15.2) a client gets, however many
// an origin sends.
const maxInterim = 8

// interims passes 1xx responses of the origin on to the client that waits for its answer.
// They are never stored.
type interims struct {
	trace httptrace.ClientTrace // without a hook, nobody wants them

	mu   sync.Mutex
	to   http.ResponseWriter // nil = the client no longer waits
	sent int
}

// begin has them sent to the client of r, from requests that follow, until end.
func (is *interims) begin(w http.ResponseWriter, r *http.Request) {
	if r.ProtoAtLeast(1, 1) { // older clients know no such responses
		is.to, is.trace.Got1xxResponse = w, is.pass
	}
}

// end returns when nothing more is written to the client.
func (is *interims) end() {
	is.mu.Lock()
	is.to = nil
	is.mu.Unlock()
}

// context has the 1xx responses passed on that requests under the returned context get.
func (is *interims) context(ctx context.Context) context.Context {
	if is.trace.Got1xxResponse == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &is.trace)
}

// pass sends one, other than 100 and 101, and leaves what the final answer's header has so far.
func (is *interims) pass(code int, fields textproto.MIMEHeader) error {
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.to == nil || code <= 101 || is.sent == maxInterim {
		return nil
	}
	is.sent++
	h := is.to.Header()
	final := maps.Clone(h)
	clear(h)
	maps.Copy(h, fields)
	rfc9111.RemoveHopByHop(h)
	is.to.WriteHeader(code)
	clear(h)
	maps.Copy(h, final)
	return nil
}
