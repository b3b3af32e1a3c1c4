// Package otter shows an otter cache that advertises its contents to the other processes of a
// cluster. A miss is answered by the process that has the value.
package otter

import (
	"iter"

	"github.com/maypok86/otter/v2"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Cache gets values from its store, from other processes, or by loading them: see its Get.
// Its ServeHTTP answers the other processes.
type Cache struct {
	*sibling.Cache
	Node *gossip.Node // this process's place in the cluster
}

// New makes a cache of values that may have that many bytes together, keys included: about
// cfg.Objects of them. Serve it at cfg.Service, and join its Node.
func New(cfg gossip.Config, bytes uint64) (*Cache, error) {
	node, err := gossip.New(cfg)
	if err != nil {
		return nil, err
	}
	s, err := newStore(node.Holdings(), bytes)
	if err != nil {
		node.Close()
		return nil, err
	}
	cache, err := sibling.NewCache(node, s, nil)
	if err != nil {
		node.Close()
		return nil, err
	}
	return &Cache{cache, node}, nil
}

// A store is an otter cache that keeps a digest in step.
type store struct {
	values *otter.Cache[string, *sibling.Object]
	held   *gossip.Holdings
}

func newStore(held *gossip.Holdings, bytes uint64) (*store, error) {
	values, err := otter.New(&otter.Options[string, *sibling.Object]{
		MaximumWeight: bytes,
		Weigher:       func(key string, value *sibling.Object) uint32 { return uint32(1 + len(key) + len(value.Body)) }, // an entry of weight 0 would never be evicted
		// Like the function in Put, this runs under the lock of the key's bucket. So
		// a key is never removed from the digest before it has been added.
		OnAtomicDeletion: func(e otter.DeletionEvent[string, *sibling.Object]) {
			if e.Cause != otter.CauseReplacement {
				held.Remove(e.Key)
			}
		},
	})
	return &store{values, held}, err
}

// Get implements sibling.Store.
func (s *store) Get(key string) (*sibling.Object, bool) { return s.values.GetIfPresent(key) }

// Put implements sibling.Store.
func (s *store) Put(key string, value *sibling.Object) {
	s.values.Compute(key, func(_ *sibling.Object, present bool) (*sibling.Object, otter.ComputeOp) {
		if !present {
			s.held.Add(key)
		}
		return value, otter.WriteOp
	})
}

// Drop implements sibling.Store.
func (s *store) Drop(key string) { s.values.Invalidate(key) }

// Identities implements sibling.Store.
func (s *store) Identities() iter.Seq[string] { return s.values.Keys() }
