package node

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/proxy"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A loggingTransport logs failed requests to siblings, refusals by a sibling, and answers that
// show that this peer's clock is ahead. Clients get their answers from elsewhere, so without
// the log nobody would notice an expired certificate, for example, or TLS at one end only.
type loggingTransport struct {
	transport
	log    *slog.Logger
	looked *atomic.Int64 // Unix second in which the clock was last compared with an answer's
}

func newLoggingTransport(t transport, log *slog.Logger) loggingTransport {
	return loggingTransport{t, log, new(atomic.Int64)}
}

func (o loggingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.transport.RoundTrip(r)
	name := cmp.Or(sibling.PeerOf(r.Context()), r.URL.Host)
	switch {
	case err != nil && r.Context().Err() == nil: // requests that were given up are counted elsewhere
		o.log.Warn("a sibling cannot be asked", "member", name, "addr", r.URL.Host, "err", err)
	case err == nil && resp.StatusCode == http.StatusForbidden &&
		strings.Contains(resp.Header.Get("Cache-Status"), "not-a-sibling"):
		o.log.Warn("a sibling refuses this peer's requests: its log says why", "member", name, "addr", r.URL.Host)
	case err == nil && resp.Header["Age"] != nil: // of its store
		// One answer a second is enough, and dates are slow to parse.
		now := time.Now()
		if o.looked.Swap(now.Unix()) == now.Unix() {
			break
		}
		if by := proxy.AheadBy(resp.Header, now); by >= proxy.AheadAtLeast {
			o.log.Warn("this machine's clock is ahead of a sibling's: objects go stale too early here", "member",
				name, "by", by)
		}
	}
	return resp, err
}
