package kvblocks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/summarycache/summarycache/digest"
	"github.com/summarycache/summarycache/digest/feed"
	"github.com/summarycache/summarycache/digest/index"
	"github.com/summarycache/summarycache/gossip"
)

// A Router has a replica of each digest and an index over them. It is safe for concurrent use.
type Router struct {
	Node *gossip.Node // whose members are the other routers, with their Service; may be nil

	seed     uint64
	index    *index.Index
	mu       sync.Mutex
	replicas map[string]*feed.Replica // by the name of the digest
	most     int                      // of them
}

// that workers can have a router keep; of a message
const mostDigests, mostMemory, mostBytes = 10_000, 1 << 30, 64 << 20

// NewRouter returns a router; see [Worker] for the seed.
func NewRouter(seed uint64) *Router {
	r := &Router{seed: seed, index: index.New(), replicas: map[string]*feed.Replica{}, most: mostDigests}
	r.index.SetMemoryLimit(mostMemory)
	return r
}

// Handle takes a message of a digest. If lacks is true, the next must be what has changed since a version.
func (r *Router) Handle(name string, message []byte) (since digest.Version, lacks bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	replica, known := r.replicas[name]
	if !known {
		replica = feed.NewReplica(digest.Limits{Bytes: mostBytes, Seed: r.seed, Profile: digest.Numbers})
	}
	d, changed, err := replica.Handle(message)
	switch {
	case err != nil && !known:
		return since, false, err
	case changed && !known && len(r.replicas) == r.most:
		return since, false, errors.New("kvblocks: too many digests")
	case changed:
		r.replicas[name] = replica
		err = r.index.Apply(index.Change{Peer: name, Delta: d, Next: replica.Filter()})
	}
	since, lacks = replica.Needs()
	return since, lacks, err
}

// Forget removes a pod that has gone.
func (r *Router) Forget(pod string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.replicas {
		if strings.HasPrefix(name, index.Part(pod, "")) {
			delete(r.replicas, name)
			r.index.Delete(name)
		}
	}
}

// Prefixes returns the pods that hold the beginning of a prompt in any tier, those with the most of it first.
func (r *Router) Prefixes(prompt []BlockHash) []index.Prefix {
	chain := make([]digest.Key, len(prompt))
	for i, b := range prompt {
		chain[i] = digest.KeyOfUint64(r.seed, uint64(b))
	}
	return r.index.Prefixes(nil, chain)
}

// Lookup implements [Index].
func (r *Router) Lookup(_ context.Context, blocks []BlockHash, pods map[string]struct{}) (map[BlockHash][]PodEntry, error) {
	if len(blocks) == 0 {
		return nil, errors.New("kvblocks: no keys to look up")
	}
	found := map[BlockHash][]PodEntry{}
	for _, b := range blocks {
		for _, m := range r.index.Lookup(nil, digest.KeyOfUint64(r.seed, uint64(b))) {
			var e PodEntry
			if _, wanted := pods[m.Peer]; (wanted || len(pods) == 0) && json.Unmarshal([]byte(m.Part), &e) == nil {
				e.PodIdentifier = m.Peer
				found[b] = append(found[b], e)
			}
		}
	}
	return found, nil
}

// Local is an Index in one process, if the events of all pods arrive at the router.
type Local struct {
	*Worker
	*Router
}

// Lookup implements [Index].
func (x Local) Lookup(ctx context.Context, keys []BlockHash, pods map[string]struct{}) (found map[BlockHash][]PodEntry, err error) {
	x.Worker.Next(false, func(d Digest) { err = cmp.Or(err, d.Give(x.Router.Handle)) })
	if err != nil {
		return nil, err
	}
	return x.Router.Lookup(ctx, keys, pods)
}
