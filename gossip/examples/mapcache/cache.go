// Package mapcache shows a cache made of a map and a lock, with only the standard library and
// summarycache. A miss is answered by the process that has the value.
package mapcache

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/summarycache/summarycache/gossip"
	"github.com/summarycache/summarycache/gossip/sibling"
)

// A Cache gets values from its store, from other processes, or by loading them: see its Get.
// Its ServeHTTP answers the other processes.
type Cache struct {
	*sibling.Cache
	Node *gossip.Node // this process's place in the cluster
}

// New makes a cache of up to cfg.Objects values. Serve it at cfg.Service, and join its
// Node.
func New(cfg gossip.Config) (*Cache, error) {
	node, err := gossip.New(cfg)
	if err != nil {
		return nil, err
	}
	cache, err := sibling.NewCache(node, &store{values: map[string]*sibling.Object{}, most: cfg.Objects, held: node.Holdings()}, nil)
	if err != nil {
		node.Close()
		return nil, err
	}
	return &Cache{cache, node}, nil
}

// A store keeps up to a number of values. Its lock keeps map and digest in step.
type store struct {
	mu     sync.Mutex
	values map[string]*sibling.Object
	most   int
	held   *gossip.Holdings // advertises the same names
}

// Get implements sibling.Store.
func (s *store) Get(name string) (*sibling.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[name]
	return value, ok
}

// Put implements sibling.Store. It adds the name to the digest before the value can be found. The
// name of a value that is replaced is already there.
func (s *store) Put(name string, value *sibling.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := s.values[name]; !had {
		for old := range s.values { // any one, since maps have no order
			if len(s.values) < s.most {
				break
			}
			s.drop(old)
		}
		s.held.Add(name)
	}
	s.values[name] = value
}

// Drop implements sibling.Store.
func (s *store) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(name)
}

// Identities implements sibling.Store.
func (s *store) Identities() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Values(slices.Collect(maps.Keys(s.values)))
}

func (s *store) drop(name string) {
	if _, had := s.values[name]; had {
		delete(s.values, name)
		s.held.Remove(name)
	}
}
