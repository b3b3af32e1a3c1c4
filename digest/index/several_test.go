package index

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// counts asks each filter for each key: all of them, and how many from the first on.
func (l loop) counts(keys []digest.Key) (all, prefixes map[string]int) {
	all, prefixes = map[string]int{}, map[string]int{}
	for name, f := range l {
		for i, k := range keys {
			if !f.MayContain(k) {
				continue
			}
			all[name]++
			if prefixes[name] == i {
				prefixes[name]++
			}
		}
		if prefixes[name] == 0 {
			delete(prefixes, name)
		}
	}
	return all, prefixes
}

// checkSeveral compares the questions about several keys with the loop.
func (w *world) checkSeveral(keys []digest.Key) {
	w.t.Helper()
	all, prefixes := w.loop.counts(keys)
	var every, some []string
	for name := range w.loop {
		if all[name] == len(keys) {
			every = append(every, name)
		}
		if all[name] > 0 {
			some = append(some, name)
		}
	}
	slices.Sort(every)
	slices.Sort(some)
	if got := namesOf(w.index.AllOf(nil, keys)); !slices.Equal(got, every) {
		w.t.Fatalf("AllOf(%x) = %v, want %v", keys, got, every)
	}
	if got := namesOf(w.index.AnyOf(nil, keys)); !slices.Equal(got, some) {
		w.t.Fatalf("AnyOf(%x) = %v, want %v", keys, got, some)
	}
	w.checkCounts("Prefixes", w.index.Prefixes(make([]Prefix, 1), keys), prefixes)
}

func (w *world) checkCounts(what string, got []Prefix, want map[string]int) {
	w.t.Helper()
	if got[0] != (Prefix{}) {
		w.t.Fatalf("%s changes what was in dst", what)
	}
	got = got[1:]
	if len(got) != len(want) {
		w.t.Fatalf("%s = %v, want %v", what, got, want)
	}
	for _, c := range got {
		if want[c.Peer] != c.Keys {
			w.t.Fatalf("%s = %d for %s, want %d", what, c.Keys, c.Peer, want[c.Peer])
		}
	}
	rank := func(c Prefix) float64 { return w.index.peers[c.Peer].ranked }
	if !slices.IsSortedFunc(got, func(a, b Prefix) int {
		return cmp.Or(b.Keys-a.Keys, cmp.Compare(rank(a), rank(b)), strings.Compare(a.Peer, b.Peer))
	}) {
		w.t.Fatalf("%s = %v is not in order", what, got)
	}
}

func TestNoKeys(t *testing.T) {
	w := newWorld(t, 1, mixes["few sizes"])
	for range 30 {
		w.step()
	}
	w.checkSeveral(nil)
}

// TestPrefixes: chains of keys, of which peers hold beginnings.
func TestPrefixes(t *testing.T) {
	for name, mix := range mixes {
		w := newWorld(t, 2, mix)
		chain := randomKeys(w.rng, 100)
		for i, peer := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			held := chain[:min(len(chain), 20*i)]
			w.set(peer, counting(t, mix(w.rng), held...).Advance())
			got := w.index.Prefixes(nil, chain)
			if i > 0 && (len(got) < i || got[0].Keys < len(held)) {
				t.Fatalf("%s: Prefixes = %v after %s came with %d keys", name, got, peer, len(held))
			}
			w.checkSeveral(chain)
		}
	}
}
