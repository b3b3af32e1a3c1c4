package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Config says what a [Handler] does. The zero value of every field but Name and
// Store is usable.
type Config struct {
	cache.Config // New sets Transport, Siblings, Recode and Invalidates, and both timeouts to 60 s if they are 0

	Origin  *url.URL        // reverse proxy for this origin (scheme, host and an optional path prefix), whatever host clients name
	Sites   []Site          // or for these; without both it is a forward proxy
	Locator sibling.Locator // which peers may hold an object; nil = no cooperation
	Health  *sibling.Health // of the siblings; nil = one of its own

	// TrustedProxies are the networks of proxies before a reverse proxy that are believed
	// when they say for whom they ask. ClientTLS says that clients may come by https. With
	// either the scheme by which a client asked is in the key.
	TrustedProxies []netip.Prefix
	ClientTLS      bool

	// Rules say what is kept beyond what origins say. Without one that says otherwise no
	// response with a Set-Cookie is.
	Rules rules.Set

	// Dial connects to origins, siblings and CONNECT targets, within the time that its
	// context has; nil = net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// OriginTransport replaces the transport to origins that is built on Dial, and sees to
	// the deadlines until the answer's header.
	OriginTransport http.RoundTripper
	// SiblingTransport replaces the transport to siblings that is built on Dial.
	// It must send absolute-form requests to the sibling (see sibling.NewHTTPTransport).
	SiblingTransport http.RoundTripper

	// Deadlines to origins, each 0 = 60 s: for a connection, TLS included, and of a
	// CONNECT target alike; from the end of a request to the header of its answer.
	ConnectTimeout, FirstByteTimeout time.Duration

	MaxIdle int // connections to origins that are kept open for later; 0 = 1,024

	SiblingTimeout time.Duration        // to a sibling's response header, and to ours for a Squid; 0 = 500 ms; see sibling.Config
	Late           func() time.Duration // by how much this process runs late, see sibling.Config; nil = it does not

	// Own are the paths at which the peer answers for itself, if a request names no
	// host. Such requests are neither counted nor observed.
	Own map[string]http.Handler

	// Admit says why a question of a cache that calls itself by a name, in Via, is
	// not to be answered, because that is a sibling's and it is not that sibling;
	// nil error = it is, or no sibling has that name. nil = all are answered. It is
	// called for each question and must not block.
	Admit func(r *http.Request, name string) error

	AllowClient  func(remote string) bool     // who may use a forward proxy, by the address and port of the connection; nil = everybody
	AllowConnect func(host, port string) bool // which CONNECT targets a forward proxy tunnels to; nil = all

	// Purge has all peers apply targets, and returns how many responses were concerned
	// here, and which peers have not done it yet. nil = a PURGE goes to the origin.
	Purge func(ctx context.Context, targets []invalidation.Target) (removed int, late []string)
	// PurgeClients are those whose PURGE is carried out; none = this machine's.
	PurgeClients []netip.Prefix

	// Observe is called once for every request, after its answer; it must not block.
	Observe func(Event)
	// Tracing makes a span of each request and of what is asked for its sake; nil =
	// none.
	Tracing *tracing.Tracer
}
