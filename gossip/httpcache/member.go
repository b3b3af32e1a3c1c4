package httpcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/http1"
	"github.com/summarycache/summarycache/gossip/httpcache/bodies"
	"github.com/summarycache/summarycache/gossip/httpcache/engine"
	"github.com/summarycache/summarycache/gossip/invalidation"
	"github.com/summarycache/summarycache/gossip/peering"
	"github.com/summarycache/summarycache/gossip/rfc9111"
	"github.com/summarycache/summarycache/gossip/sibling"
)

const (
	memberMaxAge  = 7 * 24 * time.Hour // longest trust in a sibling's answer, over any number of siblings
	memberTimeout = time.Minute        // in which an origin reads something of a request, or sends something of a body
)

// MemberConfig says what a [Member] works with.
type MemberConfig struct {
	// Node must have Holdings, which the Member keeps in step, and a Service, where nothing else answers. It has one
	// Member for life.
	Node *gossip.Node
	// Open opens the store: [memstore.Open] or [diskstore.Options.Open]. The bound of the store is the
	// cache's; a body may take a quarter of it.
	Open      func(bodies.Hooks) (bodies.Store, error)
	Transport http.RoundTripper // carries requests to siblings; nil = a client of this module for HTTP/1.1
	// URL returns the absolute URL under which the response to a request of a client or a sibling is
	// stored; nil = its own, with the host that it names. Servers of one site under several host names
	// need one that replaces the host, or they never share. It must be the same function at all
	// members, and return the URLs that it returned unchanged.
	URL    func(*http.Request) *url.URL
	Logger *slog.Logger // nil = discard
}

// A Member is the cache of a program that is a member of a cluster. It takes what it is asked for from
// its store, from a sibling or from its source, and stores what the last two return: for HTTP handlers
// ([Member.Wrap], [Member.Serve]), for HTTP clients ([Member.Transport]), and for values of any kind
// ([Member.Get], [Member.Open]). It answers siblings from the store. Make one with [NewMember]. It is safe
// for concurrent use.
//
// For HTTP it is a shared cache by the rules of package rfc9111, with all that the package comment
// says; but a response that sets a cookie is for one client, whatever its origin says, and is not stored.
// A request that changes an object removes it here and at all siblings.
//
// What a sibling gave is used for a week at most, whatever its lifetime, also if siblings pass
// it on. Every program that reaches the address at which siblings are answered can request everything
// that is stored.
type Member struct {
	Siblings *sibling.Client // asks the siblings that the node's digests name
	Health   *sibling.Health // how these behave

	engine    *engine.Cache
	url       func(*http.Request) *url.URL
	log       *slog.Logger
	cluster   sibling.Cluster
	coalescer peering.Coalescer

	outcomes          [engine.Outcomes]atomic.Uint64 // of clients' requests
	lookups, answered atomic.Uint64                  // of siblings
	removals          atomic.Uint64
}

// NewMember opens the store and returns a Member.
func NewMember(cfg MemberConfig) (*Member, error) {
	node := cfg.Node
	switch {
	case node == nil || cfg.Open == nil:
		return nil, errors.New("cache: a Member needs a node and a store")
	case node.Holdings() == nil:
		return nil, errors.New("cache: the node only listens: set Objects in gossip.Config")
	case node.Holdings().Keys().Geometry().Profile != digest.HTTP:
		return nil, fmt.Errorf("cache: the identities of a Member's objects are methods and URLs, and the node's "+
			"profile is %v: set Profile: digest.HTTP in gossip.Config",
			node.Holdings().Keys().Geometry().Profile)
	}
	transport := cfg.Transport
	if transport == nil {
		transport = http1.ToSiblings(nil)
	}
	health := new(sibling.Health)
	client, err := sibling.New(sibling.Config{Name: node.Name(), Locator: node, HTTP: transport, Health: health})
	if err != nil {
		return nil, err
	}
	others := func() (list []sibling.Peer) {
		for _, m := range node.Members() {
			if m.Alive && m.Service != "" {
				list = append(list, sibling.Peer{Name: m.Name, Addr: m.Service})
			}
		}
		return list
	}
	coalescer := sibling.NewCoalescer(peering.CoalescerConfig{
		Name: node.Name(), HTTP: transport, Others: others,
		Key: func(identity string) uint64 { return uint64(digest.KeyOfString(node.Seed(), identity)) },
	}, health)
	held, m := node.Holdings(), (*Member)(nil)
	if err := node.Inside().Claim(func() (err error) {
		m, err = newMember(cfg, engine.Config{Name: node.Name(), Siblings: client, Coalescer: coalescer, Cluster: node, Others: others,
			Advertise: held.Retain, Withdraw: func(identity string) { held.Release(identity) }})
		return err
	}); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	m.coalescer, m.Health = coalescer, health
	node.OnInvalidation(func(t invalidation.Target) {
		m.removals.Add(1)
		m.engine.Invalidated(t)
	})
	return m, nil
}

// newMember returns a Member with these connections to a cluster.
func newMember(cfg MemberConfig, of engine.Config) (m *Member, err error) {
	m = &Member{Siblings: of.Siblings, cluster: of.Cluster, url: cfg.URL, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}
	of.Transport, of.Open, of.Logger, of.Source = bySource{m}, cfg.Open, m.log, ofSource
	of.SiblingMaxAge, of.SendTimeout, of.BetweenBytesTimeout = memberMaxAge, memberTimeout, memberTimeout
	m.engine, err = engine.New(of)
	return m, err
}

// made returns m, and panics if NewMember has not made it.
func (m *Member) made() *Member {
	if m == nil || m.engine == nil {
		panic("cache: this Member is nil or the zero value: make one with NewMember")
	}
	return m
}

// Close ends loads under way and closes the store. The node must be closed before.
func (m *Member) Close() error {
	m.made().Siblings.CloseIdleConnections()
	return m.engine.Close()
}

// Advertised yields the identities of everything that siblings may request from the store, each at least once, for
// [gossip.Holdings.Reseed].
func (m *Member) Advertised() iter.Seq[string] { return m.made().engine.Advertised() }

// Purge removes what t selects from this member's store alone, or makes it stale if t is soft. It returns how many
// responses and values these were. Siblings keep theirs: see [Member.Invalidate].
func (m *Member) Purge(t invalidation.Target) int { return m.made().engine.Purge(t) }

// MemberStats counts the requests to a [Member]. All counters start at 0 and only grow. Requests to
// siblings are counted by [sibling.Client.Stats].
type MemberStats struct {
	Gets     uint64 // calls of Get and Open, and requests of clients
	Hits     uint64 // of those, answered from the store
	Joined   uint64 // of those, that joined the load of another
	Siblings uint64 // of those, answered by a sibling
	Loads    uint64 // calls of load functions, of handlers and of origins, but not for what is never stored
	Errors   uint64 // of those, failed

	Lookups       uint64 // requests of siblings
	Answered      uint64 // of those, with an object
	Invalidations uint64 // by this member and by others
}

// Stats returns the current counters.
func (m *Member) Stats() (s MemberStats) {
	for i := range m.made().outcomes {
		s.Gets += m.outcomes[i].Load()
	}
	s.Hits, s.Joined, s.Siblings = m.outcomes[engine.LocalHit].Load(), m.outcomes[engine.Collapsed].Load(), m.outcomes[engine.SiblingHit].Load()
	s.Loads, s.Errors = m.engine.OriginRequests.Load(), m.engine.OriginErrors.Load()
	s.Lookups, s.Answered, s.Invalidations = m.lookups.Load(), m.answered.Load(), m.removals.Load()
	return s
}

// A source is where a request of a client gets what is neither here nor at a sibling. It travels in the
// context of the request.
type source struct {
	http.RoundTripper
	of     *http.Request // the client's; nil = one of this package
	wanted bool          // a fetch ends when no client waits for it any more
	within *source       // whose handler or load asks this one; nil = none's
	loading
}

// A loading is the load of a value by a member, while it runs.
type loading struct {
	by    *Member
	name  string
	ended atomic.Bool
}

type sourceKey struct{}

func sourceOf(ctx context.Context) *source {
	s, _ := ctx.Value(sourceKey{}).(*source)
	return s
}

// ofSource returns what the cache must know of a request's source: whether it is in this process, that is, a handler
// or a function, and whether the fetch ends when no client waits for it any more.
func ofSource(ctx context.Context) (local, wanted bool) {
	s := sourceOf(ctx)
	if s == nil {
		return false, false
	}
	_, handler := s.RoundTripper.(handled)
	return handler || s.wanted, s.wanted
}

// bySource asks the source of each request.
type bySource struct{ *Member }

var errNoSource = errors.New("cache: a request without a source")

// RoundTrip implements [http.RoundTripper].
func (o bySource) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	from := sourceOf(r.Context())
	if from == nil {
		return nil, errNoSource
	}
	out := r
	if of := from.of; of != nil {
		own := *r
		out = &own
		out.URL, out.Host, out.RequestURI = of.URL, of.Host, of.RequestURI
		if _, stated := of.Header["User-Agent"]; !stated { // the cache has kept net/http from adding one
			delete(out.Header, "User-Agent")
		}
	}
	ended := make(chan error, 1)
	go engine.Guard(func() error {
		resp, err = from.RoundTripper.RoundTrip(out)
		return err
	}, func(err error) { ended <- err })
	if err = <-ended; err != nil {
		if p := (*engine.Panicked)(nil); errors.As(err, &p) && p.Value != http.ErrAbortHandler {
			o.log.Error("a handler or a load panicked", "url", r.URL.String(), "panic", p)
		}
		return nil, err
	}
	delete(resp.Header, rfc9111.ClusterControl)
	if resp.Header["Set-Cookie"] != nil {
		resp.Header[rfc9111.ClusterControl] = []string{"no-store"}
	}
	return resp, nil
}
