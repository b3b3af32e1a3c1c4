// Package mapcache shows a cache of its own, a map and a lock, whose misses are answered by the process that has the
// value.
package mapcache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Cache has Most values at most. Serve it at the Node's Service, and join the Node.
type Cache struct {
	Node     *gossip.Node    // advertises the values
	Siblings *sibling.Client // asks the processes that advertise one; the Node is its Locator
	Most     int
	Values   map[string][]byte // by identity; empty at first
	mu       sync.Mutex        // keeps Values and digest in step
}

// Get returns the value of a name from the map, from the process that has it, or from load.
func (c *Cache) Get(ctx context.Context, name string, load func(context.Context) ([]byte, error)) ([]byte, error) {
	u := &url.URL{Scheme: "http", Host: "value.invalid", Path: "/", RawQuery: url.QueryEscape(name)}
	r := (&http.Request{URL: u, Header: http.Header{}}).WithContext(ctx)
	if value, err := c.find(r); err == nil {
		return value, nil
	}
	origin := source(func(r *http.Request) ([]byte, error) { return load(r.Context()) })
	resp, err := (&sibling.Transport{Siblings: c.Siblings, Origin: origin}).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	value, err := io.ReadAll(resp.Body)
	if err == nil {
		c.put(sibling.Identity(r), value)
	}
	return value, err
}

// ServeHTTP answers the other processes, from the map alone.
func (c *Cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(&sibling.Handler{Name: c.Node.Name(), Cache: source(c.find)}).ServeHTTP(w, r)
}

func (c *Cache) find(r *http.Request) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if value, ok := c.Values[sibling.Identity(r)]; ok {
		return value, nil
	}
	return nil, errors.New("it is not here")
}

// put stores a value. Its identity is in the digest before it can be found, and until it is gone.
func (c *Cache) put(identity string, value []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.Values { // any, since maps have no order
		if len(c.Values) < c.Most {
			break
		}
		delete(c.Values, old)
		c.Node.Holdings().Remove(old)
	}
	c.Node.Holdings().Add(identity)
	c.Values[identity] = value
}

type source func(*http.Request) ([]byte, error)

func (s source) RoundTrip(r *http.Request) (*http.Response, error) {
	value, err := s(r)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(value)), ContentLength: -1}, err
}
