package sibling

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/rfc9111"
)

// An Object is what a [Store] keeps. Nothing in it may change once it is stored.
type Object struct {
	Header  http.Header // of the response, without what concerns a connection; nil for a bare value
	Body    []byte      // whole
	Made    time.Time   // when its origin made it, which Age counts from; zero for a bare value
	Expires time.Time   // when it ceases to be fresh; zero = never

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
}

const defaultMaxBytes = 64 << 20

// A Cache answers from a [Store], from siblings, or by who makes the objects, and
// keeps what the last two give; its siblings' questions it answers from the Store
// alone. It is for programs that have no cache which asks others, and for objects that
// fit into memory: [Cache.Get] for values of any kind, [Cache.Wrap] and [Cache.Serve]
// for HTTP. Requests at the same time for an object that is not there each ask and
// make it: where that is dear, let the first do it for all (singleflight). A Cache is
// safe for concurrent use; its fields must not change meanwhile.
//
// What a sibling answers is believed, and whoever reaches the address where siblings
// are answered can ask for all that is kept.
type Cache struct {
	Siblings *Client
	Store    Store
	MaxBytes int64 // longest body that is kept, or taken from a sibling; 0 = 64 MiB
}

// NewCache returns a Cache over store at a node's place in the cluster: it is named as
// the node is, and asks by [Digests]. The node must have Holdings, which store keeps
// in step.
func NewCache(node *gossip.Node, store Store) (*Cache, error) {
	switch {
	case node == nil || store == nil:
		return nil, errors.New("sibling: a Cache needs a node and a store")
	case node.Holdings() == nil:
		return nil, errors.New("sibling: the node only listens: say in gossip.Config how many Objects it will hold")
	}
	client, err := New(Config{Name: node.Name(), Locator: Digests(node)})
	if err != nil {
		return nil, err
	}
	return &Cache{Siblings: client, Store: store}, nil
}

// Get returns the value of an identity, any string, from the Store, from a sibling, or
// by load, whose error it returns as it is; any other error is ctx's. The value is kept
// until the Store drops it, and the caller must not change it. [Cache.ServeHTTP] is
// what answers the siblings; a question for a value is one for
// "http://value.invalid/?" and the identity, escaped as in a query.
func (c *Cache) Get(ctx context.Context, identity string, load func(context.Context) ([]byte, error)) ([]byte, error) {
	if o := c.fresh(identity); o != nil {
		return o.Body, nil
	}
	o, _, err := c.find(ctx, valueURL(identity), identity, func(*Answer) bool { return true })
	if err != nil {
		return nil, err
	}
	if o != nil {
		o = &Object{Body: o.Body, Expires: o.Expires} // if it is a response after all
	} else {
		body, err := load(ctx)
		if err != nil {
			return nil, err
		}
		o = &Object{Body: body}
	}
	if int64(len(o.Body)) <= c.maxBytes() {
		c.Store.Put(identity, o)
	}
	return o.Body, nil
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

// find asks the siblings for an object, and returns nil if none has one that is
// wanted, or can send it whole. An error is ctx's. status is the Cache-Status of the
// answer.
func (c *Cache) find(ctx context.Context, u *url.URL, identity string, wanted func(*Answer) bool) (o *Object, status []string, err error) {
	inquiry := c.Siblings.Ask(Question{
		URL: u, Identities: []string{identity},
		Header: http.Header{"Cache-Control": {"only-if-cached"}, "Via": {"1.1 " + c.name()}},
		Accept: func(a *Answer) bool {
			return a.StatusCode == http.StatusOK && a.ContentLength <= c.maxBytes() && wanted(a)
		},
	})
	for {
		a, err := inquiry.Next(ctx, nil)
		if a == nil || err != nil {
			return nil, nil, err
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
		return newObject(a.Header, body, a.Arrived), a.Header["Cache-Status"], nil
	}
}

func (c *Cache) name() string { return c.Siblings.cfg.Name }

func (c *Cache) maxBytes() int64 {
	if c.MaxBytes <= 0 {
		return defaultMaxBytes
	}
	return c.MaxBytes
}
