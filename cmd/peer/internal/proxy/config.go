package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Config configures a [Handler]. Only Name and Store must be set.
type Config struct {
	engine.Config // New sets Conn, Transport, Siblings, Recode and Invalidates, and both timeouts to 60 s if they are 0

	Settings // those of the beginning

	Store diskstore.Options // unless Open is set; the cache sets Hooks

	Locator sibling.Locator // which peers may hold an object; nil = no cooperation
	Health  *sibling.Health // of the siblings; nil = one of its own

	// ClientTLS says that clients may use https: then their scheme is part of the key, as with
	// TrustedProxies.
	ClientTLS bool

	// Dial connects to origins, siblings and CONNECT targets; nil = net.Dialer. Its context
	// has the deadline.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Addresses looks up names of origins, again each 30 s; nil = Dial gets names.
	Addresses func(ctx context.Context, host string) ([]netip.Addr, error)
	// OriginTransport replaces the transport to origins that is built on Dial. It must enforce
	// the deadlines until the response header itself.
	OriginTransport http.RoundTripper
	// SiblingTransport replaces the transport to siblings that is built on Dial.
	// It must send absolute-form requests to the sibling (see http1.ToSiblings).
	SiblingTransport http.RoundTripper

	MaxIdle int // idle connections to origins that are kept open; 0 = 1,024

	// until a sibling's response header, and until ours to a Squid; 0 = 500 ms; see sibling.Config
	SiblingTimeout time.Duration
	Late           func() time.Duration // see sibling.Config; nil = never late

	// Own returns the peer's own handler of a path, for requests without a host in the request
	// line; nil = it has none. Such requests are neither counted nor observed.
	Own func(path string) http.Handler

	// Admit returns an error if a lookup request names a sibling in Via, but does not come from
	// that sibling. A name that no sibling has is no error. nil = all are answered. It is
	// called for each lookup request and must not block.
	Admit func(r *http.Request, name string) error

	// Purge invalidates targets at all peers. It returns how many responses it removed here,
	// and which peers have not done it yet. nil = a PURGE goes to the origin.
	Purge func(ctx context.Context, targets []invalidation.Target) (removed int, late []string)

	// Observe is called once for every request, after its answer; it must not block.
	Observe func(Event)
	// Tracing makes a span of each request, and of the requests to siblings and origins that
	// it causes; nil = no spans.
	Tracing *tracing.Tracer
}
