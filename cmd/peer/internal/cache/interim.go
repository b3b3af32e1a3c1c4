package cache

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/textproto"

	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// interim is a 1xx response on its way to the client (RFC 9110 section 15.2).
// It is never stored.
type interim struct {
	status int
	header http.Header
}

// maxInterim is how many of them wait for the client; a few are passed on of
// however many an origin sends.
const maxInterim = 8

// traceInterim makes requests under the returned context send the 1xx responses
// that they get, other than 100 and 101, to ch, as far as there is room.
func traceInterim(ctx context.Context, ch chan<- interim) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code > 101 {
				header := http.Header(h).Clone()
				rfc9111.RemoveHopByHop(header)
				select {
				case ch <- interim{code, header}:
				default:
				}
			}
			return nil
		},
	})
}

// write sends i, unless the client can't know such responses.
func (i interim) write(w http.ResponseWriter, r *http.Request) {
	if !r.ProtoAtLeast(1, 1) {
		return
	}
	h := w.Header()
	for name, lines := range i.header {
		h[name] = lines
	}
	w.WriteHeader(i.status)
	clear(h)
}

// drain sends what waits in ch, which nobody sends to any more.
func drain(ch <-chan interim, w http.ResponseWriter, r *http.Request) {
	for {
		select {
		case i := <-ch:
			i.write(w, r)
		default:
			return
		}
	}
}
