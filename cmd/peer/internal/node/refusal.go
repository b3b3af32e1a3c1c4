package node

import (
	"cmp"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/limitlog"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A loggingTransport logs why a request to a sibling failed, that a sibling refuses this
// peer's requests, and that its answers are stale only by this peer's clock. Clients get
// their answers from elsewhere, so that nobody would notice, for example, a certificate that has
// run out, or TLS at one end only.
type loggingTransport struct {
	transport
	limited *limitlog.Logger
	looked  *atomic.Int64 // Unix second in which an answer's clock was last looked at
}

func newLoggingTransport(t transport, limited *limitlog.Logger) loggingTransport {
	return loggingTransport{t, limited, new(atomic.Int64)}
}

func (o loggingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.transport.RoundTrip(r)
	name := cmp.Or(sibling.PeerOf(r.Context()), r.URL.Host)
	switch {
	case err != nil && r.Context().Err() == nil: // and not for want of patience, which is counted
		o.limited.Warn("ask "+name, "a sibling cannot be asked", "member", name, "addr", r.URL.Host, "err", err)
	case err == nil && resp.StatusCode == http.StatusForbidden && strings.Contains(resp.Header.Get("Cache-Status"), "not-a-sibling"):
		o.limited.Warn("ask "+name, "a sibling refuses this peer's questions: its log says why", "member", name, "addr", r.URL.Host)
	case err == nil:
		// An answer a second is enough for clocks, and dates are slow to parse.
		now := time.Now()
		if o.looked.Swap(now.Unix()) == now.Unix() {
			break
		}
		if by := aheadBy(resp.Header, now); by >= aheadAtLeast {
			o.limited.Warn("clock", "this machine's clock is ahead of a sibling's: objects go stale too early here", "member", name, "by", by)
		}
	}
	return resp, err
}
