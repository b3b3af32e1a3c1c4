package node

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"

	"github.com/summarycache/summarycache/gossip/sibling"
)

// A loggingTransport logs failed requests to siblings, and refusals by a sibling. Clients get their answers from
// elsewhere, so without the log nobody would notice an expired certificate, for example, or TLS at one end only.
type loggingTransport struct {
	transport
	gone func(member string) bool // it was a member, and is none any more
	log  *slog.Logger
}

func (o loggingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.transport.RoundTrip(r)
	name := cmp.Or(sibling.PeerOf(r.Context()), r.URL.Host)
	switch {
	case err != nil && (r.Context().Err() != nil || o.gone(name)): // counted elsewhere; the log says that a member has left
	case err != nil:
		o.log.Warn("a sibling cannot be asked", "member", name, "addr", r.URL.Host, "err", err)
	case err == nil && resp.StatusCode == http.StatusForbidden &&
		strings.Contains(resp.Header.Get("Cache-Status"), "not-a-sibling"):
		o.log.Warn("a sibling refuses this peer's requests: its log says why", "member", name, "addr", r.URL.Host)
	}
	return resp, err
}
