// Package otter shows an otter cache whose misses are answered by the process that has the value.
package otter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/maypok86/otter/v2"
	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Cache is an otter cache of values. Serve it at the Node's Service, and join the Node.
type Cache struct {
	Node     *gossip.Node                 // advertises the values
	Siblings *sibling.Client              // asks the processes that advertise one; the Node is its Locator
	Values   *otter.Cache[string, []byte] // by identity; of [Options]
}

// Options returns the options of a cache of so many bytes, identities included, that keeps the digest in step.
func Options(held *gossip.Holdings, bytes uint64) *otter.Options[string, []byte] {
	return &otter.Options[string, []byte]{
		MaximumWeight: bytes,
		Weigher:       func(identity string, value []byte) uint32 { return uint32(len(identity) + len(value)) },
		// Like the function in put, this runs under the lock of the key's bucket, so it never overtakes an Add.
		OnAtomicDeletion: func(e otter.DeletionEvent[string, []byte]) {
			_ = e.Cause == otter.CauseReplacement || held.Remove(e.Key)
		},
	}
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
	if value, ok := c.Values.GetIfPresent(sibling.Identity(r)); ok {
		return value, nil
	}
	return nil, errors.New("it is not here")
}

func (c *Cache) put(identity string, value []byte) {
	c.Values.Compute(identity, func([]byte, bool) ([]byte, otter.ComputeOp) {
		c.Node.Holdings().Add(identity)
		return value, otter.WriteOp
	})
}

type source func(*http.Request) ([]byte, error)

func (s source) RoundTrip(r *http.Request) (*http.Response, error) {
	value, err := s(r)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(value)), ContentLength: -1}, err
}
