package index

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// counts looks up each key in each filter. It returns how many a filter has from the first on.
func (l loop) counts(keys []digest.Key) (prefixes map[string]int) {
	prefixes = map[string]int{}
	for name, f := range l {
		for i, k := range keys {
			if f.MayContain(k) && prefixes[name] == i {
				prefixes[name]++
			}
		}
		if prefixes[name] == 0 {
			delete(prefixes, name)
		}
	}
	return prefixes
}

// checkSeveral compares lookups of several keys with the loop.
func (w *world) checkSeveral(keys []digest.Key) {
	w.flush()
	w.t.Helper()
	prefixes := w.loop.counts(keys)
	w.checkPrefixes(keys, prefixes)
}

// checkPrefixes checks the guarantees of Prefixes for keys that are not a chain.
func (w *world) checkPrefixes(keys []digest.Key, linear map[string]int) {
	w.t.Helper()
	got := w.index.Prefixes(make([]Prefix, 1), keys)
	if got[0] != (Prefix{}) {
		w.t.Fatal("Prefixes changes the beginning of dst")
	}
	got = got[1:]
	if len(got) != len(linear) {
		w.t.Fatalf("Prefixes = %v, want those of %v", got, linear)
	}
	for _, p := range got {
		f, n := w.loop[p.Peer], p.Keys
		if n < linear[p.Peer] || linear[p.Peer] == 0 {
			w.t.Fatalf("Prefixes = %d for %s, want at least %d", n, p.Peer, linear[p.Peer])
		}
		if !f.MayContain(keys[n-1]) || !f.MayContain(keys[max(0, n-2)]) || n < len(keys) && f.MayContain(keys[n]) {
			w.t.Fatalf("Prefixes = %d for %s, whose filter has not the last two of these keys, or has the next", n, p.Peer)
		}
	}
	rank := func(p Prefix) float64 { return w.index.peers[p.Peer].ranked }
	if !slices.IsSortedFunc(got, func(a, b Prefix) int {
		return cmp.Or(b.Keys-a.Keys, cmp.Compare(rank(a), rank(b)), strings.Compare(a.Peer, b.Peer))
	}) {
		w.t.Fatalf("Prefixes = %v is not in order", got)
	}
}

func TestNoKeys(t *testing.T) {
	w := newWorld(t, 1, mixes["few sizes"])
	for range 30 {
		w.step()
	}
	w.checkSeveral(nil)
}

// TestPrefixesOfChains: with filters that have hardly any false positives, the results are exactly the
// prefixes that the peers hold.
func TestPrefixesOfChains(t *testing.T) {
	g := digest.Geometry{Bits: 1 << 40, Hashes: 1}
	for _, length := range []int{1, 2, 3, 4, 5, 8, 100, 1000} {
		rng := random(uint64(length))
		chain := randomKeys(rng, length)
		x := New()
		want := map[string]int{}
		for i := range 200 {
			name := fmt.Sprint(i)
			held := rng.IntN(length + 1)
			if i < 20 {
				held = []int{0, length}[i%2]
			}
			if held > 0 {
				want[name] = held
			}
			if err := x.Set(name, filterOf(t, g, digest.Version{Epoch: 1}, chain[:held])); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]int{}
		for _, p := range x.Prefixes(nil, chain) {
			got[p.Peer] = p.Keys
		}
		if !maps.Equal(got, want) {
			t.Fatalf("Prefixes of %d keys = %v, want %v", length, got, want)
		}
	}
}

// TestPrefixesAreRarelyLonger: some twelve keys are looked up beyond each peer's prefix. With one false
// positive in a hundred, more than one result in ten would be wrong. Since the key before must be
// there as well, it is one in 800.
func TestPrefixesAreRarelyLonger(t *testing.T) {
	const peers, length, chains, rate = 64, 512, 400, 0.01
	rng := random(5)
	all := randomKeys(rng, chains*length)
	x := New()
	for i := range peers {
		var keys []digest.Key
		for c := range chains {
			if rng.IntN(8) == 0 {
				keys = append(keys, all[c*length:][:1+rng.IntN(length)]...)
			}
		}
		g := digest.Geometry{Bits: uint64(float64(len(keys)) / rate), Hashes: 1}
		if err := x.Set(fmt.Sprint(i), filterOf(t, g, digest.Version{Epoch: 1}, keys)); err != nil {
			t.Fatal(err)
		}
	}
	answers, longer, _ := disagreement(t, x, all, length)
	// 3,500 answers, of which 1.3 in 1,000 are 4.5; 15 is five standard deviations more.
	if answers < 3000 || longer > 15 {
		t.Errorf("%d of %d prefixes are longer than by lookups of each key", longer, answers)
	}
}

// disagreement looks up the prefixes of all chains of a length in both ways. It returns the number of
// results, how many of them are longer than those key by key, and by how many keys in all.
func disagreement(t testing.TB, x *Index, all []digest.Key, length int) (answers, longer, by int) {
	t.Helper()
	for chain := range slices.Chunk(all, length) {
		linear := map[string]int{}
		for _, p := range x.linearPrefixes(nil, chain) {
			linear[p.Peer] = p.Keys
		}
		got := x.Prefixes(nil, chain)
		if len(got) != len(linear) {
			t.Fatalf("Prefixes names %d peers, want %d", len(got), len(linear))
		}
		for _, p := range got {
			switch more := p.Keys - linear[p.Peer]; {
			case more < 0:
				t.Fatalf("Prefixes = %d for %s, key by key %d", p.Keys, p.Peer, linear[p.Peer])
			case more > 0:
				longer++
				by += more
			}
		}
		answers += len(got)
	}
	return answers, longer, by
}

// linearPrefixes is [Index.Prefixes] by a lookup of each key in order, to compare speed and results.
func (x *Index) linearPrefixes(dst []Prefix, keys []digest.Key) []Prefix {
	b := x.borrow()
	defer x.scratch.Put(b)
	v := b.begin(x)
	going := b.total
	for i := range keys {
		b.look(x, v, keys[i], x.table.lineOf(uint64(keys[i])))
		if i == 0 {
			copy(going, b.found)
		}
		for j := range going {
			for ended := going[j] &^ b.found[j] & v.present[j]; ended != 0; ended &= ended - 1 {
				dst = append(dst, Prefix{v.order[v.ranks[64*j+bits.TrailingZeros64(ended)]].match(), i})
			}
			going[j] &= b.found[j]
		}
		if empty(going) {
			break
		}
	}
	for j, w := range going {
		for w &= v.present[j]; w != 0; w &= w - 1 {
			dst = append(dst, Prefix{v.order[v.ranks[64*j+bits.TrailingZeros64(w)]].match(), len(keys)})
		}
	}
	slices.SortStableFunc(dst, func(a, b Prefix) int { return b.Keys - a.Keys })
	return dst
}

// TestPrefixes looks up chains of keys whose beginnings peers hold.
func TestPrefixes(t *testing.T) {
	for name, mix := range mixes {
		w := newWorld(t, 2, mix)
		chain := randomKeys(w.rng, 100)
		for i, peer := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			held := chain[:min(len(chain), 20*i)]
			w.set(peer, counting(t, mix(w.rng), held...).Advance())
			w.flush()
			got := w.index.Prefixes(nil, chain)
			if i > 0 && (len(got) < i || got[0].Keys < len(held)) {
				t.Fatalf("%s: Prefixes = %v after %s was set with %d keys", name, got, peer, len(held))
			}
			w.checkSeveral(chain)
		}
	}
}
