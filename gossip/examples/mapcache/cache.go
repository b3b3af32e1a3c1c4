// Package mapcache shows a cache made of a map and a lock, with nothing but the
// standard library beside summarycache: a miss is answered by the process that has
// the value.
package mapcache

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/summarycache/summarycache/gossip"
)

// A Cache keeps up to a number of values. Its lock keeps map and digest in step.
type Cache struct {
	mu     sync.Mutex
	values map[string][]byte
	most   int
	listed *gossip.Holdings // the same names, as digests have them
	client http.Client

	Node *gossip.Node // this process's place in the cluster
}

// New makes a cache; serve it at cfg.Service, and join its Node.
func New(cfg gossip.Config, most int) (c *Cache, err error) {
	cfg.Objects = most
	c = &Cache{values: map[string][]byte{}, most: most,
		client: http.Client{Timeout: 500 * time.Millisecond}}
	if c.Node, err = gossip.New(cfg); err != nil {
		return nil, err
	}
	c.listed = c.Node.Holdings()
	return c, nil
}

// Get returns the value of a name from here, from a sibling, or by load.
func (c *Cache) Get(ctx context.Context, name string, load func(context.Context) ([]byte, error)) ([]byte, error) {
	if value, ok := c.get(name); ok {
		return value, nil
	}
	for _, sibling := range c.Node.Candidates(nil, name) {
		if value, err := c.ask(ctx, sibling, name); err == nil {
			c.put(name, value)
			return value, nil
		}
	}
	value, err := load(ctx)
	if err != nil {
		return nil, err
	}
	c.put(name, value)
	return value, nil
}

func (c *Cache) get(name string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.values[name]
	return value, ok
}

func (c *Cache) put(name string, value []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, had := c.values[name]
	for old := range c.values { // any one, since maps have no order
		if had || len(c.values) < c.most {
			break
		}
		delete(c.values, old)
		c.listed.Remove(old)
	}
	if !had {
		c.listed.Add(name)
	}
	c.values[name] = value
}

// ask asks a sibling and tells the node how it did: who often lacks what its digest
// claims is asked last, and who does not answer is left alone for a while.
func (c *Cache) ask(ctx context.Context, sibling gossip.Candidate, name string) (value []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+sibling.Service+"/?name="+url.QueryEscape(name), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(r)
	if err == nil {
		defer resp.Body.Close()
		value, err = io.ReadAll(resp.Body)
	}
	switch {
	case err != nil:
		c.Node.ReportFailure(sibling.Peer)
	case resp.StatusCode != http.StatusOK:
		c.Node.ReportFalseHit(sibling.Peer)
		err = errors.New(resp.Status)
	default:
		c.Node.ReportHit(sibling.Peer)
	}
	return value, err
}

// ServeHTTP answers siblings, and asks nobody: questions can't go in circles.
func (c *Cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value, ok := c.get(r.URL.Query().Get("name"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Write(value)
}
