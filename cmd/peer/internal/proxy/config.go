package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/cmd/peer/internal/cache"
	"github.com/summarycache/summarycache/cmd/peer/internal/rules"
	"github.com/summarycache/summarycache/cmd/peer/internal/store"
	"github.com/summarycache/summarycache/cmd/peer/internal/tracing"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// Config says what a [Handler] does. The zero value of every field but Name and
// Store is usable.
type Config struct {
	Name    string          // this cache in Cache-Status and Via: a token (RFC 9110 section 5.6.2), unique in the cluster
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

	// Coalescer knows which peer fetches what this cache is about to; nil = none does.
	Coalescer cache.Coalescer
	// Cluster is told of what a write makes out of date; nil = this cache is alone.
	Cluster sibling.Cluster

	// Others are the siblings that live, asked for stale responses while an origin is down;
	// nil = none are.
	Others func() []sibling.Peer

	Store store.Options // where and how much to keep; Hooks, Decode and Now are set by the Handler

	// Advertise and Withdraw are told the identities of what siblings may ask for (see
	// cache.Config), those found in the store included, before New returns; nil =
	// nothing is advertised.
	Advertise, Withdraw func(identity string)

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
	// CONNECT target alike; from the end of a request to the header of its answer; for a
	// pause within the body; for a pause in which the origin takes nothing of a request.
	ConnectTimeout, FirstByteTimeout, BetweenBytesTimeout, SendTimeout time.Duration

	MaxIdle int // connections to origins that are kept open for later; 0 = 1,024

	SiblingTimeout time.Duration        // to a sibling's response header, and to ours for a Squid; 0 = 500 ms; see sibling.Config
	Late           func() time.Duration // by how much this process runs late, see sibling.Config; nil = it does not
	SiblingMaxAge  time.Duration        // for which what a sibling gave is served without the origin's word; 0 = while it is fresh
	Compare        int                  // one in so many siblings' answers is compared with the origin's; 0 = none

	Now func() time.Time // the wall clock, which may jump; nil = time.Now

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
	Logger  *slog.Logger // nil = discard
}
