package rfc9111

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Variants is an index of the request fields by which the stored responses of a URL vary, and of the
// slices of its responses. A cache needs them to find these responses (RFC 9111 section 4.1). The
// store reports each response that it adds or removes; those that do not vary and are no slices take
// no memory here. Variants is safe for concurrent use.
type Variants struct {
	seed   maphash.Seed
	shards [64]variantShard
}

type variantShard struct {
	mu sync.RWMutex
	m  map[string]*varied // by URL
}

// varied describes the stored responses of a URL that vary, and the slices.
type varied struct {
	rules [][]string     // the distinct sets of Vary fields, without the empty set; replaced, never changed
	ids   map[string]int // number of responses by identity; 2 while one replaces another
}

// NewVariants returns an empty index.
func NewVariants() *Variants {
	r := &Variants{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].m = make(map[string]*varied)
	}
	return r
}

func (r *Variants) shard(url string) *variantShard {
	return &r.shards[maphash.String(r.seed, url)%uint64(len(r.shards))]
}

// Stored notes that a response was stored under an identity. An older response with the same
// identity may still be stored.
func (r *Variants) Stored(id string) { r.change(id, 1) }

// Evicted notes that a response with an identity is no longer stored.
func (r *Variants) Evicted(id string) { r.change(id, -1) }

func (r *Variants) change(id string, by int) {
	if strings.IndexByte(id, '\n') < 0 {
		return
	}
	url, fields := SplitIdentity(id)
	s := r.shard(url)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.m[url]
	if v == nil {
		v = &varied{ids: make(map[string]int)}
		s.m[url] = v
	}
	if v.ids[id] += by; v.ids[id] <= 0 {
		delete(v.ids, id)
		v.forget(fields)
	} else if len(fields) > 0 && !slices.ContainsFunc(v.rules, func(x []string) bool { return slices.Equal(x, fields) }) {
		v.rules = append(v.rules[:len(v.rules):len(v.rules)], fields)
	}
	if len(v.ids) == 0 {
		delete(s.m, url)
	}
}

// forget drops a set of fields by which no stored response varies any more.
func (v *varied) forget(fields []string) {
	if len(fields) == 0 {
		return
	}
	for id := range v.ids {
		if _, f := SplitIdentity(id); slices.Equal(f, fields) {
			return
		}
	}
	v.rules = slices.DeleteFunc(slices.Clone(v.rules), func(x []string) bool { return slices.Equal(x, fields) })
}

// Rules returns the sets of fields, except the empty set, by which the stored responses of a
// canonical URL vary. The response that a request selects is stored under the [Identity] for
// one of them or for no fields. The caller must not change them.
func (r *Variants) Rules(url string) [][]string {
	s := r.shard(url)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.m[url]; v != nil {
		return v.rules
	}
	return nil
}

// Has reports whether a response of a canonical URL is stored that varies or is a slice.
func (r *Variants) Has(url string) bool {
	s := r.shard(url)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[url] != nil
}

// Identities returns the identities of the stored responses of a canonical URL that vary or are slices.
func (r *Variants) Identities(url string) []string {
	s := r.shard(url)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.m[url]; v != nil {
		return slices.Collect(maps.Keys(v.ids))
	}
	return nil
}
