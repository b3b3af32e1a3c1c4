package rfc9111

import (
	"slices"
	"sync"
)

// Hints remember by which request fields the responses of a host vary, and guess the fields for
// a URL that was not seen before: a cache that asks its siblings must know the [Identity] of a
// response that it has never had. The zero value is ready. Hints are safe for concurrent
// use and hold a few thousand hosts.
type Hints struct {
	mu sync.Mutex
	m  map[string][][]string // sets of fields by scheme and host; the most recent first
}

const (
	maxHints     = 4    // sets remembered for a host
	maxHintHosts = 4096 // hosts remembered
)

// acceptEncoding is the set by which most responses vary that do.
var acceptEncoding = []string{"Accept-Encoding"}

// onlyAcceptEncoding is the guess for an unknown host.
var onlyAcceptEncoding = [][]string{acceptEncoding}

// AlwaysGuessed reports whether [Hints.Guesses] returns a set of fields for every URL.
func AlwaysGuessed(fields []string) bool { return slices.Equal(fields, acceptEncoding) }

// Learn notes that a response from the host of a canonical URL varies by fields.
func (h *Hints) Learn(url string, fields []string) {
	if len(fields) == 0 {
		return
	}
	host := originOf(url)
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
		for other := range h.m { // any host will do: a hint is only a guess
			delete(h.m, other)
			break
		}
	}
	h.m[host] = list[:min(len(list), maxHints)]
}

// Known reports whether a response that varies was seen from the host of a canonical URL.
func (h *Hints) Known(url string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.m[originOf(url)] != nil
}

// Guesses returns the sets of fields worth trying for an unknown canonical URL. Accept-Encoding
// is always one of them. The caller must not change them.
func (h *Hints) Guesses(url string) [][]string {
	h.mu.Lock()
	list := h.m[originOf(url)]
	h.mu.Unlock()
	switch {
	case list == nil:
		return onlyAcceptEncoding
	case slices.ContainsFunc(list, AlwaysGuessed):
		return list
	}
	return append(slices.Clip(list), acceptEncoding)
}
