package index

import (
	"fmt"
	"slices"
	"testing"

	"github.com/summarycache/summarycache/digest"
)

// TestPartsOfAPeer: the prefix of a peer with several digests goes on from one to the other, single
// lookups say which of them has a key, and each can be changed and deleted alone.
func TestPartsOfAPeer(t *testing.T) {
	g := digest.Geometry{Bits: 1 << 36, Hashes: 1}
	chain := randomKeys(random(1), 40)
	x := New()
	set := func(name string, keys ...digest.Key) {
		t.Helper()
		if err := x.Set(name, counting(t, g, keys...).Advance()); err != nil {
			t.Fatal(err)
		}
	}
	prefixes := func() (all []string) {
		for _, p := range x.Prefixes(nil, chain) {
			if p.Part != "" {
				t.Errorf("a prefix of part %q", p.Part)
			}
			all = append(all, fmt.Sprint(p.Peer, " ", p.Keys))
		}
		slices.Sort(all)
		return all
	}
	want := func(want ...string) {
		t.Helper()
		if got := prefixes(); !slices.Equal(got, want) {
			t.Errorf("Prefixes = %q, want %q", got, want)
		}
	}
	set(Part("pod", "cpu"), append(randomKeys(random(2), 50), chain[:10]...)...)
	set(Part("pod", "gpu"), chain[10:30]...)
	set("whole", chain[:25]...)
	set(Part("none", "gpu"), chain[1:]...)
	want("pod 30", "whole 25")
	set(Part("pod", "disk"), slices.Concat(chain[5:15], chain[29:33])...)
	want("pod 33", "whole 25")
	for i, part := range map[int]string{3: "cpu", 20: "gpu", 31: "disk"} {
		if m := x.Lookup(nil, chain[i]); !slices.ContainsFunc(m, func(m Match) bool { return m.Peer == "pod" && m.Part == part }) {
			t.Errorf("Lookup(key %d) = %v, want pod's %s", i, m, part)
		}
	}
	x.Delete(Part("pod", "gpu"))
	want("pod 15", "whole 25")
	x.Delete(Part("pod", "cpu"))
	want("whole 25")
}

// TestPartsAgainstUnion: parts of many peers, with any keys, have the prefixes of the filters that are
// their unions.
func TestPartsAgainstUnion(t *testing.T) {
	g := digest.Geometry{Bits: 1 << 40, Hashes: 1}
	r := random(3)
	for range 20 {
		chain := randomKeys(r, 1+r.IntN(300))
		parts, whole := New(), New()
		for peer := range 1 + r.IntN(90) {
			name := fmt.Sprint("p", peer)
			n := r.IntN(len(chain) + 1)
			held := make([][]digest.Key, 1+r.IntN(4))
			for _, k := range chain[:n] {
				i := r.IntN(len(held))
				held[i] = append(held[i], k)
			}
			for i, keys := range held {
				if err := parts.Set(Part(name, fmt.Sprint(i)), counting(t, g, keys...).Advance()); err != nil {
					t.Fatal(err)
				}
			}
			if err := whole.Set(name, counting(t, g, chain[:n]...).Advance()); err != nil {
				t.Fatal(err)
			}
		}
		lengths := func(x *Index) map[string]int {
			found := map[string]int{}
			for _, p := range x.Prefixes(nil, chain) {
				found[p.Peer] += p.Keys
			}
			return found
		}
		if got, want := lengths(parts), lengths(whole); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("by parts %v, whole %v", got, want)
		}
	}
}
