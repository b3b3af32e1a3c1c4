package sibling

import (
	"context"
	"errors"
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

// An Object is what a [Store] keeps. Nothing in it may change once it is stored.
type Object struct {
	Header  http.Header // of the response, without what concerns a connection; nil for a bare value
	Body    []byte      // whole
	Expires time.Time   // when it ceases to be fresh; zero = never
	// Copied says that a sibling gave it, and has it too. A Store does well to let it go
	// before others, until it is asked for again.
	Copied bool

	// Of a response: what the rules know of it, when it arrived, and its identity.
	response *rfc9111.Response
	arrived  time.Time
	id       string
	believed time.Time // until when siblings' word for it is; zero = it is the origin's
}

// A Store keeps objects by identity, until they expire or it needs the room. It adds
// an identity to the node's [gossip.Holdings] before the object can be found here, and
// removes it after the object is gone, each once and under the lock under which the
// object comes and goes. [Memory] is one. Its methods are called from many goroutines
// at once, on the way of a request.
type Store interface {
	// Get returns the object of an identity, expired or not.
	Get(identity string) (o *Object, ok bool)
	// Put keeps an object, in the place of the one of that identity, or does not.
	Put(identity string, o *Object)
	// Drop forgets the object of an identity, if there is one.
	Drop(identity string)
	// Identities yields all of those that are there when the loop over it begins, and
	// perhaps others. The loop may call Drop.
	Identities() iter.Seq[string]
}

const (
	defaultMaxBytes = 64 << 20
	maxCopied       = 7 * 24 * time.Hour // for which siblings are believed, however many pass an object on
)

// A Cache answers from a [Store], from siblings, or by whatever makes the objects, and
// keeps what the last two give; its siblings' questions it answers from the Store
// alone. It is for programs without a cache that asks others, and for objects that
// fit into memory: [Cache.Get] for values of any kind, [Cache.Wrap] and [Cache.Serve]
// for HTTP handlers, [Cache.Transport] for HTTP clients. Make one with [NewCache]. It is
// safe for concurrent use; its fields must not change meanwhile.
//
// Of HTTP it is a shared cache by the rules of package rfc9111: it stores what may be
// stored without a cookie, under all that it varies by, serves it while it is fresh, in
// parts and on conditions too, and removes it, here and at all siblings, after a request
// that changes it. Which requirements it meets is in ../rfc9111/CONFORMANCE.md.
//
// Values, and answers of a handler, that are asked for by many at once are made once:
// those at one peer wait for the first of them, and that one for the peer which is ahead
// of it ([Coalescer]).
//
// What a sibling answers is believed for a week, whatever lifetime it states, also where
// others pass it on; then the object is made anew, or fetched whole. Every program that
// reaches the address where siblings are answered can ask for all that is kept.
type Cache struct {
	Name     string  // in Via and Cache-Status: see CheckName; "" = that of Siblings
	Siblings *Client // nil = there are none
	// Store keeps the objects. Responses that vary are stored in a [Memory] only, of
	// NewMemory, which knows their Vary fields.
	Store Store
	// Coalescer finds the sibling that is making an object already; nil = each peer
	// makes its own.
	Coalescer *Coalescer
	MaxBytes  int64 // longest body that is kept, or taken from a sibling; 0 = 64 MiB
	// Identity is the name, without a line feed, under which the response to a request, or
	// to a sibling's question, is stored and found; nil = "GET" and its URL with the host
	// that it names. Servers of one site under several host names need one without the host,
	// or they never share. It must be the same function at all siblings.
	Identity func(*http.Request) string

	node     *gossip.Node // nil = there is none
	alone    Client       // in the place of Siblings
	flights  flights
	gate     gate
	stats    tally[CacheStats]
	planning atomic.Bool
}

// NewCache returns a Cache over store for a member of a cluster. It has the node's name and
// asks the siblings that the node's digests name. The node must have Holdings, which store keeps
// in step. transport carries the questions; nil = NewHTTPTransport(nil).
func NewCache(node *gossip.Node, store Store, transport http.RoundTripper) (*Cache, error) {
	switch {
	case node == nil || store == nil:
		return nil, errors.New("sibling: a Cache needs a node and a store")
	case node.Holdings() == nil:
		return nil, errors.New("sibling: the node only listens: say in gossip.Config how many Objects it will hold")
	}
	client, err := New(Config{Name: node.Name(), Locator: node, HTTP: transport})
	if err != nil {
		return nil, err
	}
	c := &Cache{Name: node.Name(), node: node, Siblings: client, Store: store, Coalescer: NewCoalescer(CoalescerConfig{
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
	})}
	node.OnInvalidation(c.invalidated)
	return c, nil
}

// ErrNoCache is the error of a Cache that lacks a Store: see [NewCache].
var ErrNoCache = errors.New("sibling: a Cache needs a Store")

// A LoadFunc makes a value, that is good until it expires; the zero Time = for ever.
type LoadFunc func(context.Context) (value []byte, expires time.Time, err error)

// Get returns the value of an identity, any string, from the Store, from a sibling, or
// by load, whose error it returns as it is; any other error is ctx's. The value is kept
// until it expires or the Store drops it, and the caller must not change it.
//
// It does not return what [Cache.Remove] has removed, except to callers that asked before.
//
// Callers at the same time share one call of load. Its context has the values of
// the first caller's, and is canceled when nobody waits any more. It is also called if
// siblings that should have the value take far longer than they mostly do. If it
// panics, so does Get.
//
// [Cache.ServeHTTP] is what answers the siblings; a question for a value is one for
// "http://value.invalid/?" and the identity, escaped as in a query.
func (c *Cache) Get(ctx context.Context, identity string, load LoadFunc) ([]byte, error) {
	if c.Store == nil {
		return nil, ErrNoCache
	}
	c.count(&c.stats.n.Gets)
	if o := c.fresh(identity); o != nil {
		c.count(&c.stats.n.Hits)
		return o.Body, nil
	}
	o, err := c.flights.do(ctx, identity, c.joined, func(ctx context.Context) (*Object, error) {
		p := c.gate.enter(identity)
		if o := c.fresh(identity); o != nil { // since it was looked for
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
	if c.Coalescer != nil {
		c.Coalescer.Joined()
	}
}

// fetchValue gets a value from siblings, or by load.
func (c *Cache) fetchValue(ctx context.Context, identity string, load LoadFunc) (*Object, error) {
	var made atomic.Pointer[Object] // a load that was overtaken may still end
	a, body, err := c.find(ctx, LookupRequest{
		URL: valueURL(identity), Identities: []string{identity},
		Header: http.Header{"Cache-Control": {"only-if-cached"}, "Via": {"1.1 " + c.name()}},
		Accept: func(a *Answer) bool { return a.StatusCode == http.StatusOK },
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
	o, r := &Object{Body: body}, newObject(a.StatusCode, a.Header, a.Arrived.Sub(a.Requested), a.Arrived) // it may be a response
	if r.response.Explicit {
		o.Expires = r.Expires
	}
	o.believe(a.Arrived.Add(maxCopied - r.response.InitialAge))
	return o, nil
}

// valueHost stands in the URL of what is no response to any, in the place of a host.
// There is none of that name (RFC 6761 section 6.4).
const valueHost = "value.invalid"

// valueURL is by which URL siblings are asked for a value.
func valueURL(identity string) *url.URL {
	return &url.URL{Scheme: "http", Host: valueHost, Path: "/", RawQuery: url.QueryEscape(identity)}
}

// fresh returns what the store has of an identity, unless it has expired; nil if it
// has nothing.
func (c *Cache) fresh(identity string) *Object {
	o, ok := c.Store.Get(identity)
	switch {
	case !ok:
		return nil
	case o.Expires.IsZero() || time.Now().Before(o.Expires):
		return o
	case o.response == nil: // nothing validates it
		c.Store.Drop(identity)
	}
	return nil
}

// find asks the siblings for an object, and q.Origin if it isn't nil. The body of a
// sibling's answer it reads whole, and asks on if that fails or is too long; that of the
// origin's is the caller's to read. Without an origin it returns nil if nobody has the
// object. An error is the origin's or ctx's.
func (c *Cache) find(ctx context.Context, q LookupRequest) (*Answer, []byte, error) {
	identity, accept := q.Identities[0], q.Accept
	named := NameInvalidations(q.Header, c.cluster(), identity)
	if !named {
		q.Identities = nil
	}
	q.Accept = func(a *Answer) bool { return a.ContentLength <= c.maxBytes() && accept(a) }
	inquiry := c.siblings().Lookup(q)
	if c.Coalescer != nil && inquiry.Left() == 0 && named {
		pace, _, _ := c.Siblings.OriginPace(q.URL.Host)
		if first, ok := c.Coalescer.InFlight(ctx, identity, pace); ok {
			inquiry.Also(first)
		}
	}
	for { // ends: each round uses up a sibling, or returns
		a, err := inquiry.Next(ctx, nil)
		if a == nil || err != nil || a.Peer == "" {
			return a, nil, err
		}
		body, err := io.ReadAll(io.LimitReader(a.Body, c.maxBytes()+1))
		if err != nil {
			inquiry.Broken(a)
			continue
		}
		a.Body.Close()
		if int64(len(body)) <= c.maxBytes() {
			c.count(&c.stats.n.Siblings)
			return a, body, nil
		}
	}
}

func (c *Cache) name() string {
	if c.Name == "" {
		return c.siblings().cfg.Name
	}
	return c.Name
}

func (c *Cache) siblings() *Client {
	if c.Siblings == nil {
		return &c.alone
	}
	return c.Siblings
}

// cluster is c.node, or nil.
func (c *Cache) cluster() Cluster {
	if c.node == nil {
		return nil
	}
	return c.node
}

func (c *Cache) maxBytes() int64 {
	if c.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return c.MaxBytes
}
