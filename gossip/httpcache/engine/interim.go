package engine

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// maxInterim limits the 1xx responses (RFC 9110 section 15.2) that a client gets for a request.
const maxInterim = 8

// interims passes 1xx responses of the origin to the client that waits for its answer.
// They are never stored.
type interims struct {
	trace httptrace.ClientTrace // without a hook, they are not passed on

	mu   sync.Mutex
	to   http.ResponseWriter // nil = the client no longer waits
	sent int
}

// begin passes 1xx responses to the client of r until end is called.
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

// context returns a context for requests whose 1xx responses are passed on.
func (is *interims) context(ctx context.Context) context.Context {
	if is.trace.Got1xxResponse == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &is.trace)
}

// pass sends a 1xx response, other than 100 and 101, and preserves the header of the final answer.
func (is *interims) pass(code int, fields textproto.MIMEHeader) error {
	is.mu.Lock()
	defer is.mu.Unlock()
	if is.to == nil || code <= 101 || code > 199 || is.sent == maxInterim {
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
