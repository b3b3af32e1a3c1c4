package rfc9111

import (
	"slices"
	"sync"
)

// Hints remember by which fields the responses of a host vary, to guess those of a
// URL that was not seen before: a cache that asks others must know under which
// [Identity] they may have a response. The zero value is ready; it is safe for
// concurrent use and holds a few thousand hosts.
type Hints struct {
	mu sync.Mutex
	m  map[string][][]string // by scheme and host; the most recent rule first
}

const (
	maxHints     = 4    // rules remembered for a host
	maxHintHosts = 4096 // hosts remembered
)

// acceptEncoding is the rule that most varying responses follow.
var acceptEncoding = []string{"Accept-Encoding"}

// onlyAcceptEncoding is what is guessed of hosts of which nothing is known.
var onlyAcceptEncoding = [][]string{acceptEncoding}

// AlwaysGuessed reports whether [Hints.Guesses] has a rule for every URL.
func AlwaysGuessed(fields []string) bool { return slices.Equal(fields, acceptEncoding) }

// Learn notes that a response of the canonical URL's host varies by fields.
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
		for other := range h.m { // any: a hint is only a guess
			delete(h.m, other)
			break
		}
	}
	h.m[host] = list[:min(len(list), maxHints)]
}

// Known reports whether a response of the canonical URL's host was seen to vary.
func (h *Hints) Known(url string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.m[originOf(url)] != nil
}

// Guesses returns the sets of fields worth trying for a canonical URL of which
// nothing is known, Accept-Encoding always among them. The caller must not change
// them.
func (h *Hints) Guesses(url string) [][]string {
	h.mu.Lock()
	list := h.m[originOf(url)]
	h.mu.Unlock()
	for _, fields := range list {
		if slices.Equal(fields, acceptEncoding) {
			return list
		}
	}
	if list == nil {
		return onlyAcceptEncoding
	}
	return append(slices.Clip(list), acceptEncoding)
}
