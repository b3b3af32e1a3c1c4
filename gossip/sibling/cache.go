package sibling

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"iter"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// An Object is an object in a [Store]. It must not change once it is stored.
type Object struct {
	Header  http.Header // of the response, without the fields of a connection; nil for a bare value
	Body    []byte      // whole
	Expires time.Time   // when it ceases to be fresh; zero = never
	// Copied means that the object came from a sibling, which has it as well. A Store should
	// evict it before other objects until it is requested again.
	Copied bool

	// For a response:
	response *rfc9111.Response
	arrived  time.Time
	id       string    // its identity
	believed time.Time // until when the sibling that sent it is believed; zero = it came from the origin
}

// A Store holds objects by identity, until they expire or it needs the room. It must add
// an identity to the node's [gossip.Holdings] before the object can be found here, and
// remove it after the object is gone, each once and under the lock under which the
// object is stored and removed. [Memory] is a Store. Many goroutines call its methods
// at once, while requests wait.
type Store interface {
	// Get returns the object of an identity, expired or not.
	Get(identity string) (o *Object, ok bool)
	// Put stores an object in place of the one of that identity, or does nothing.
	Put(identity string, o *Object)
	// Drop removes the object of an identity, if there is one.
	Drop(identity string)
	// Identities yields all identities that are stored when the loop over it begins, and
	// perhaps others. The loop may call Drop.
	Identities() iter.Seq[string]
}

const (
	defaultMaxBytes = 64 << 20
	maxCopied       = 7 * 24 * time.Hour // longest trust in a copy, over any number of siblings
)

// A Cache takes objects from a [Store], from siblings, or from their source, and stores what
// the last two return. It answers siblings from the Store alone. It is for programs without a
// cache that asks siblings, and for objects that fit into memory: [Cache.Get] for values of any
// kind, [Cache.Wrap] and [Cache.Serve] for HTTP handlers, [Cache.Transport] for HTTP clients.
// Make one with [NewCache]. It is safe for concurrent use, but its fields must not change then.
//
// For HTTP it is a shared cache by the rules of package rfc9111. It stores what may be stored,
// except responses with cookies, and distinguishes their variants. It serves them while they
// are fresh, also in parts and conditionally. A request that changes an object removes it
// here and at all siblings. ../rfc9111/CONFORMANCE.md lists the requirements that it meets.
//
// Concurrent requests for a value, or for the response of a handler, share one load. Those at one
// peer wait for the first of them, and that one waits for the peer that began before it
// ([Coalescer]).
//
// A copy from a sibling is used for a week at most, whatever its lifetime, also if siblings pass
// it on. Then the object is loaded again. Every program that reaches the address at which
// siblings are answered can request everything that is stored.
type Cache struct {
	Siblings *Client
	Store    Store
	MaxBytes int64 // of the longest body that is stored, or taken from a sibling; 0 = 64 MiB
	// Identity returns the identity, without a line feed, of the response to a request of a client
	// or a sibling; nil = "GET" and its URL with the host that it names. Servers of one site under
	// several host names need one without the host, or they never share. It must be the same
	// function at all siblings.
	Identity func(*http.Request) string

	name      string  // in Via and Cache-Status
	cluster   Cluster // invalidates here and at the siblings
	coalescer *Coalescer
	variants  *rfc9111.Variants // of the responses in Store
	varies    bool              // Store is a Memory, so responses that vary are stored
	flights   flights
	gate      gate
	stats     tally[CacheStats]
}

// NewCache returns a Cache over store for a member of a cluster. It has the node's name and
// asks the siblings that the node's digests name. The node must have Holdings, which store keeps
// in step. transport carries the requests to siblings; nil = NewHTTPTransport(nil).
func NewCache(node *gossip.Node, store Store, transport http.RoundTripper) (*Cache, error) {
	switch {
	case node == nil || store == nil:
		return nil, errors.New("sibling: a Cache needs a node and a store")
	case node.Holdings() == nil:
		return nil, errors.New("sibling: the node only listens: set Objects in gossip.Config")
	}
	client, err := New(Config{Name: node.Name(), Locator: node, HTTP: transport})
	if err != nil {
		return nil, err
	}
	client.cfg.Health.OnFailure = node.Doubt
	c := newCache(node.Name(), client, store)
	c.cluster = node
	c.coalescer = NewCoalescer(CoalescerConfig{
		Name: node.Name(), HTTP: client.cfg.HTTP, Health: client.cfg.Health,
		Key:        func(identity string) uint64 { return uint64(digest.KeyOfString(node.Seed(), identity)) },
		Advertised: func(identity string) bool { return len(node.Candidates(nil, identity)) > 0 },
		Others: func() (others []Peer) {
			for _, m := range node.Members() {
				if m.Alive && m.Service != "" {
					others = append(others, Peer{m.Name, m.Service})
				}
			}
			return others
		},
	})
	node.OnInvalidation(c.invalidated)
	return c, nil
}

// newCache returns a Cache without a cluster.
func newCache(name string, siblings *Client, store Store) *Cache {
	c := &Cache{name: name, Siblings: siblings, Store: store, coalescer: &Coalescer{}, variants: rfc9111.NewVariants(),
		flights: flights{of: make(map[string]*flight)}, gate: gate{seed: maphash.MakeSeed()}}
	if m, ok := store.(*Memory); ok {
		c.variants, c.varies = m.variants, true
	}
	return c
}

// A LoadFunc makes a value that is good until it expires; the zero Time = for ever.
type LoadFunc func(context.Context) (value []byte, expires time.Time, err error)

// Get returns the value of an identity, any string, from the Store, from a sibling, or from
// load. It returns load's error as it is; any other error is ctx's. The value is stored
// until it expires or the Store drops it. The caller must not change it.
//
// Get does not return what [Cache.Remove] has removed, except to callers that came before.
//
// Concurrent callers share one call of load. Its context has the values of the first caller's,
// and is canceled when no caller waits any more. load is also called if siblings that should
// have the value take far longer than usual. If it panics, so does Get.
//
// [Cache.ServeHTTP] answers the siblings. The URL of a lookup request for a value is
// "http://value.invalid/?" and the identity, escaped as in a query.
func (c *Cache) Get(ctx context.Context, identity string, load LoadFunc) ([]byte, error) {
	if c.Store == nil {
		return nil, errZero
	}
	c.count(&c.stats.n.Gets)
	if o := c.fresh(identity); o != nil {
		c.count(&c.stats.n.Hits)
		return o.Body, nil
	}
	o, err := c.flights.do(ctx, identity, c.joined, func(ctx context.Context) (*Object, error) {
		p := c.gate.enter(identity)
		if o := c.fresh(identity); o != nil { // it may have arrived meanwhile
			return o, nil
		}
		o, err := c.fetchValue(ctx, identity, load)
		if err == nil && int64(len(o.Body)) <= c.maxBytes() {
			c.put(p, identity, identity, o)
		}
		return o, err
	})
	if err != nil {
		if p, ok := err.(*panicked); ok {
			panic(p)
		}
		return nil, err
	}
	return o.Body, nil
}

func (c *Cache) joined() {
	c.count(&c.stats.n.Joined)
	c.coalescer.Joined()
}

// fetchValue gets a value from siblings, or from load.
func (c *Cache) fetchValue(ctx context.Context, identity string, load LoadFunc) (*Object, error) {
	var made atomic.Pointer[Object] // a load that was overtaken may still end
	a, body, err := c.find(ctx, LookupRequest{
		URL:        &url.URL{Scheme: "http", Host: valueHost, Path: "/", RawQuery: url.QueryEscape(identity)},
		Identities: []string{identity},
		Header:     http.Header{"Cache-Control": {"only-if-cached"}, "Via": {"1.1 " + c.name}},
		Accept:     func(a *Answer) bool { return a.StatusCode == http.StatusOK },
		Origin: func(ctx context.Context, _ http.Header) (*http.Response, error) {
			o := new(Object)
			c.count(&c.stats.n.Loads)
			err := guarded(func() (err error) {
				o.Body, o.Expires, err = load(ctx)
				return err
			})
			if err != nil {
				c.count(&c.stats.n.Errors)
			}
			made.Store(o)
			return &http.Response{Body: http.NoBody}, err
		},
	})
	switch {
	case err != nil:
		return nil, err
	case a.Peer == "":
		a.Body.Close()
		return made.Load(), nil
	}
	o, r := &Object{Body: body}, rfc9111.NewResponse(a.StatusCode, a.Header, a.Arrived.Sub(a.Requested), a.Arrived)
	if r.Explicit {
		o.Expires = a.Arrived.Add(r.Lifetime - r.InitialAge)
	}
	o.believe(a.Arrived.Add(maxCopied - r.InitialAge))
	return o, nil
}

// valueHost is the host in the URL of a value. No host has this name (RFC 6761 section 6.4).
const valueHost = "value.invalid"

// fresh returns the stored object of an identity; nil if there is none or it has expired.
func (c *Cache) fresh(identity string) *Object {
	o, ok := c.Store.Get(identity)
	switch {
	case !ok:
		return nil
	case o.Expires.IsZero() || time.Now().Before(o.Expires):
		return o
	case o.response == nil: // a value, which cannot be validated
		c.Store.Drop(identity)
	}
	return nil
}

// find asks the siblings for an object, and then r.Origin unless it is nil. It reads a sibling's
// answer to the end, and asks the next one if the body breaks off or is too long. The caller must
// read the body of the origin's answer. Without an origin, find returns nil if no sibling has the
// object. An error is the origin's or ctx's.
func (c *Cache) find(ctx context.Context, r LookupRequest) (*Answer, []byte, error) {
	identity, accept := r.Identities[0], r.Accept
	named := NameInvalidations(r.Header, c.cluster, identity)
	if !named {
		r.Identities = nil
	}
	r.Accept = func(a *Answer) bool { return a.ContentLength <= c.maxBytes() && accept(a) }
	if named {
		r.InFlight = func(ctx context.Context, fetch time.Duration) (Peer, bool) {
			return c.coalescer.InFlight(ctx, identity, fetch)
		}
	}
	lookup := c.Siblings.Lookup(r)
	for { // ends: each round uses up a sibling, or returns
		a, err := lookup.Next(ctx, nil)
		if a == nil || err != nil || a.Peer == "" {
			return a, nil, err
		}
		body, err := io.ReadAll(io.LimitReader(a.Body, c.maxBytes()+1))
		if err != nil {
			lookup.Broken(a)
			continue
		}
		a.Body.Close()
		if int64(len(body)) <= c.maxBytes() {
			c.count(&c.stats.n.Siblings)
			return a, body, nil
		}
	}
}

func (c *Cache) maxBytes() int64 { return cmp.Or(max(c.MaxBytes, 0), defaultMaxBytes) }
