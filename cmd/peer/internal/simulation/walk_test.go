package simulation

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// A walk asks each peer in turn for the same new pages, with time between for digests to arrive. The
// origin is to be asked about once for each page, however many peers there are.

const (
	walked  = 20   // pages
	between = 7000 // milliseconds between two peers
)

// harmless are the faults that cost a walk no hit.
var harmless = []string{"stall", "cut", "origin-reset", "lie", "slow", "late", "stubborn", "change", "change-one",
	"purge", "purge-everywhere", "purge-tag", "purge-tag-everywhere"}

// walk adds a walk, and leaves out what costs hits.
func (s *schedule) walk(rng *rand.Rand) {
	s.Faults = slices.DeleteFunc(s.Faults, func(f fault) bool { return !slices.Contains(harmless, f.Kind) })
	s.Store, s.Given, s.Compare = 16<<20, 0, 0
	for k := range walked {
		url := walkURL + s.First + k
		s.Extra = append(s.Extra, url)
		at := rng.IntN(s.Seconds * 700)
		for i := range s.Peers {
			s.Requests = append(s.Requests, request{At: at + i*between, Node: (k + i) % s.Peers, URL: url, Kind: "get"})
		}
	}
}

func (s *schedule) walks() bool {
	return slices.ContainsFunc(s.Extra, func(url int) bool { return url >= walkURL })
}

// judgeWalk checks how often the origin was asked for the pages of a walk.
func (w *world) judgeWalk() {
	w.origin.mu.Lock()
	pages, loads := len(w.origin.loads), 0
	for _, n := range w.origin.loads {
		loads += n
	}
	w.origin.mu.Unlock()
	if pages > 0 {
		w.sometimes("a walk")
	}
	if loads > pages+pages/10 {
		w.fail("loads", nil, "%d requests to the origin for %d pages", loads, pages)
	}
}

// cold adds pages of an origin that nobody has asked before, late in the run, when the only sibling
// that has some of them is slow: the asker does not know how fast the origin is.
func (s *schedule) cold(rng *rand.Rand) {
	s.Sites, s.Store = true, max(s.Store, 3<<20) // which takes objects of a quarter
	at, holder := s.Seconds*600+rng.IntN(s.Seconds*400), rng.IntN(s.Peers)
	asker := (holder + 1 + rng.IntN(s.Peers-1)) % s.Peers
	s.Faults = append(s.Faults, fault{Kind: "crawl", At: at + 5000, For: 15_000, Node: holder, N: 165_000 + rng.Int64N(70_000)})
	for i := range 4 {
		url := coldURL + s.First + i
		s.Extra = append(s.Extra, url)
		if i < 3 {
			s.Requests = append(s.Requests, request{At: at + rng.IntN(1000), Node: holder, URL: url, Kind: "get"})
		}
		s.Requests = append(s.Requests, request{At: at + 5500 + rng.IntN(3000), Node: asker, URL: url, Kind: "get"})
	}
}

// smallDisk makes the store as small as an operator may: it has room for few objects, which soon leave.
func (s *schedule) smallDisk(*rand.Rand) { s.Store = 1 << 20 }

// lateWindows adds clients by HTTP/2 that open their window late.
func (s *schedule) lateWindows(rng *rand.Rand) {
	for range 5 {
		s.Requests = append(s.Requests, request{At: rng.IntN(s.Seconds * 1000), Node: rng.IntN(s.Peers), URL: s.ordinary(rng), Kind: "window", N: rng.Int64N(100), Sort: rng.IntN(3)})
	}
}

// coverPlaces notes the kind of an answer for a large page, for one of a cold origin, or from the smallest store.
func (w *world) coverPlaces(r *result, status string) {
	if r.URL >= deepURL && r.URL < dullURL && r.complete && pageOf(r.URL).ranges && pageOf(r.URL).rule.tag && (r.Kind == "get" || r.N < 1<<20 && r.Last >= 1<<20) {
		w.sometimes("an answer over the edge of a slice")
		if strings.Contains(status, "detail=sibling") {
			w.sometimes("an answer that begins with a sibling's slice")
		}
	}
	if r.URL >= coldURL && r.URL < walkURL && r.status == 200 {
		if strings.Contains(status, "detail=sibling") {
			w.sometimes("a page of a cold origin from a sibling")
		} else if strings.Contains(status, "fwd-status=200") {
			w.sometimes("a page of a cold origin from itself")
		}
	}
	if w.s.Store == 1<<20 && strings.Contains(status, "; hit") {
		w.sometimes("an answer on a small disk")
	}
}

// last asks when all is over, and what siblings gave may not be served any longer: for a new page, and for
// each that a liar lied about. Each peer must be right by then.
func (w *world) last() {
	w.mu.Lock()
	urls := []int{lastURL + w.s.First}
	for url := range w.lies {
		urls = append(urls, url)
	}
	w.mu.Unlock()
	slices.Sort(urls)
	for _, url := range urls {
		for _, p := range w.peers {
			if p.now() == nil {
				continue
			}
			r := w.ask(request{Node: p.index, URL: url, Kind: "get"})
			w.judge(r)
			if url < lastURL {
				w.sometimes("a page after a lie about it")
			}
			if r.status != 200 && len(w.troubled(&r)) == 0 && !w.refused(&r) || r.header.Get("X-Lie") != "" {
				w.fail("last", &r, "X-Lie %q", r.header.Get("X-Lie"))
			}
		}
	}
}
