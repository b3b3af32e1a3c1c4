package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/httpcache"
	"github.com/summarycache/summarycache/gossip/httpcache/diskstore"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Config configures a [Handler]. Only Name and Store must be set.
type Config struct {
	httpcache.Config // New sets Conn, Transport, Siblings, Recode and Invalidates, and both timeouts to 60 s if they are 0

	Store diskstore.Options // unless Open is set; the cache sets Hooks

	Origin *url.URL // reverse proxy for this origin (scheme, host and an optional path prefix), whatever host clients name
	// PreserveHost sends clients' Host to Origin, and makes it part of the key, as with a Site.
	PreserveHost bool
	Sites        []Site          // or a reverse proxy for these; without Origin and Sites, a forward proxy
	Locator      sibling.Locator // which peers may hold an object; nil = no cooperation
	Health       *sibling.Health // of the siblings; nil = one of its own

	// TrustedProxies are the networks of the proxies in front of a reverse proxy whose forwarding
	// fields are trusted. ClientTLS says that clients may use https. With either, the client's
	// scheme is part of the key.
	TrustedProxies []netip.Prefix
	ClientTLS      bool

	// Rules are the operator's caching rules. Unless one of them allows it, no response with
	// a Set-Cookie is stored.
	Rules rules.Set

	// MaxHeader limits the URL and the fields of a client's request, in bytes; 0 = 16 KiB. A longer
	// one is answered 431: origins differ in what they take, and answer the rest with errors.
	MaxHeader int
	// PassFields are request fields that origins get although they may take them for something that
	// is not in the key (see [canonical.Fields]).
	PassFields []string

	// Dial connects to origins, siblings and CONNECT targets; nil = net.Dialer. Its context
	// has the deadline.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// OriginTransport replaces the transport to origins that is built on Dial. It must enforce
	// the deadlines until the response header itself.
	OriginTransport http.RoundTripper
	// SiblingTransport replaces the transport to siblings that is built on Dial.
	// It must send absolute-form requests to the sibling (see sibling.NewHTTPTransport).
	SiblingTransport http.RoundTripper

	// Deadlines for origins, each 0 = 60 s. ConnectTimeout is for a connection, TLS included,
	// also to a CONNECT target. FirstByteTimeout is from the end of a request to the header of
	// its response.
	ConnectTimeout, FirstByteTimeout time.Duration

	MaxIdle int // idle connections to origins that are kept open; 0 = 1,024

	SiblingTimeout time.Duration        // until a sibling's response header, and until ours to a Squid; 0 = 500 ms; see sibling.Config
	Late           func() time.Duration // see sibling.Config; nil = never late

	// Own are handlers of the peer itself, by path, for requests without a host in the request
	// line. Such requests are neither counted nor observed.
	Own map[string]http.Handler

	// Admit returns an error if a lookup request names a sibling in Via, but does not come from
	// that sibling. A name that no sibling has is no error. nil = all are answered. It is
	// called for each lookup request and must not block.
	Admit func(r *http.Request, name string) error

	AllowClient  func(remote string) bool     // who may use a forward proxy, by the address and port of the connection; nil = everybody
	AllowConnect func(host, port string) bool // which CONNECT targets a forward proxy tunnels to; nil = all

	// Purge invalidates targets at all peers. It returns how many responses it removed here,
	// and which peers have not done it yet. nil = a PURGE goes to the origin.
	Purge func(ctx context.Context, targets []invalidation.Target) (removed int, late []string)
	// PurgeClients are the networks from which a PURGE is carried out; none = this machine.
	PurgeClients []netip.Prefix

	// Observe is called once for every request, after its answer; it must not block.
	Observe func(Event)
	// Tracing makes a span of each request, and of the requests to siblings and origins that
	// it causes; nil = no spans.
	Tracing *tracing.Tracer
}
