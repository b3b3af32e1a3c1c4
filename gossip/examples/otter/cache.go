// Package otter shows an otter cache whose contents the other processes of a
// cluster know of: a miss is answered by the one that has the value.
package otter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/gossip"
)

// A Cache keeps values up to a number of bytes and finds others at its siblings.
type Cache struct {
	values *otter.Cache[string, []byte]
	held   *digest.CountingFilter
	node   *gossip.Node
	client http.Client
	load   func(ctx context.Context, key string) ([]byte, error)
}

// New makes a cache that loads what no sibling has. Serve it at cfg.Service.
func New(cfg gossip.Config, bytes uint64, load func(context.Context, string) ([]byte, error)) (c *Cache, err error) {
	geometry, err := digest.GeometryFor(100_000, 0.001)
	if err != nil {
		return nil, err
	}
	geometry.Seed = digest.SeedFrom(cfg.Secret)
	c = &Cache{load: load, client: http.Client{Timeout: 500 * time.Millisecond}}
	if c.held, err = digest.NewCountingFilter(geometry, 1); err != nil {
		return nil, err
	}
	c.values, err = otter.New(&otter.Options[string, []byte]{
		MaximumWeight: bytes,
		Weigher:       func(_ string, value []byte) uint32 { return uint32(len(value)) },
		// Like the function in put, this runs under the lock of the key's bucket, so
		// that a key is never removed from the filter before it was added.
		OnAtomicDeletion: func(e otter.DeletionEvent[string, []byte]) {
			if e.Cause != otter.CauseReplacement {
				c.held.Remove(c.key(e.Key))
			}
		},
	})
	if err != nil {
		return nil, err
	}
	cfg.Holdings = gossip.NewHoldings(c.held)
	c.node, err = gossip.New(cfg)
	return c, err
}

func (c *Cache) key(key string) digest.Key { return digest.KeyOfString(c.held.Geometry().Seed, key) }

func (c *Cache) put(key string, value []byte) {
	c.values.Compute(key, func(_ []byte, present bool) ([]byte, otter.ComputeOp) {
		if !present {
			c.held.Add(c.key(key))
		}
		return value, otter.WriteOp
	})
}

// Get returns the value from here, from a sibling, or by loading it.
func (c *Cache) Get(ctx context.Context, key string) (value []byte, err error) {
	if value, ok := c.values.GetIfPresent(key); ok {
		return value, nil
	}
	for _, sibling := range c.node.CandidatesByKey(nil, c.key(key)) {
		if value, err = c.ask(ctx, sibling, key); err == nil {
			c.put(key, value)
			return value, nil
		}
	}
	if value, err = c.load(ctx, key); err == nil {
		c.put(key, value)
	}
	return value, err
}

// ask gets the value from a sibling and says how that went, since a digest may be
// wrong: who often is, is asked last.
func (c *Cache) ask(ctx context.Context, sibling gossip.Candidate, key string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+sibling.Service+"/?key="+url.QueryEscape(key), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		c.node.ReportFailure(sibling.Peer)
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		c.node.ReportFalseHit(sibling.Peer)
		return nil, fmt.Errorf("%s does not have %q", sibling.Peer, key)
	}
	value, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err == nil {
		c.node.ReportHit(sibling.Peer)
	}
	return value, err
}

// ServeHTTP answers siblings, and asks nobody: requests cannot go in circles.
func (c *Cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if value, ok := c.values.GetIfPresent(r.URL.Query().Get("key")); ok {
		w.Write(value)
		return
	}
	http.NotFound(w, r)
}
