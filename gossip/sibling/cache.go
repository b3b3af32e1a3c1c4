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
	Made    time.Time   // when its origin made it, which Age counts from; zero for a bare value
	Expires time.Time   // when it ceases to be fresh; zero = never
	// Copied says that a sibling gave it, and has it too. A Store does well to let it go
	// before others, until it is asked for again.
	Copied bool

	// A CachingTransport's: what the rules know of it, and what it varies by.
	response *rfc9111.Response
	arrived  time.Time
	vary     []string
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

const defaultMaxBytes = 64 << 20

// A Cache answers from a [Store], from siblings, or by whatever makes the objects, and
// keeps what the last two give; its siblings' questions it answers from the Store
// alone. It is for programs that have no cache which asks others, and for objects that
// fit into memory: [Cache.Get] for values of any kind, [Cache.Wrap] and [Cache.Serve]
// for HTTP. Make one with [NewCache]. It is safe for concurrent use; its fields must
// not change meanwhile.
//
// What is asked for by many at once is made once: those at one peer wait for the first
// of them, and that one for the peer which is ahead of it ([Coalescer]).
//
// What a sibling answers is believed, and whoever reaches the address where siblings
// are answered can ask for all that is kept.
type Cache struct {
	Siblings *Client
	Store    Store
	// Coalescer finds the sibling that is making an object already; nil = each peer
	// makes its own.
	Coalescer *Coalescer
	MaxBytes  int64 // longest body that is kept, or taken from a sibling; 0 = 64 MiB
	// Identity is under what Serve keeps and finds the response to a request, a
	// sibling's question included; nil = "GET" and its URL with the host that it names.
	// Servers of one site under several names need one without the host, or they never
	// share. It must be the same at all siblings.
	Identity func(*http.Request) string

	node     *gossip.Node // nil = there is none
	flights  flights
	gate     gate
	counts   cacheCounters
	planning atomic.Bool
}

// NewCache returns a Cache over store at a node's place in the cluster: it is named as
// the node is, and asks by [Digests]. The node must have Holdings, which store keeps
// in step. transport carries the questions; nil = NewHTTPTransport(nil).
func NewCache(node *gossip.Node, store Store, transport http.RoundTripper) (*Cache, error) {
	switch {
	case node == nil || store == nil:
		return nil, errors.New("sibling: a Cache needs a node and a store")
	case node.Holdings() == nil:
		return nil, errors.New("sibling: the node only listens: say in gossip.Config how many Objects it will hold")
	}
	client, err := New(Config{Name: node.Name(), Locator: Digests(node), HTTP: transport})
	if err != nil {
		return nil, err
	}
	c := &Cache{node: node, Siblings: client, Store: store, Coalescer: NewCoalescer(CoalescerConfig{
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

// ErrNoCache is the error of a Cache that lacks Siblings or a Store: see [NewCache].
var ErrNoCache = errors.New("sibling: a Cache needs Siblings and a Store")

// A LoadFunc makes a value, that is good until it expires; the zero Time = for ever.
type LoadFunc func(context.Context) (value []byte, expires time.Time, err error)

// Get returns the value of an identity, any string, from the Store, from a sibling, or
// by load, whose error it returns as it is; any other error is ctx's. The value is kept
// until it expires or the Store drops it, and the caller must not change it.
//
// What [Cache.Remove] has removed it does not return, but to those that asked before.
//
// Those that ask at the same time share one call of load. Its context has the values of
// the first caller's, and is canceled when nobody waits any more. It is also called if
// siblings that should have the value take far longer than they mostly do. If it
// panics, so does Get.
//
// [Cache.ServeHTTP] is what answers the siblings; a question for a value is one for
// "http://value.invalid/?" and the identity, escaped as in a query.
func (c *Cache) Get(ctx context.Context, identity string, load LoadFunc) ([]byte, error) {
	if c.Siblings == nil || c.Store == nil {
		return nil, ErrNoCache
	}
	c.counts.gets.Add(1)
	if o := c.fresh(identity); o != nil {
		c.counts.hits.Add(1)
		return o.Body, nil
	}
	o, err := c.flights.do(ctx, identity, c.joined, func(ctx context.Context) (*Object, error) {
		p := c.gate.enter(identity)
		if o := c.fresh(identity); o != nil { // since it was looked for
			return o, nil
		}
		o, err := c.fetchValue(ctx, identity, load)
		if err == nil && int64(len(o.Body)) <= c.maxBytes() {
			c.put(p, identity, o)
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
	c.counts.joined.Add(1)
	if c.Coalescer != nil {
		c.Coalescer.Joined()
	}
}

// fetchValue gets a value from siblings, or by load.
func (c *Cache) fetchValue(ctx context.Context, identity string, load LoadFunc) (*Object, error) {
	var made atomic.Pointer[Object] // a load that was overtaken may still end
	o, _, err := c.find(ctx, valueURL(identity), identity, func(*Answer) bool { return true }, func(ctx context.Context, _ http.Header) (*http.Response, error) {
		o := new(Object)
		c.counts.loads.Add(1)
		err := guarded(func() (err error) {
			o.Body, o.Expires, err = load(ctx)
			return err
		})
		if err != nil {
			c.counts.errors.Add(1)
		}
		made.Store(o)
		return &http.Response{Body: http.NoBody}, err
	})
	switch {
	case err != nil:
		return nil, err
	case o != nil:
		return &Object{Body: o.Body, Expires: o.Expires, Copied: true}, nil // if it is a response after all
	}
	return made.Load(), nil
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
	if !ok {
		return nil
	}
	if !o.Expires.IsZero() && !time.Now().Before(o.Expires) {
		c.Store.Drop(identity)
		return nil
	}
	return o
}

// find asks the siblings for an object, and origin if it isn't nil; without one it
// returns nil if no sibling has the object as it is wanted, or can send it whole; with
// one, if origin was the first to answer. An error is origin's or ctx's. status is the Cache-Status of a sibling's answer.
func (c *Cache) find(ctx context.Context, u *url.URL, identity string, wanted func(*Answer) bool,
	origin func(context.Context, http.Header) (*http.Response, error)) (o *Object, status []string, err error) {
	header, identities := http.Header{"Cache-Control": {"only-if-cached"}, "Via": {"1.1 " + c.name()}}, []string{identity}
	if c.node != nil {
		ids, ok := c.node.Concerning(identity)
		if NameInvalidations(header, ids); !ok {
			identities = nil
		}
	}
	inquiry := c.Siblings.Ask(Question{
		URL: u, Identities: identities, Origin: origin,
		Header: header,
		Accept: func(a *Answer) bool {
			return a.StatusCode == http.StatusOK && a.ContentLength <= c.maxBytes() && wanted(a)
		},
	})
	if c.Coalescer != nil && inquiry.Left() == 0 && identities != nil {
		pace, _, _ := c.Siblings.OriginPace(u.Host)
		if first, ok := c.Coalescer.InFlight(ctx, identity, pace); ok {
			inquiry.Also(first)
		}
	}
	for {
		a, err := inquiry.Next(ctx, nil)
		if a == nil || err != nil {
			return nil, nil, err
		}
		if a.Peer == "" {
			a.Body.Close()
			return nil, nil, nil
		}
		body, err := io.ReadAll(io.LimitReader(a.Body, c.maxBytes()+1))
		if err != nil {
			inquiry.Broken(a)
			continue
		}
		a.Body.Close()
		if int64(len(body)) > c.maxBytes() {
			continue
		}
		c.counts.siblings.Add(1)
		o := newObject(a.Header, body, a.Arrived)
		o.Copied = true
		return o, a.Header["Cache-Status"], nil
	}
}

func (c *Cache) name() string { return c.Siblings.cfg.Name }

func (c *Cache) maxBytes() int64 {
	if c.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return c.MaxBytes
}
