package rfc9111

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Variants knows by which request fields the stored responses of a URL vary, which
// one must know to find them (RFC 9111 section 4.1). It follows a store, which tells
// it of each response that comes and goes, and so holds a URL for as long as the
// store holds a varying response to it; responses that don't vary cost nothing here.
// It is safe for concurrent use.
type Variants struct {
	seed   maphash.Seed
	shards [64]variantShard
}

type variantShard struct {
	mu sync.RWMutex
	m  map[string]*varied // by URL
}

// varied is what is stored of a URL whose responses vary.
type varied struct {
	rules [][]string     // the distinct sets of Vary fields; replaced, never changed
	ids   map[string]int // responses by identity; 2 while one replaces another
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

// Stored tells that the response of an identity is stored; it may be while another
// one of the identity still is.
func (r *Variants) Stored(id string) { r.change(id, 1) }

// Evicted tells that one is not stored any more.
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
	} else if !slices.ContainsFunc(v.rules, func(x []string) bool { return slices.Equal(x, fields) }) {
		v.rules = append(v.rules[:len(v.rules):len(v.rules)], fields)
	}
	if len(v.ids) == 0 {
		delete(s.m, url)
	}
}

// forget drops a rule that no stored response follows any more.
func (v *varied) forget(fields []string) {
	for id := range v.ids {
		if _, f := SplitIdentity(id); slices.Equal(f, fields) {
			return
		}
	}
	v.rules = slices.DeleteFunc(slices.Clone(v.rules), func(x []string) bool { return slices.Equal(x, fields) })
}

// Rules returns the sets of fields by which stored responses of a canonical URL vary,
// the empty set aside: the response that a request selects is under [Identity] of one
// of them, or of none. The caller must not change them.
func (r *Variants) Rules(url string) [][]string {
	s := r.shard(url)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.m[url]; v != nil {
		return v.rules
	}
	return nil
}

// Identities returns those of the URL's stored responses that vary.
func (r *Variants) Identities(url string) []string {
	s := r.shard(url)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.m[url]; v != nil {
		return slices.Collect(maps.Keys(v.ids))
	}
	return nil
}
