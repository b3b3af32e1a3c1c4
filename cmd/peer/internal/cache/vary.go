package cache

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
)

// rules knows by which request fields the stored responses of a URL vary. It
// follows the store by its hooks, so it holds a URL for as long as the store
// holds a varying response to it; plain responses cost nothing here.
type rules struct {
	seed   maphash.Seed
	shards [64]ruleShard
}

type ruleShard struct {
	mu sync.RWMutex
	m  map[string]*varied // by URL
}

// varied is what is stored of a URL whose responses vary.
type varied struct {
	rules [][]string     // the distinct sets of Vary fields; replaced, never changed
	ids   map[string]int // responses by identity; 2 while one replaces another
}

func newRules() *rules {
	r := &rules{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].m = make(map[string]*varied)
	}
	return r
}

func (r *rules) shard(url string) *ruleShard {
	return &r.shards[maphash.String(r.seed, url)%uint64(len(r.shards))]
}

// stored and evicted are the store's hooks.
func (r *rules) stored(id string)  { r.change(id, 1) }
func (r *rules) evicted(id string) { r.change(id, -1) }

func (r *rules) change(id string, by int) {
	if strings.IndexByte(id, '\n') < 0 {
		return
	}
	url, fields := splitIdentity(id)
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
		if _, f := splitIdentity(id); slices.Equal(f, fields) {
			return
		}
	}
	v.rules = slices.DeleteFunc(slices.Clone(v.rules), func(x []string) bool { return slices.Equal(x, fields) })
}

// of returns the sets of fields by which the URL's stored responses vary, the
// plain one aside.
func (r *rules) of(url string) [][]string {
	s := r.shard(url)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.m[url]; v != nil {
		return v.rules
	}
	return nil
}

// identities returns those of the URL's stored responses that vary.
func (r *rules) identities(url string) []string {
	s := r.shard(url)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.m[url]; v != nil {
		return slices.Collect(maps.Keys(v.ids))
	}
	return nil
}

// hints remembers which rules the responses of a host follow, to guess those of
// a URL that was not seen before.
type hints struct {
	mu sync.Mutex
	m  map[string][][]string // by scheme and host; the most recent rule first
}

const (
	maxHints     = 4    // rules remembered for a host
	maxHintHosts = 4096 // hosts remembered
)

// acceptEncoding is the rule that most varying responses follow.
var acceptEncoding = []string{"Accept-Encoding"}

// learn notes that a response of the URL's host varies by fields.
func (h *hints) learn(url string, fields []string) {
	if len(fields) == 0 {
		return
	}
	host := hostOf(url)
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.m[host]
	same := func(x []string) bool { return slices.Equal(x, fields) }
	if len(list) > 0 && same(list[0]) {
		return
	}
	list = append([][]string{fields}, slices.DeleteFunc(slices.Clone(list), same)...)
	if h.m == nil {
		h.m = make(map[string][][]string)
	}
	if len(h.m) >= maxHintHosts && h.m[host] == nil {
		for other := range h.m { // any: a hint is only a guess
			delete(h.m, other)
			break
		}
	}
	h.m[host] = list[:min(len(list), maxHints)]
}

// guesses returns the rules worth trying for a URL of which nothing is known.
func (h *hints) guesses(url string) [][]string {
	h.mu.Lock()
	list := h.m[hostOf(url)]
	h.mu.Unlock()
	for _, fields := range list {
		if slices.Equal(fields, acceptEncoding) {
			return list
		}
	}
	return append(slices.Clip(list), acceptEncoding)
}

// hostOf returns the scheme and authority of a canonical URL.
func hostOf(url string) string {
	if i := strings.Index(url, "://"); i >= 0 {
		if j := strings.IndexByte(url[i+3:], '/'); j >= 0 {
			return url[:i+3+j]
		}
	}
	return url
}
